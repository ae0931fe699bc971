"""What a capability node asks: whether a call is made, and what came of one of which nobody knows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy
from typer.testing import CliRunner

from langgraph_ext import CapabilityNode, EffectNotDone, LedgerSaver, ToolPolicy
from langgraph_ext.cli.app import app as cli
from langgraph_ext.engine import Approval, Hooks
from langgraph_ext.errors import CapabilityFailed
from tests.support.backends import SqliteBackend
from tests.support.capable import Order, Payments, Shop, Unheard
from tests.support.driver import Form

AGAIN = RetryPolicy(initial_interval=0, jitter=False, max_attempts=2, retry_on=Exception)


@pytest.fixture
def shop(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Shop:
    """In both forms."""
    return Shop(saver, form, loop, "sync")


def question(state: Any) -> Any:
    [asked] = state["__interrupt__"]
    return asked.value


def says(kind: str, **more: Any) -> Command[Any]:
    """What a person decides, of the question that is shown."""
    return Command(resume={"decisions": [{"type": kind, **more}]})


def unheard(made: int) -> str:
    if made == 1:
        raise Unheard("the line is dead")
    return f"receipt {made}"


# -- approvals


def test_a_call_waits_for_its_approval(shop: Shop, backend: SqliteBackend) -> None:
    """Which whoever goes on with the thread has, in another process too; hooks see what was approved."""
    payments, seen = Payments(), []
    hooks = Hooks(before_tool=[lambda request: seen.append(request["args"])])
    node = shop.paying(payments, interrupt_on=True, hooks=hooks)
    asked = question(shop.run(shop.app(node), {"order": "7"}))
    [action] = asked["action_requests"]
    assert ("approval", "pay", {"order": "7"}) == (asked["kind"], asked["capability"], action["args"])
    assert ([], [], ["paused"], []) == (payments, shop.effects(), shop.outcomes(), seen)
    shop.saver = backend.open()
    final = shop.run(shop.app(node), says("approve"))
    assert ("receipt 1", [{"order": "7"}], ["succeeded"]) == (final["receipt"], seen, shop.outcomes())


def test_a_person_may_change_answer_or_reject_it(shop: Shop) -> None:
    payments = Payments()
    app = shop.app(shop.paying(payments, interrupt_on=True))

    def decided(kind: str, **more: Any) -> Any:
        config: Any = {"configurable": {"thread_id": kind}}
        shop.run(app, {"order": "7"}, config)
        return shop.run(app, says(kind, **more), config)

    edited = decided("edit", edited_action={"name": "pay", "args": {"order": "8"}})
    responded = decided("respond", message="paid in cash")
    with pytest.raises(CapabilityFailed, match="too much") as rejected:
        decided("reject", message="too much")
    assert ("receipt 1", "paid in cash", "rejected") == (edited["receipt"], responded["receipt"], rejected.value.code)
    assert ["8"] == [order for order, _ in payments]


def test_what_was_rejected_stays_so(shop: Shop) -> None:
    """The node is tried again, and nobody is asked again."""
    payments = Payments()
    app = shop.app(shop.paying(payments, interrupt_on=True), retry_policy=AGAIN)
    shop.run(app, {"order": "7"})
    with pytest.raises(CapabilityFailed):
        shop.run(app, says("reject"))
    assert ([], ["failed", "failed"]) == (payments, shop.outcomes())


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("yes", "answer with"),
        ({"decisions": []}, "0 decisions given"),
        ({"decisions": [{"type": "edit", "edited_action": {"name": "pay", "args": {"order": 7}}}]}, "do not fit"),
        ({"request_id": "approval:other", "decisions": [{"type": "approve"}]}, "the answer is for request"),
        ({"decisions": [{"type": "respond", "message": "paid"}]}, "must be one of approve, edit"),
    ],
)
def test_an_answer_that_is_none_is_asked_again(shop: Shop, answer: Any, told: str) -> None:
    payments = Payments()
    app = shop.app(shop.paying(payments, interrupt_on={"allowed_decisions": ["approve", "edit"]}))
    shop.run(app, {"order": "7"})
    again = question(shop.run(app, Command(resume=answer)))
    assert (True, []) == (told in again["error"], payments)
    final = shop.run(app, Command(resume={"request_id": again["request_id"], "decisions": [{"type": "approve"}]}))
    assert ("receipt 1", 1) == (final["receipt"], len(payments))


def test_whether_it_is_needed_is_asked_once(shop: Shop) -> None:
    """And what a person is shown is what was written then."""
    looked: list[Any] = []

    def when(request: Any) -> bool:
        looked.append(request.tool_call["args"])
        return request.tool_call["args"]["order"] == "7"

    payments = Payments()
    approval = Approval(when=when, description=lambda call: f"pay {call['args']['order']}? ({len(looked)})")
    app = shop.app(shop.paying(payments, interrupt_on=approval))
    shop.run(app, {"order": "8"}, {"configurable": {"thread_id": "small"}})
    asked = question(shop.run(app, {"order": "7"}))
    assert ("pay 7? (2)", ["8"]) == (asked["action_requests"][0]["description"], [order for order, _ in payments])
    shop.run(app, says("approve"))
    assert [{"order": "8"}, {"order": "7"}] == looked


def test_a_tool_call_is_answered_by_a_person_with_its_message(shop: Shop) -> None:
    node = shop.paying(
        Payments(),
        interrupt_on=True,
        input=lambda state: state["messages"][-1].tool_calls[0],
        output=lambda message: {"messages": [message]},
    )
    asked = AIMessage("", tool_calls=[{"name": "pay", "args": {"order": "7"}, "id": "call-1"}])
    app = shop.app(node, MessagesState)
    shop.run(app, {"messages": [asked]})
    final = shop.run(app, says("respond", message="paid in cash"))
    assert ("tool", "paid in cash", "call-1") == (
        final["messages"][-1].type,
        final["messages"][-1].content,
        final["messages"][-1].tool_call_id,
    )


# -- doubts


def doubted(shop: Shop, payments: Payments, **options: Any) -> Any:
    """A graph whose call was made once, and has not been heard from."""
    app = shop.app(shop.paying(payments, **options))
    with pytest.raises(Unheard):
        shop.run(app, {"order": "7"})
    return app


def test_a_call_in_doubt_is_asked_about_and_not_made_again(shop: Shop) -> None:
    """Also where LangGraph tries the node again by itself. What it would have returned is what a person says."""
    payments = Payments(unheard)
    app = shop.app(shop.paying(payments), retry_policy=AGAIN)
    asked = question(shop.run(app, {"order": "7"}))
    [effect] = shop.saver.ledger.effects(status="unknown")
    assert ("doubt", "pay", effect.effect_id, {effect.key}) == (
        asked["kind"],
        asked["capability"],
        asked["effect_id"],
        {asked["idempotency_key"]} | payments.keys,
    )
    final = shop.run(app, says("respond", message="receipt 1"))
    assert ("receipt 1", 1, [("pay", "committed", 1)]) == (final["receipt"], len(payments), shop.effects())
    assert ["failed", "succeeded"] == shop.outcomes()


def test_a_person_may_have_it_made_again(shop: Shop) -> None:
    """With the same key."""
    payments = Payments(unheard)
    app = doubted(shop, payments)
    shop.run(app, None)
    final = shop.run(app, says("approve"))
    assert ("receipt 2", 2, 1) == (final["receipt"], len(payments), len(payments.keys))
    assert [("pay", "not_happened", 1), ("pay", "committed", 1)] == shop.effects()


def test_or_leave_it_at_that(shop: Shop) -> None:
    """Nobody is asked again; the doubt stays on record."""
    payments = Payments(unheard)
    app = doubted(shop, payments)
    shop.run(app, None)
    for given in (says("reject"), None):
        with pytest.raises(CapabilityFailed) as failed:
            shop.run(app, given)
        assert "outcome_unknown" == failed.value.code
    assert (1, [("pay", "unknown", 1)]) == (len(payments), shop.effects())


def test_or_say_it_from_any_process(shop: Shop, backend: SqliteBackend) -> None:
    """Before anybody is asked, or while the graph waits: what it is resumed with answers nothing then."""
    payments = Payments(unheard)
    app = doubted(shop, payments)
    question(shop.run(app, None))
    [effect] = shop.saver.ledger.effects(status="unknown")
    with backend.open() as elsewhere:
        elsewhere.ledger.resolve_effect(effect.effect_id, receipt={"found": True})
    final = shop.run(app, says("reject"))
    assert ({"found": True}, 1) == (final["receipt"], len(payments))


def test_what_somebody_has_answered_elsewhere_is_not_asked_again(shop: Shop) -> None:
    """The next doubt is another question, though the graph has waited at the first."""
    payments = Payments(lambda made: unheard(1 if made < 3 else made))
    app = doubted(shop, payments)
    first = question(shop.run(app, None))
    shop.saver.ledger.resolve_effect(first["effect_id"], happened=False)
    with pytest.raises(Unheard):
        shop.run(app, says("reject"))
    second = question(shop.run(app, None))
    assert first["effect_id"] != second["effect_id"]
    assert ("receipt 3", 1) == (shop.run(app, says("approve"))["receipt"], len(payments.keys))


def test_an_answer_to_a_doubt_that_nobody_was_shown_says_nothing(shop: Shop) -> None:
    """A click that comes twice approves no second call."""
    payments = Payments(unheard)
    app = doubted(shop, payments)
    asked = question(shop.run(app, says("approve")))
    assert (True, 1) == ("before this question was shown" in asked["error"], len(payments))
    assert "receipt 2" == shop.run(app, says("approve"))["receipt"]


def test_an_answer_before_its_question_says_nothing(shop: Shop) -> None:
    """One to an approval is not taken for one to the doubt that comes behind it."""
    payments = Payments(unheard)
    app = shop.app(shop.paying(payments, interrupt_on=True), retry_policy=AGAIN)
    shop.run(app, {"order": "7"})
    asked = question(shop.run(app, says("approve")))
    assert ("doubt", 1) == (asked["kind"], len(payments))
    stale = question(shop.run(app, Command(resume={"request_id": "approval:x", "decisions": [{"type": "approve"}]})))
    assert (True, 1) == ("the answer is for request" in stale["error"], len(payments))
    assert "receipt 1" == shop.run(app, says("respond", message="receipt 1"))["receipt"]


def test_it_may_be_an_error_each_time(shop: Shop) -> None:
    """Until somebody has said what came of it; hooks are asked of results alone."""
    payments = Payments(unheard)
    hooks = Hooks(after_tool=[lambda outcome: None])
    app = doubted(shop, payments, policy=ToolPolicy(on_unknown="error"), hooks=hooks)
    for _ in range(2):
        with pytest.raises(CapabilityFailed, match="nobody knows"):
            shop.run(app, None)
    [effect] = shop.saver.ledger.effects()
    shop.saver.ledger.resolve_effect(effect.effect_id, receipt="found")
    assert ("found", 1) == (shop.run(app, None)["receipt"], len(payments))


@pytest.mark.parametrize("awaited", [True, False])
def test_a_function_may_find_out(shop: Shop, awaited: bool) -> None:
    """It is given the arguments and the key, and returns what the call would have."""
    payments, asked = Payments(unheard), []

    def look(args: Any, key: str) -> Any:
        asked.append((args, key))
        return "found"

    async def alook(args: Any, key: str) -> Any:
        return look(args, key)

    app = doubted(shop, payments, policy=ToolPolicy(on_unknown=alook if awaited else look))
    final = shop.run(app, None)
    assert ("found", 1, [("pay", "committed", 1)]) == (final["receipt"], len(payments), shop.effects())
    assert [({"order": "7"}, key) for key in payments.keys] == asked


def test_a_function_that_is_sure_that_nothing_was_done_has_it_made(shop: Shop) -> None:
    def look(args: Any, key: str) -> Any:
        raise EffectNotDone("no such payment")

    payments = Payments(unheard)
    final = shop.run(doubted(shop, payments, policy=ToolPolicy(on_unknown=look)), None)
    assert ("receipt 2", 1) == (final["receipt"], len(payments.keys))
    assert [("pay", "not_happened", 1), ("pay", "committed", 1)] == shop.effects()


class _Unstorable:
    """What no serde stores."""

    def __reduce__(self) -> Any:
        raise TypeError


@pytest.mark.parametrize("look", [lambda args, key: None, lambda args, key: 1 / 0, lambda args, key: _Unstorable()])
def test_where_a_function_cannot_tell_a_person_is_asked(shop: Shop, look: Any) -> None:
    payments = Payments(unheard)
    app = doubted(shop, payments, policy=ToolPolicy(on_unknown=look))
    assert "doubt" == question(shop.run(app, None))["kind"]
    assert ("cash", 1) == (shop.run(app, says("respond", message="cash"))["receipt"], len(payments))


def test_somebody_may_let_an_interrupted_attempt_be_followed_by_a_call(saver: LedgerSaver) -> None:
    """As of every node with effects: `ledger.authorize_recovery`."""
    loop = asyncio.new_event_loop()
    shop, payments = Shop(saver, "sync", loop, "sync"), Payments()

    def stopped(made: int) -> str:
        if made == 1:
            raise KeyboardInterrupt
        return f"receipt {made}"

    payments.act = stopped
    app = shop.app(shop.paying(payments))
    loop.close()
    with pytest.raises(KeyboardInterrupt):
        shop.run(app, {"order": "7"})
    [attempt] = saver.ledger.attempts(saver.ledger.runs()[0].run_id)
    saver.ledger.authorize_recovery(attempt.attempt_id)
    final = shop.run(app, None)
    assert ("receipt 2", 1, [("pay", "committed", 2)]) == (final["receipt"], len(payments.keys), shop.effects())


# -- the command line


def test_a_run_is_shown_with_its_attempts_its_call_and_its_question(
    saver: LedgerSaver, backend: SqliteBackend, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    shop, payments = Shop(saver, "sync", loop, "sync"), Payments(unheard)
    app = doubted(shop, payments)
    shop.run(app, None)
    [run], [effect] = saver.ledger.runs(), saver.ledger.effects()

    def told(*args: str) -> str:
        found = CliRunner().invoke(cli, [*args, "--db", backend.url()])
        assert 0 == found.exit_code, found.output
        return found.output

    shown = told("show", run.run_id)
    known = f"effect pay  unknown  id {effect.effect_id}"
    for each in (known, "attempt 1  failed", "attempt 2  paused", "question doubt", "1 effect in doubt"):
        assert each in shown
    told("resolve-effect", effect.effect_id, "--receipt", '"found"')
    assert "found" == shop.run(app, says("approve"))["receipt"]
    assert "effect pay  committed" in told("show", run.run_id)


def test_a_node_of_another_name_is_called_by_that(shop: Shop) -> None:
    """The effect has the capability's name, the attempt the node's."""
    payments = Payments()
    builder: Any = StateGraph(Order).add_node("till", shop.paying(payments)).add_edge(START, "till")
    shop.run(builder.compile(checkpointer=shop.saver), {"order": "7"})
    assert ([("till", 1, "succeeded")], [("pay", "committed", 1)]) == (shop.attempts(), shop.effects())
    assert isinstance(shop.paying(payments), CapabilityNode)
