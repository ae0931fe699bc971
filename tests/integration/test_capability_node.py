"""A capability node: one tool, or one runnable, as a node whose call is on record, with hooks, retries and timeouts."""

from __future__ import annotations

import asyncio
import operator
import threading
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, Send

from langgraph_ext import AgentGraphEngine, Budget, CapabilityNode, EffectNotDone, LedgerSaver, ToolPolicy, with_ledger
from langgraph_ext.engine import Deny, Hooks, Replace, Retry
from langgraph_ext.errors import AdmissionError, BudgetExhausted, CapabilityFailed, InvalidArgument, SpecInvalid
from langgraph_ext.testing import ScriptedChatModel, say
from tests.support.apps import CONFIG
from tests.support.capable import Late, Order, Payments, Shop, Unheard
from tests.support.driver import Form

KEYED = ToolPolicy(effect="keyed")
REPEATABLE = ToolPolicy(effect="repeatable")
AGAIN = RetryPolicy(initial_interval=0, jitter=False, max_attempts=2, retry_on=Exception)


@pytest.fixture
def shop(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Shop:
    """In both forms."""
    return Shop(saver, form, loop, "sync")


def _louder(outcome: Any) -> Replace:
    """A hook behind a call."""
    return Replace({"value": outcome["value"].upper()})


def _heard_from(number: int) -> Any:
    """What comes of a payment, if what it came to before this call was lost."""

    def act(made: int) -> str:
        if made < number:
            raise Unheard("the line is dead")
        return f"receipt {made}"

    return act


# -- what it does


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("awaited", [True, False])
def test_a_tool_is_a_node_whose_call_is_on_record(shop: Shop, durability: str, awaited: bool) -> None:
    """With an attempt and an effect, of which the receipt is what it returned; and no agent run."""
    shop.durability, payments = durability, Payments()
    final = shop.run(shop.app(shop.paying(payments, awaited=awaited)), {"order": "7"})

    assert ("receipt 1", ["7"]) == (final["receipt"], [order for order, _ in payments])
    ledger = shop.saver.ledger
    [effect] = ledger.effects()
    assert ("pay", "committed", "receipt 1", payments.keys) == (
        effect.name,
        effect.status,
        effect.receipt,
        {effect.key},
    )
    [attempt] = ledger.attempts(ledger.runs()[0].run_id)
    assert ("pay", "capability", "succeeded", 1) == (attempt.node, attempt.kind, attempt.status, attempt.number)
    assert ([], []) == (AgentGraphEngine(ledger).runs(), ledger.children(attempt.run_id))
    assert [] == ledger.verify()


def test_what_is_called_is_named_and_mapped_as_its_user_says(shop: Shop) -> None:
    """A function with a docstring is a tool; its result may be anything that the saver's serde stores."""

    def pay(order: str) -> dict[str, Any]:
        """Pay."""
        return {"of": order}

    node = CapabilityNode(
        pay,
        name="till",
        input=lambda state: {"order": state["order"]},
        output=lambda receipt: {"receipt": receipt["of"], "log": ["paid"]},
    )
    final = shop.run(shop.app(node), {"order": "7"})
    assert ("7", ["paid"], "till") == (final["receipt"], final["log"], shop.saver.ledger.effects()[0].name)


def test_a_runnable_takes_the_state_and_returns_the_update(shop: Shop) -> None:
    """Where nothing else is said."""
    node = CapabilityNode(RunnableLambda(lambda state: {"receipt": state["order"] * 2}), name="doubled")
    assert "77" == shop.run(shop.app(node), {"order": "7"})["receipt"]
    assert [("doubled", "committed", 1)] == shop.effects()


def test_each_task_of_a_fan_out_has_a_call_of_its_own(shop: Shop) -> None:
    payments = Payments(lambda number: "paid")
    builder: Any = StateGraph(Order).add_node(shop.paying(payments, output=lambda receipt: {"log": [receipt]}))
    builder.add_conditional_edges(START, lambda state: [Send("pay", {"order": each}) for each in "789"], ["pay"])
    final = shop.run(builder.compile(checkpointer=shop.saver), {"log": []})
    assert (["paid"] * 3, {"7", "8", "9"}) == (final["log"], {order for order, _ in payments})
    assert (3, [("pay", "committed", 1)] * 3) == (len(payments.keys), shop.effects())


def test_so_has_each_round_and_each_subgraph(shop: Shop) -> None:
    """What was kept of one round is not taken for that of the next."""
    payments = Payments()
    node = shop.paying(
        payments,
        input=lambda state: {"order": str(len(state["log"]))},
        output=lambda receipt: {"log": [receipt]},
        hooks=Hooks(after_tool=[lambda outcome: None]),
    )
    inner: Any = StateGraph(Order).add_node(node).add_edge(START, "pay")
    inner.add_conditional_edges("pay", lambda state: "pay" if len(state["log"]) < 3 else END)
    outer: Any = StateGraph(Order).add_node("inner", inner.compile()).add_edge(START, "inner")
    final = shop.run(outer.compile(checkpointer=shop.saver), {"log": ["0"]})
    assert ["receipt 1", "receipt 2"] == final["log"][-2:]
    assert ([("1"), ("2")], 2) == ([order for order, _ in payments], len(payments.keys))


def test_two_that_one_body_calls_are_two_parts_of_its_task(shop: Shop) -> None:
    """Each with an attempt, a key and a record of its own: what one has kept is not the other's."""
    payments, bills = Payments(), Payments()
    first = shop.paying(payments, output=lambda value: value, hooks=Hooks(after_tool=[lambda outcome: None]))
    second = shop.paying(bills, name="bill", output=lambda value: value, hooks=Hooks(after_tool=[_louder]))
    tries = iter([True, False])

    def both(state: Any) -> Any:
        log = [first.invoke(state), second.invoke(state)]
        if next(tries):
            raise Unheard
        return {"log": log}

    async def aboth(state: Any) -> Any:
        log = [await first.ainvoke(state), await second.ainvoke(state)]
        if next(tries):
            raise Unheard
        return {"log": log}

    builder: Any = StateGraph(Order).add_node("both", RunnableLambda(both, afunc=aboth), retry_policy=AGAIN)
    final = shop.run(builder.add_edge(START, "both").compile(checkpointer=shop.saver), {"order": "7"})
    assert (["receipt 1", "RECEIPT 1"], 1, 1) == (final["log"], len(payments), len(bills))
    assert payments.keys != bills.keys


def test_each_of_them_has_a_record_of_its_own(shop: Shop) -> None:
    """A body makes a call again that has failed, when another one has come between: its hooks have decided."""
    asked: list[str] = []
    hooks = Hooks(before_tool=[lambda request: asked.append(request["name"])])
    failing = {"policy": KEYED, "hooks": hooks, "output": lambda value: value}
    payments, bills = Payments(_heard_from(2)), Payments()
    first, second = shop.paying(payments, **failing), shop.paying(bills, name="bill", **failing)

    def both(state: Any) -> Any:
        with pytest.raises(Unheard):
            first.invoke(state)
        return {"log": [second.invoke(state), first.invoke(state)]}

    async def aboth(state: Any) -> Any:
        with pytest.raises(Unheard):
            await first.ainvoke(state)
        return {"log": [await second.ainvoke(state), await first.ainvoke(state)]}

    builder: Any = StateGraph(Order).add_node("both", RunnableLambda(both, afunc=aboth)).add_edge(START, "both")
    final = shop.run(builder.compile(checkpointer=shop.saver), {"order": "7"})
    assert (["receipt 1", "receipt 2"], ["pay", "bill"]) == (final["log"], asked)


# -- what it refuses


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"policy": {"effect": "twice"}}, "schema_invalid"),
        ({"policy": {"on_unknown": "guess"}}, "schema_invalid"),
        ({"policy": {"effect": "keyed"}}, "keyed_without_key"),
        ({"timeout_seconds": 0}, "out_of_range"),
        ({"timeout_seconds": "soon"}, "schema_invalid"),
        ({"retry": {"calls": 0}}, "out_of_range"),
        ({"retry": Retry(wait_seconds=-1)}, "out_of_range"),
        ({"hooks": Hooks(before_model=[_louder])}, "hook_without_model"),
        ({"hooks": Hooks(before_tool=[_louder, _louder])}, "duplicate_name"),
        ({"interrupt_on": {"allowed_decisions": ["ignore"]}}, "schema_invalid"),
    ],
)
def test_what_cannot_be_is_told_where_it_is_made(wrong: dict[str, Any], code: str) -> None:
    def pay(order: str) -> str:
        """Pay."""
        raise AssertionError

    with pytest.raises(SpecInvalid) as refused:
        CapabilityNode(pay, input=dict, **wrong)
    assert [code] == [each.code for each in refused.value.diagnostics]


@pytest.mark.parametrize(
    ("what", "options", "told"),
    [
        (7, {}, "give a langchain-core tool, a function, or a runnable"),
        (dict, {}, "give a langchain-core tool, a function, or a runnable"),
        (lambda x: x, {}, "cannot be made a tool"),
        (RunnableLambda(len), {"policy": KEYED}, "takes no idempotency key"),
        (RunnableLambda(len), {"interrupt_on": True}, "make a tool of it"),
        (StateGraph(Order).add_node("a", len).add_edge(START, "a").compile(), {}, "give it to add_node"),
        (Payments().tool(), {}, "say with input="),
        (Payments().tool(), {"input": "order"}, "is no function"),
        (Payments().tool(), {"input": dict, "output": ""}, "is no function"),
        (Payments().tool(), {"input": dict, "output": lambda: {}}, "a function of one argument"),
        (Payments().tool(), {"input": dict, "name": ""}, "it must be text"),
    ],
)
def test_so_is_what_is_none(what: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        CapabilityNode(what, **options)


def test_arguments_that_do_not_fit_begin_nothing(shop: Shop) -> None:
    payments = Payments()
    for wrong in ({"order": 7}, {}, "7", {"order": {1, 2}}):
        app = shop.app(shop.paying(payments, input=lambda state, wrong=wrong: wrong))
        with pytest.raises(InvalidArgument) as refused:
            shop.run(app, {"order": "7"}, {"configurable": {"thread_id": str(wrong)}})
        assert "tool_arguments_invalid" == refused.value.code
    assert ([], [], ["failed"] * 4) == (payments, shop.effects(), shop.outcomes())
    assert [] == [each for run in shop.saver.ledger.runs() for each in shop.saver.ledger.memos(run.run_id)]


def test_a_key_that_the_graph_has_not_begins_nothing_either(shop: Shop) -> None:
    payments = Payments()
    with pytest.raises(InvalidArgument, match="no such key"):
        shop.run(shop.app(shop.paying(payments, output="bill")), {"order": "7"})
    assert ([], []) == (payments, shop.effects())


def test_it_runs_where_its_call_can_be_put_on_record_alone(shop: Shop) -> None:
    """In a graph with a ledger, that stores a step before the next one."""
    payments = Payments()
    node = shop.paying(payments)
    with pytest.raises(AdmissionError, match="LedgerSaver"):
        node.invoke({"order": "7"})
    builder: Any = StateGraph(Order).add_node(node).add_edge(START, "pay")
    with pytest.raises(AdmissionError, match="LedgerSaver"):
        shop.run(builder.compile(checkpointer=InMemorySaver()), {"order": "7"})
    with pytest.raises(AdmissionError) as refused:
        shop.run(shop.app(node), {"order": "7"}, durability="exit")
    outer: Any = StateGraph(Order).add_node("inner", builder.compile(checkpointer=False)).add_edge(START, "inner")
    other: Any = {"configurable": {"thread_id": "other"}}
    with pytest.raises(AdmissionError) as elsewhere:
        shop.run(outer.compile(checkpointer=shop.saver), {"order": "7"}, other, durability="async")
    assert ("durability_required", "durability_required") == (refused.value.code, elsewhere.value.code)
    assert ([], []) == (payments, shop.effects())


# -- hooks


def test_hooks_change_what_is_called_and_what_counts(shop: Shop) -> None:
    """They see it as those of an agent's tools do; what it has really returned stays on record."""
    payments, seen = Payments(), []

    def cheaper(request: Any) -> Replace:
        seen.append(request)
        return Replace({**request, "args": {"order": "6"}})

    async def louder(outcome: Any) -> Replace:
        seen.append(outcome)
        return _louder(outcome)

    hooks = Hooks(before_tool=[cheaper], after_tool=[louder])
    final = shop.run(shop.app(shop.paying(payments, hooks=hooks)), {"order": "7"})
    [request, outcome] = seen
    assert ("RECEIPT 1", ["6"]) == (final["receipt"], [order for order, _ in payments])
    assert ("pay", {"order": "7"}, {"value": "receipt 1"}) == (request["name"], request["args"], outcome)
    assert "receipt 1" == shop.saver.ledger.effects()[0].receipt


def _raises(given: Any) -> None:
    raise Unheard


@pytest.mark.parametrize("hook", [lambda given: Deny("not today"), _raises, lambda given: Replace({"args": {}})])
def test_what_a_hook_denies_is_not_called_and_not_asked_again(shop: Shop, hook: Any) -> None:
    """A hook that raises, or that gives what does not fit, denies."""
    payments, asked = Payments(), []

    def counted(request: Any) -> Any:
        asked.append(request["id"])
        return hook(request)

    app = shop.app(shop.paying(payments, hooks=Hooks(before_tool=[counted])), retry_policy=AGAIN)
    with pytest.raises(CapabilityFailed) as denied:
        shop.run(app, {"order": "7"})
    assert ("denied", [], [], 1) == (denied.value.code, payments, shop.effects(), len(asked))
    assert ["failed", "failed"] == shop.outcomes()


def test_a_result_that_a_hook_denies_stays_on_record(shop: Shop) -> None:
    payments = Payments()
    app = shop.app(shop.paying(payments, hooks=Hooks(after_tool=[lambda outcome: Deny("forged")])))
    with pytest.raises(CapabilityFailed, match="forged"):
        shop.run(app, {"order": "7"})
    with pytest.raises(CapabilityFailed, match="forged"):
        shop.run(app, None)
    assert (1, [("pay", "committed", 1)]) == (len(payments), shop.effects())


def test_an_error_that_a_hook_makes_of_a_result_is_the_nodes(shop: Shop) -> None:
    error = {"error": {"code": "refused", "message": "the bank says no"}}
    app = shop.app(shop.paying(Payments(), hooks=Hooks(after_tool=[lambda outcome: Replace(error)])))
    with pytest.raises(CapabilityFailed, match="the bank says no") as failed:
        shop.run(app, {"order": "7"})
    assert "refused" == failed.value.code


@pytest.mark.parametrize(("behind", "counts"), [(_louder, "RECEIPT 1"), (lambda outcome: None, "receipt 1")])
def test_what_was_decided_and_returned_is_not_asked_for_again(shop: Shop, behind: Any, counts: str) -> None:
    """The node fails behind its call, and is tried again: the call, both hooks and the input are as they were."""
    payments, asked, tries = Payments(), [], iter([True, False])

    def noting(given: Any) -> Any:
        asked.append(given)
        return behind(given) if "value" in given else None

    def given(state: Any) -> Any:
        asked.append("input")
        return {"order": f"{state['order']}-{len(asked)}"}

    def update(receipt: Any) -> Any:
        if next(tries):
            raise Unheard
        return {"receipt": receipt}

    hooks = Hooks(before_tool=[noting], after_tool=[noting])
    node = shop.paying(payments, hooks=hooks, input=given, output=update)
    final = shop.run(shop.app(node, retry_policy=AGAIN), {"order": "7"})
    assert (counts, 1, 3) == (final["receipt"], len(payments), len(asked))
    assert ["failed", "succeeded"] == shop.outcomes()


# -- a call that fails


@pytest.mark.parametrize("policy", [KEYED, REPEATABLE])
@pytest.mark.parametrize("awaited", [True, False])
def test_a_call_that_may_be_made_again_is_by_the_next_attempt(shop: Shop, policy: Any, awaited: bool) -> None:
    """With what it was called with first, and the same key."""
    payments, inputs = Payments(_heard_from(2)), iter("78")
    node = shop.paying(payments, awaited=awaited, policy=policy, input=lambda state: {"order": next(inputs)})
    final = shop.run(shop.app(node, retry_policy=AGAIN), {"order": "7"})
    assert ("receipt 2", ["7", "7"], 1) == (final["receipt"], [order for order, _ in payments], len(payments.keys))
    assert ([("pay", "committed", 2)], ["failed", "succeeded"]) == (shop.effects(), shop.outcomes())
    assert ["effect.started", "effect.unknown", "effect.retried", "effect.committed"] == shop.events("effect")


def test_a_call_that_did_nothing_is_made_by_the_next_attempt_whatever_the_policy(shop: Shop) -> None:
    def act(made: int) -> str:
        if made == 1:
            raise EffectNotDone("the till is closed")
        return "receipt"

    payments = Payments(act)
    final = shop.run(shop.app(shop.paying(payments), retry_policy=AGAIN), {"order": "7"})
    assert ("receipt", 2) == (final["receipt"], len(payments))
    assert [("pay", "not_happened", 1), ("pay", "committed", 1)] == shop.effects()


class _NotYet(EffectNotDone):
    is_retryable = True


def test_it_is_not_made_again_at_once_whatever_its_error_says(shop: Shop) -> None:
    """The next call is an effect of its own."""

    def act(made: int) -> str:
        if made == 1:
            raise _NotYet("the till is closed")
        return "receipt"

    payments = Payments(act)
    app = shop.app(shop.paying(payments, retry=Retry(calls=3, wait_seconds=0.0)))
    with pytest.raises(EffectNotDone):
        shop.run(app, {"order": "7"})
    assert ("receipt", 2) == (shop.run(app, None)["receipt"], len(payments))


@pytest.mark.parametrize("policy", [None, KEYED])
def test_a_failure_that_says_so_is_tried_again_at_once(shop: Shop, policy: Any) -> None:
    """As often as `retry` allows, in one attempt; each call is on record."""

    def act(made: int) -> str:
        if made < 3:
            raise Late
        return f"receipt {made}"

    payments = Payments(act)
    node = shop.paying(payments, policy=policy, retry=Retry(calls=3, wait_seconds=0.0))
    final = shop.run(shop.app(node), {"order": "7"})
    assert ("receipt 3", 3, 1) == (final["receipt"], len(payments), len(payments.keys))
    assert ([("pay", "committed", 3)], ["succeeded"]) == (shop.effects(), shop.outcomes())


def test_retries_count_over_attempts(shop: Shop) -> None:
    """The next attempt makes the one call that its policy asks for, and no more."""

    def act(made: int) -> str:
        raise Late

    payments = Payments(act)
    app = shop.app(shop.paying(payments, policy=KEYED, retry=Retry(calls=2, wait_seconds=0.0)))
    for made in (2, 3):
        with pytest.raises(Late):
            shop.run(app, {"order": "7"} if made == 2 else None)
        assert made == len(payments)
    assert [("pay", "unknown", 3)] == shop.effects()


def test_a_failure_that_does_not_say_so_is_not_tried_again_at_once(shop: Shop) -> None:
    payments = Payments(_heard_from(2))
    app = shop.app(shop.paying(payments, policy=KEYED, retry=Retry(calls=5, wait_seconds=0.0)))
    with pytest.raises(Unheard):
        shop.run(app, {"order": "7"})
    assert 1 == len(payments)


def test_a_coroutine_that_is_late_is_stopped(shop: Shop) -> None:
    """What it did is in doubt; a policy that may, calls it again."""
    stopped: list[int] = []

    async def slow(made: int) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(made)
        return "never"

    payments = Payments(lambda made: slow(made) if made == 1 else "receipt")
    app = shop.app(shop.paying(payments, policy=KEYED))
    with pytest.raises(CapabilityFailed) as late:
        shop.run(shop.app(shop.paying(payments, policy=KEYED, timeout_seconds=0.05)), {"order": "7"})
    assert ("deadline_exceeded", [1], [("pay", "unknown", 1)]) == (late.value.code, stopped, shop.effects())
    assert "receipt" == shop.run(app, None)["receipt"]
    assert (1, [("pay", "committed", 2)]) == (len(payments.keys), shop.effects())


def test_a_function_that_is_late_goes_on_and_is_not_called_beside_itself(shop: Shop) -> None:
    """Nobody calls it again, or is asked, before it has come back."""
    comes = threading.Event()

    def act(made: int) -> str:
        if made == 1:
            comes.wait(60)
        return f"receipt {made}"

    payments = Payments(act)
    app = shop.app(shop.paying(payments, awaited=False, policy=KEYED))
    with pytest.raises(CapabilityFailed, match="took longer"):
        shop.run(shop.app(shop.paying(payments, awaited=False, policy=KEYED, timeout_seconds=0.5)), {"order": "7"})
    with pytest.raises(AdmissionError) as running:
        shop.run(app, None)
    assert ("attempt_running", 1) == (running.value.code, len(payments))
    comes.set()
    next(each for each in shop.saver.ledger.follow() if each.name == "effect.unknown")  # which the thread says
    assert "receipt 2" == shop.run(app, None)["receipt"]


def test_a_graph_that_is_cancelled_stops_its_call(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    begun = asyncio.Event()

    async def slow(made: int) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    shop, payments = Shop(saver, "async", loop, "sync"), Payments(slow)
    app = shop.app(shop.paying(payments, policy=KEYED))

    async def cancelled() -> None:
        running = asyncio.ensure_future(app.ainvoke({"order": "7"}, CONFIG))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    loop.run_until_complete(cancelled())
    assert (["cancelled"], [("pay", "unknown", 1)]) == (shop.outcomes(), shop.effects())
    payments.act = lambda made: "receipt"
    assert "receipt" == shop.run(app, None)["receipt"]


# -- LangGraph's tools


def test_langgraphs_injections_work(shop: Shop) -> None:
    """State, a field of it, the store, the runtime, the call's id, which stays the same over attempts."""
    seen: list[dict[str, Any]] = []

    @tool
    async def look(
        x: int,
        state: Annotated[dict[str, Any], InjectedState],
        order: Annotated[str, InjectedState("order")],
        store: Annotated[BaseStore, InjectedStore],
        runtime: ToolRuntime,
        call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Look."""
        seen.append({"x": x, "order": order, "state": state["order"], "ids": {call_id, runtime.tool_call_id}})
        found = store.get(("shop",), "colour")
        if len(seen) == 1:
            raise Unheard
        return found.value["is"] if found else "none"

    store = InMemoryStore()
    store.put(("shop",), "colour", {"is": "red"})
    node = CapabilityNode(look, input=lambda state: {"x": 1, "order": "forged"}, output="receipt", policy=REPEATABLE)
    builder: Any = StateGraph(Order).add_node(node, retry_policy=AGAIN).add_edge(START, "look")
    final = shop.run(builder.compile(checkpointer=shop.saver, store=store), {"order": "7"})
    assert isinstance(final["receipt"], ToolMessage)  # who wants the id of a tool call answers one
    [call_id] = seen[0]["ids"]
    assert ("red", call_id) == (final["receipt"].content, final["receipt"].tool_call_id)
    assert [{"x": 1, "order": "7", "state": "7", "ids": {call_id}}] * 2 == seen


def test_what_the_graph_cannot_give_begins_nothing(shop: Shop) -> None:
    @tool
    def look(store: Annotated[BaseStore, InjectedStore]) -> str:
        """Look."""
        raise AssertionError

    app = shop.app(CapabilityNode(look, input=lambda state: {}, output="receipt"))
    with pytest.raises(ValueError, match="compiled without one"):
        shop.run(app, {"order": "7"})
    assert [] == shop.effects()


@pytest.mark.parametrize("alone", [True, False])
def test_a_command_is_the_graphs(shop: Shop, alone: bool) -> None:
    """Also beside a result; where it leads is gone to, and nothing is called again."""
    calls: list[str] = []

    @tool
    def put(item: str) -> Any:
        """Put."""
        calls.append(item)
        command = Command(update={"log": [item]}, goto="last")
        return command if alone else [command, "done"]

    node = CapabilityNode(put, input=lambda state: {"item": "tea"}, output="receipt")
    tries = iter([True, False])

    def last(state: Any) -> Any:
        if next(tries):
            raise Unheard
        return {"log": ["last"]}

    builder: Any = StateGraph(Order).add_node(node, destinations=("last",)).add_node("last", last)
    app = builder.add_edge(START, "put").compile(checkpointer=shop.saver)
    with pytest.raises(Unheard):
        shop.run(app, {"order": "7", "log": []})
    final = shop.run(app, None)
    assert (["tea", "last"], None if alone else "done", ["tea"]) == (final["log"], final.get("receipt"), calls)


class Chat(Order):
    messages: Annotated[list[Any], operator.add]


def test_a_tool_call_is_answered_with_its_message(shop: Shop) -> None:
    """As LangChain's tools do; a call of another tool is refused."""
    payments = Payments()
    asked = AIMessage("", tool_calls=[{"name": "pay", "args": {"order": "7"}, "id": "call-1"}])
    node = shop.paying(
        payments,
        input=lambda state: state["messages"][-1].tool_calls[0],
        output=lambda message: {"messages": [message]},
    )
    final = shop.run(shop.app(node, Chat), {"messages": [asked]})
    assert ("receipt 1", "call-1") == (final["messages"][-1].content, final["messages"][-1].tool_call_id)
    other = AIMessage("", tool_calls=[{"name": "refund", "args": {"order": "7"}, "id": "call-1"}])
    with pytest.raises(InvalidArgument, match="'refund'"):
        shop.run(shop.app(node, Chat), {"messages": [other]}, {"configurable": {"thread_id": "other"}})
    assert 1 == len(payments)


# -- models


def test_a_model_in_a_chain_counts_once(shop: Shop) -> None:
    """In the budget of the graph's run, which refuses one call more, and lets it be made when it was raised."""
    model = ScriptedChatModel(script=[say("one", usage=(5, 2)), say("two", usage=(5, 2))], by="request")
    chain = ChatPromptTemplate.from_template("{order}") | model
    node = CapabilityNode(
        chain, name="ask", policy=REPEATABLE, output=lambda answer: {"receipt": answer, "log": [answer.text]}
    )
    builder: Any = StateGraph(Order).add_node(node).add_node("again", _next_order).add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: "again" if len(state["log"]) < 2 else END, ["again", END])
    app = with_ledger(
        builder.add_edge("again", "ask").compile(checkpointer=shop.saver), budget=Budget(turns=1, tokens_per_call=50)
    )
    with pytest.raises(BudgetExhausted):
        shop.run(app, {"order": "7", "log": []})
    ledger = shop.saver.ledger
    shop.saver.database.transact(lambda tx: None)  # behind what was queued before
    [run] = ledger.runs()
    assert (1, 1, 5) == (len(model.calls), len(ledger.calls(run.run_id)), ledger.usage(run.run_id).tokens_in)
    ledger.raise_budget(run.run_id, turns=2)
    final = shop.run(app, None)
    assert (["one", "two"], "two", 2) == (final["log"], final["receipt"].text, len(ledger.calls(run.run_id)))


def _next_order(state: Any) -> Any:
    return {"order": "8"}


def test_a_model_alone_may_be_called_again_and_its_tokens_are_seen_at_the_node(shop: Shop) -> None:
    model = ScriptedChatModel(script=["one two"])
    node = CapabilityNode(model, name="ask", input=lambda state: state["order"], output="receipt")
    parts = shop.stream(shop.app(node), {"order": "7"}, ["messages"])
    assert "one two" == "".join(piece.text for _, (piece, _) in parts)
    assert {"ask"} == {about["langgraph_node"] for _, (_, about) in parts}
    assert "repeatable" == node._capability.effect


# -- telling of it


def test_a_graph_tells_of_its_policy(shop: Shop) -> None:
    """With another policy it is another definition, which is named, and goes on."""
    payments = Payments(_heard_from(2))
    with pytest.raises(Unheard):
        shop.run(with_ledger(shop.app(shop.paying(payments, policy=KEYED))), {"order": "7"})
    final = shop.run(with_ledger(shop.app(shop.paying(payments, policy=REPEATABLE))), None)
    [changed] = [each for each in shop.saver.ledger.events(limit=100) if each.name == "run.definition_changed"]
    assert ("receipt 2", ["pay"]) == (final["receipt"], changed.details["nodes"])
