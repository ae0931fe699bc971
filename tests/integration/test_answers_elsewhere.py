"""L24, L25: what an answer must not reach: a later question, another run's, one that is not asked any more."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver, with_ledger
from langgraph_ext.errors import ConflictError, LangGraphExtError, LeaseError
from langgraph_ext.ledger import invocations, resuming
from tests.support.acted import Acts
from tests.support.apps import CONFIG, State, asks, line, says
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async", "exit"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under every durability."""
    return Acts(saver, form, request.param, loop)


def log(app: Any) -> list[str]:
    return app.get_state(CONFIG).values["log"]  # type: ignore[no-any-return]


def refused(acts: Acts, app: Any, given: Any, config: Any) -> str:
    """The code with which an invocation is refused."""
    with pytest.raises(LangGraphExtError) as refusal:
        acts.run(app, given, config)
    return refusal.value.code


@pytest.mark.parametrize("given", ["yes", {}])
def test_l25_an_answer_that_waited_for_its_thread_answers_no_later_question(
    saver: LedgerSaver, form: Form, given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two people say yes to the same question; the second one waits, and meanwhile another question is asked."""
    entered, waits, go_on = threading.Event(), threading.Event(), threading.Event()
    begin = invocations.begin

    def noted(tx: Any, **asked: Any) -> Any:
        try:
            return begin(tx, **asked)
        except LeaseError:
            waits.set()
            raise

    monkeypatch.setattr(invocations, "begin", noted)
    told: list[Any] = []

    def node(state: State) -> Any:
        first = interrupt("first")
        entered.set()
        assert go_on.wait(30)
        return {"log": [str(first), str(interrupt("second"))]}

    app = with_ledger(line(saver, ask=node), on_busy="wait")

    def say() -> None:
        try:
            if form == "sync":
                app.invoke(Command(resume=given), CONFIG)
            else:
                asyncio.run(app.ainvoke(Command(resume=given), CONFIG))
        except ConflictError as error:
            told.append((error.code, error.details["open"]))

    app.invoke({"log": []}, CONFIG)
    clicks = [threading.Thread(target=say) for _ in range(2)]
    clicks[0].start()
    assert entered.wait(30)
    clicks[1].start()
    assert waits.wait(30)
    go_on.set()
    for click in clicks:
        click.join()

    (second,) = saver.ledger.interrupts(pending=True)
    assert ("second", [("interrupt_not_pending", [second.interrupt_id])]) == (second.value, told)
    app.invoke(Command(resume="2"), CONFIG)
    assert ([str(given), "2"], []) == (log(app), saver.ledger.verify())


def test_l25_who_waited_to_answer_goes_past_no_breakpoint(saver: LedgerSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question he meant has been answered by then, and the run stands at a breakpoint behind it."""
    app = with_ledger(line(saver, ask=asks("sure?"), after=says("after")), on_busy="wait")
    app.invoke({"log": []}, CONFIG)
    seen = saver.database.read(resuming.ask_open("t"))
    app.invoke(Command(resume="yes"), CONFIG, interrupt_before=["after"])
    monkeypatch.setattr(resuming, "ask_open", lambda thread_id: lambda tx: seen)
    with pytest.raises(ConflictError) as refusal:
        app.invoke(Command(resume="yes"), CONFIG)

    assert ("interrupt_not_pending", ["yes"]) == (refusal.value.code, log(app))


@pytest.mark.parametrize("given", [None, Command(update={"log": ["edited"]})], ids=["none", "update"])
def test_l25_who_branches_off_at_the_head_uses_no_answer(acts: Acts, given: Any) -> None:
    """Its config names the head: it asks anew, and the run there keeps its question, with the answer, and its pause."""
    app = with_ledger(line(acts.saver, ask=asks("sure?")))
    acts.run(app)
    (question,) = acts.saver.ledger.interrupts()
    acts.saver.ledger.answer({question.interrupt_id: "yes"})
    acts.run(app, given, app.get_state(CONFIG).config)

    old, new = acts.saver.ledger.interrupts()
    assert (None, "yes", None) == (old.closed_at, old.answer, new.answer)
    assert ["paused", "paused"] == [str(run.status) for run in acts.saver.ledger.runs()]
    acts.run(app, Command(resume="no"))
    assert ("no", []) == (log(app)[-1], acts.saver.ledger.verify())


@pytest.mark.parametrize("otherwise", [300, {1, 2}], ids=["json", "serde"])
def test_l24_what_is_shown_is_what_is_asked(acts: Acts, otherwise: Any) -> None:
    """A task that runs again asks something else: whoever answers sees that. Once there is an answer, it stands."""
    now = [{"kind": "pay", "amount": 30}, {"kind": "refund", "amount": otherwise}]

    def node(state: State) -> Any:
        return {"log": [str(interrupt(now[0]))]}

    app = with_ledger(line(acts.saver, ask=node))
    acts.run(app)
    now.reverse()
    acts.run(app, None)
    (question,) = acts.saver.ledger.interrupts(pending=True)
    assert (now[0], "refund") == (question.value, question.kind)
    assert (2 if otherwise == 300 else 1) == acts.events("interrupt").count("interrupt.requested")

    acts.saver.ledger.answer({question.interrupt_id: "yes"})
    now.reverse()
    acts.run(line(acts.saver, ask=asks(now[0])), None)  # not attached: nobody tells it of the answer
    (question,) = acts.saver.ledger.interrupts()
    assert (now[1], "yes", []) == (question.value, question.answer, acts.saver.ledger.verify())


def test_l25_an_answer_on_record_counts_at_an_older_checkpoint_too(acts: Acts) -> None:
    """The question of a run beside which another one was begun: the first answer is the one that its task gets."""
    if acts.durability == "exit":
        pytest.skip("the checkpoint to branch off from is not stored")
    app = with_ledger(line(acts.saver, a=says("a"), ask=asks("sure?")))
    acts.run(app)
    there = app.get_state(CONFIG).config
    acts.run(app, None, next(each for each in app.get_state_history(CONFIG) if each.next == ("a",)).config)
    (question, _) = acts.saver.ledger.interrupts(pending=True)
    acts.saver.ledger.answer({question.interrupt_id: "first"})

    for second in ("second", {question.interrupt_id: "second"}):
        assert "answer_conflict" == refused(acts, app, Command(resume=second), there)
    assert ["in", "a", "first"] == acts.run(app, Command(resume={question.interrupt_id: "first"}), there)["log"]
    assert [] == acts.saver.ledger.verify()
