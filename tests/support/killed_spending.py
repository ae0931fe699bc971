"""What the processes of the budget's crash tests do: call models under one budget, and be killed inside a call."""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from langgraph_ext import AgentNode, Budget, LedgerSaver, RunLedger, durable, with_ledger
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger import Dimension, RunStatus
from langgraph_ext.testing import ScriptedChatModel, call, say
from tests.support.faults import kill_myself
from tests.support.models import dispatches, scripted, used

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def die_at(folder: str, *numbers: int) -> None:
    """Kill this process inside the calls of these numbers."""
    if dispatches(f"{folder}/dispatches") in numbers:
        kill_myself()


def model_of(folder: str, *deaths: int, tokens_out: int = 5) -> ScriptedChatModel:
    """One that notes its dispatches in the folder, and kills its process inside some of them."""
    return scripted(
        usage=used(10, tokens_out), max_tokens=50, log=f"{folder}/dispatches", during=partial(die_at, folder, *deaths)
    )


def outcome(app: Any, given: Any, form: str, durability: Any) -> str:
    """Invoke; "done", "asks", or the error's code."""
    try:
        if form == "sync":
            found = app.invoke(given, CONFIG, durability=durability)
        else:
            found = asyncio.run(app.ainvoke(given, CONFIG, durability=durability))
    except LangGraphExtError as error:
        return error.code
    except TimeoutError:
        return "failed"
    return "asks" if "__interrupt__" in found else "done"


# -- one node that dies in every call


def one(folder: str, form: str, durability: str, kind: str) -> str:
    """A node whose every call of the model kills the process, under a limit of three calls."""
    model = model_of(folder, 1, 2, 3, 4)

    def call(state: State) -> Any:
        return {"log": [str(model.invoke("hello").content)]}

    async def acall(state: State) -> Any:
        return {"log": [str((await model.ainvoke("hello")).content)]}

    node: Any = call if form == "sync" else acall
    with LedgerSaver(f"{folder}/runs.db") as saver:
        builder = StateGraph(State).add_node("first", lambda state: {"log": ["first"]})
        builder.add_node("agent", durable(node) if kind == "durable" else node)
        builder.add_edge(START, "first").add_edge("first", "agent").add_edge("agent", END)
        app = with_ledger(builder.compile(checkpointer=saver), budget=Budget(turns=3))
        stored = saver.get_tuple(CONFIG) is not None
        return outcome(app, None if stored else {"log": []}, form, durability)


# -- an agent under a limit of cost


def agent(folder: str, form: str) -> str:
    """An agent whose first two calls of its model kill the process; it would call the model three times.

    A call costs 0.015 dollars, and, as far as its bound says, 0.11 and more; the run may cost 0.35.
    """

    def die() -> None:
        die_at(folder, 1, 2)

    def note(x: int) -> str:
        """Note it."""
        with (Path(folder) / "notes").open("a") as notes:
            notes.write(f"{x}\n")
        return "noted"

    options: Any = {"usage": used(10, 5), "during": die}
    steps = [call("note", {"x": 1}, **options), call("note", {"x": 2}, **options), say("done", **options)]
    model = ScriptedChatModel(script=steps, log=f"{folder}/dispatches", max_tokens=50)
    budget = Budget(cost_usd=0.35, price=lambda model, usage: sum(usage.values()) / 1000)
    with LedgerSaver(f"{folder}/runs.db") as saver:
        builder: Any = StateGraph(MessagesState)
        builder.add_node(AgentNode(name="support", model=model, tools=[note]))
        app = with_ledger(builder.add_edge(START, "support").compile(checkpointer=saver), budget=budget)
        stored = saver.get_tuple(CONFIG) is not None
        return outcome(app, None if stored else {"messages": [HumanMessage("go")]}, form, "sync")


# -- a call that comes before its run


class Slow(LedgerSaver):
    """Its puts take a while to begin."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """As the saver's."""
        time.sleep(0.3)
        return super().put(config, checkpoint, metadata, new_versions)


def early(folder: str, first: bool) -> str:
    """A first node whose call of the model begins before the run is on record, and ends its process behind that."""

    def die() -> None:
        if first:
            with RunLedger(f"{folder}/runs.db") as ledger:
                if ledger.runs():
                    (Path(folder) / "late").touch()
                while not ledger.runs():
                    time.sleep(0.01)
            kill_myself()

    model = scripted(usage=used(), max_tokens=50, log=f"{folder}/dispatches", during=die)
    with Slow(f"{folder}/runs.db") as saver:
        builder = StateGraph(State).add_node("a", lambda state: {"log": [str(model.invoke("hello").content)]})
        app = with_ledger(builder.add_edge(START, "a").compile(checkpointer=saver), budget=Budget(turns=2))
        return outcome(app, {"log": []} if first else None, "sync", "async")


# -- a run that somebody cancels while a model is called


def cancelled(folder: str, first: bool) -> str:
    """Two nodes at once. In the call of one the run is cancelled; a try of the other sees to that; then all is gone."""
    asked = Path(folder) / "asked"

    def wait(is_so: Callable[[], bool]) -> None:
        while not is_so():
            time.sleep(0.01)

    def die() -> None:
        with RunLedger(f"{folder}/runs.db") as ledger:
            [run] = ledger.runs()
            ledger.cancel(run.run_id)
            asked.touch()
            wait(lambda: ledger.run(run.run_id).status is RunStatus.CANCELLED)
        kill_myself()

    def late(state: State) -> Any:
        wait(asked.exists)
        raise TimeoutError("again")

    model = scripted(usage=used(), max_tokens=50, log=f"{folder}/dispatches", during=die)
    with LedgerSaver(f"{folder}/runs.db") as saver:
        builder = StateGraph(State).add_node("calls", lambda state: {"log": [str(model.invoke("hello").content)]})
        again = RetryPolicy(initial_interval=0.01, jitter=False, retry_on=TimeoutError)
        builder.add_node("late", durable(late), retry_policy=again)
        builder.add_edge(START, "calls").add_edge(START, "late")
        app = with_ledger(builder.compile(checkpointer=saver), budget=Budget(turns=2))
        return outcome(app, {"log": []} if first else None, "sync", "sync")


# -- a whole life under one budget


def life(
    folder: str, given: str, form: str, durability: str, turns: int = 20, tokens: int = 10_000, tokens_out: int = 5
) -> str:
    """left and right in parallel, subgraphs of two calls each; ask; last, which fails once, then dies, then ends.

    The first node of left fails once, behind its call, and is retried. A call is bounded to 50 tokens out; whether the
    bound holds is for `tokens_out` to say.
    """
    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = with_ledger(_life(saver, folder, form, tokens_out), budget=Budget(turns=turns, tokens=tokens))
        inputs: dict[str, Any] = {"new": {"log": []}, "on": None, "answer": Command(resume="yes")}
        return outcome(app, inputs[given], form, durability)


def _life(saver: LedgerSaver, folder: str, form: str, tokens_out: int) -> Any:
    model, last = model_of(folder, tokens_out=tokens_out), model_of(folder, 7, tokens_out=tokens_out)

    def node(used_model: ScriptedChatModel, fails: str = "") -> Any:
        def after() -> Any:
            failed = Path(folder) / f"failed {fails}"
            if fails and not failed.exists():
                failed.touch()
                raise TimeoutError("once")
            return {"log": ["hi"]}

        def call(state: State) -> Any:
            used_model.invoke("hello")
            return after()

        async def acall(state: State) -> Any:
            await used_model.ainvoke("hello")
            return after()

        return call if form == "sync" else acall

    def inner(fails: str = "") -> Any:
        again = RetryPolicy(initial_interval=0.01, jitter=False, retry_on=TimeoutError)
        built = StateGraph(State).add_node("one", node(model, fails), retry_policy=again).add_node("two", node(model))
        return built.add_edge(START, "one").add_edge("one", "two").compile()

    builder = StateGraph(State)
    builder.add_node("left", inner("left")).add_node("right", inner())
    builder.add_node("ask", lambda state: {"log": [interrupt("go on?")]})
    builder.add_node("last", node(last, "last"))
    builder.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "ask")
    return builder.add_edge("ask", "last").add_edge("last", END).compile(checkpointer=saver)


def told(folder: str) -> dict[str, Any]:
    """What is on record of the newest run of the graph's."""
    with RunLedger(f"{folder}/runs.db") as ledger:
        run = ledger.runs(thread_id="t")[0]
        usage, calls = ledger.usage(run.run_id), ledger.calls(run.run_id)
        turns, tokens, cost = (usage.spent[each] for each in (Dimension.TURNS, Dimension.TOKENS, Dimension.COST_USD))
        return {
            "status": str(run.status),
            "calls": [str(call.status) for call in calls],
            "turns": (turns.known, turns.reserved),
            "tokens": (tokens.known, tokens.reserved),
            "cost": cost,
            "of rows": (
                sum((call.tokens_in or 0) + (call.tokens_out or 0) for call in calls),
                sum(call.reserved_tokens for call in calls),
            ),
            "bounds": [call.bound_tokens for call in calls],
            "findings": ledger.verify(),
        }


def raise_budget(folder: str, **limits: Any) -> None:
    """Allow more."""
    with RunLedger(f"{folder}/runs.db") as ledger:
        ledger.raise_budget(ledger.runs(thread_id="t")[0].run_id, **limits)


class Spent(NamedTuple):
    """How the tokens of the newest run stand to its limit."""

    limit: int
    known: int
    reserved: int
    under_way: int
    """When the limit was passed, so many other calls were being made."""
    late: int
    """So many calls were begun behind that."""


def spent(folder: str) -> Spent:
    """That."""
    with RunLedger(f"{folder}/runs.db") as ledger:
        run_id = ledger.runs(thread_id="t")[0].run_id
        tokens, calls = ledger.usage(run_id).spent[Dimension.TOKENS], ledger.calls(run_id)
    limit, used, others, late = int(tokens.limit or 0), 0, 0, 0
    settled = [each for each in calls if each.status == "settled"]
    for each in sorted(settled, key=lambda each: each.ended_at or each.started_at):
        used += (each.tokens_in or 0) + (each.tokens_out or 0)
        if used > limit and each.ended_at is not None:
            late = sum(other.started_at > each.ended_at for other in calls)
            others = sum(other.ended_at is None or other.ended_at > each.ended_at for other in calls) - late
            break
    return Spent(limit, int(tokens.known), int(tokens.reserved), others, late)
