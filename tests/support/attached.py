"""What processes do that share a thread of an attached graph: take turns, or resume one run at the same moment."""

from __future__ import annotations

import asyncio
import operator
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_ext import Frame, LedgerSaver, durable, with_ledger
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import EffectLog
from tests.support.faults import kill_myself

CONFIG: Any = {"configurable": {"thread_id": "shared"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def call(app: Any, given: Any, form: str, durability: Any) -> str:
    """Invoke; "done", or the error's code."""
    try:
        if form == "sync":
            app.invoke(given, CONFIG, durability=durability)
        else:
            asyncio.run(app.ainvoke(given, CONFIG, durability=durability))
    except LangGraphExtError as error:
        return error.code
    return "done"


def take_turns(folder: str, name: str, turns: int, on_busy: Any, form: str, durability: Any) -> list[tuple[str, str]]:
    """Invoke again and again, each time with the turn's name; what came of each turn."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        builder = StateGraph(State).add_node("a", lambda state: {"log": ["a"]}).add_edge(START, "a")
        app = with_ledger(builder.compile(checkpointer=saver), on_busy=on_busy, wait_seconds=60)
        return [(f"{name}{n}", call(app, {"log": [f"{name}{n}"]}, form, durability)) for n in range(turns)]


def paying(saver: LedgerSaver, folder: str) -> Any:
    """pay, slowly, then note."""
    log = EffectLog(Path(folder) / "effects.log")

    @durable(effect="write")
    def pay(state: State, frame: Frame) -> Any:
        frame.once("pay", {}, lambda key: (time.sleep(0.3), log.record("pay"))[0])
        return {"log": ["paid"]}

    @durable
    def note(state: State) -> Any:
        log.record("note")
        return {"log": ["noted"]}

    builder = StateGraph(State).add_node("pay", pay).add_node("note", note).add_edge(START, "pay")
    return with_ledger(builder.add_edge("pay", "note").compile(checkpointer=saver))


def resume(folder: str) -> str:
    """Go on with the run, as others do at the same moment."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        return call(paying(saver, folder), None, "sync", "sync")


class Delayed(LedgerSaver):
    """Its second node's writes, or the put behind them, take a while; the process dies when that put is entered."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(url)
        self.what = what

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        """As the saver's."""
        if self.what == "writes" and task_path.endswith("two"):
            time.sleep(0.4)
        super().put_writes(config, writes, task_id, task_path)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """As the saver's."""
        if metadata.get("step") == 2:  # behind the second node
            if self.what == "put":
                time.sleep(0.4)
            if self.what:
                kill_myself()
        return super().put(config, checkpoint, metadata, new_versions)


def three(folder: str, what: str) -> list[tuple[str, int, str]]:
    """Run three durable nodes, or go on with them; their attempts."""
    log = EffectLog(Path(folder) / "effects.log")

    def node(name: str) -> Any:
        @durable(effect="write")
        def act(state: State, frame: Frame) -> Any:
            frame.once(name, {}, lambda key: log.record(name))
            return {"log": [name]}

        return act

    builder = StateGraph(State)
    for name in ("one", "two", "three"):
        builder.add_node(name, node(name))
    builder.add_edge(START, "one").add_edge("one", "two").add_edge("two", "three")
    with Delayed(f"{folder}/runs.db", what) as saver:
        app = with_ledger(builder.compile(checkpointer=saver))
        app.invoke({"log": []} if what else None, CONFIG, durability="sync")
        assert saver.ledger.verify() == []
        attempts = saver.ledger.attempts(saver.ledger.runs()[0].run_id)
    return [(each.node, each.number, str(each.status)) for each in attempts]


def approving(saver: LedgerSaver, folder: str) -> Any:
    """ask, then act as was said."""
    log = EffectLog(Path(folder) / "effects.log")

    @durable(effect="write")
    def act(state: State, frame: Frame) -> Any:
        said = interrupt("which?")
        frame.once("act", {"said": said}, lambda key: log.record("act"))
        return {"log": [said]}

    return with_ledger(StateGraph(State).add_node("act", act).add_edge(START, "act").compile(checkpointer=saver))


def answer(folder: str, interrupt_id: str, said: str, how: str) -> str:
    """Answer, as somebody else does at the same moment, and go on; "done", or the error's code."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = approving(saver, folder)
        try:
            if how == "ledger":
                saver.ledger.answer({interrupt_id: said}, by=said)
                app.invoke(saver.ledger.resume_command("shared"), CONFIG)
            else:
                app.invoke(Command(resume={interrupt_id: said} if how == "id" else said), CONFIG)
        except LangGraphExtError as error:
            return error.code
        return "done"


def answer_and_die(folder: str, interrupt_id: str, said: str, where: str) -> None:
    """Answer, and die before resuming; or while the task that has the answer runs."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        if where == "before":
            saver.ledger.answer({interrupt_id: said})
            kill_myself()

        @durable(effect="write")
        def die(state: State) -> Any:
            interrupt("which?")
            kill_myself()

        builder = StateGraph(State).add_node("act", die).add_edge(START, "act")
        with_ledger(builder.compile(checkpointer=saver)).invoke(Command(resume=said), CONFIG)
