"""L34–L36, L52: calls that a durable body makes by itself are admitted, billed and kept like those of chat models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.types import Command, interrupt

from langgraph_ext import Budget, LedgerSaver, durable, with_ledger
from langgraph_ext.errors import AdmissionError, BudgetExhausted, InvalidArgument, LangGraphExtError
from langgraph_ext.ledger import CallRecord, Dimension
from langgraph_ext.nodes import Frame
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, line, looped
from tests.support.driver import Form

TOLD = {"input_tokens": 10, "output_tokens": 5}


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


class Lab:
    """A provider's own client, in one form, and a node that calls it."""

    def __init__(self, acts: Acts, fails: int = 0) -> None:
        self.acts, self.dispatched, self.given = acts, 0, list[str]()
        self._fails: Iterator[int] = iter(range(fails))

    def ask(self) -> str:
        self.dispatched += 1
        for _ in self._fails:
            raise Boom("no answer")
        return f"answer {self.dispatched}"

    async def aask(self) -> str:
        return self.ask()

    def node(self, behind: Callable[[], Any] = lambda: None, times: int = 1, **said: Any) -> Any:
        """Calls, notes what it was given, and does what comes behind it."""
        said = {"prompt": "hello", "max_tokens": 50, "usage": lambda answer: TOLD, **said}

        def after(answers: list[Any]) -> Any:
            self.given += answers
            behind()
            return {"log": ["."]}

        if self.acts.form == "sync":

            @durable
            def call(state: State, frame: Frame) -> Any:
                return after([frame.call("lab:m-1", self.ask, **said) for _ in range(times)])

            return call

        @durable
        async def acall(state: State, frame: Frame) -> Any:
            return after([await frame.acall("lab:m-1", self.aask, **said) for _ in range(times)])

        return acall


def calls(acts: Acts) -> list[CallRecord]:
    return acts.saver.ledger.calls(acts.saver.ledger.runs()[0].run_id)


def tokens(acts: Acts) -> tuple[Any, Any]:
    spent = acts.saver.ledger.usage(acts.saver.ledger.runs()[0].run_id).spent[Dimension.TOKENS]
    return spent.used, spent.reserved


def refused(acts: Acts, app: Any, family: Any, given: Any = ("in",)) -> LangGraphExtError:
    with pytest.raises(family) as found:
        acts.run(app, given)
    return found.value  # type: ignore[no-any-return]


def failing_once(error: type[BaseException] = Boom) -> Callable[[], None]:
    left = iter([error])

    def behind() -> None:
        for each in left:
            raise each("behind its call")

    return behind


# -- the bill


@pytest.mark.parametrize("attached", [True, False])
def test_l36_a_call_is_on_record_with_what_it_used(acts: Acts, attached: bool) -> None:
    """In a graph that is not attached too, where the attempt has a lease of its own."""
    app = line(acts.saver, a=Lab(acts).node(role="writer"))
    acts.run(with_ledger(app) if attached else app)
    (call,) = calls(acts)

    assert ("a", "lab", "m-1", "model", "writer") == (call.node, call.provider, call.model, call.kind, call.role)
    assert ("settled", 10, 5, 5) == (call.status, call.tokens_in, call.tokens_out, call.prompt_bytes)
    assert acts.saver.ledger.attempts(call.run_id)[0].attempt_id == call.attempt_id
    assert ((15, 0), []) == (tokens(acts), acts.saver.ledger.verify())


def test_l34_no_more_calls_are_made_than_the_budget_allows(acts: Acts) -> None:
    """The refusal is a signal: nothing is written, the run ends by its budget, and goes on when that is raised."""
    lab = Lab(acts)
    app = with_ledger(line(acts.saver, a=lab.node(times=3)), budget=Budget(turns=2))
    error = refused(acts, app, BudgetExhausted)
    acts.saver.database.transact(lambda tx: None)  # behind what was queued before
    run = acts.saver.ledger.runs()[0]

    assert (2, "turns", "budget_exhausted") == (lab.dispatched, error.details["dimension"], run.status)
    acts.saver.ledger.raise_budget(run.run_id, turns=5)
    acts.run(app, None)
    assert (5, "succeeded") == (lab.dispatched, acts.saver.ledger.runs()[0].status)


def test_l34_a_call_without_a_bound_is_refused_where_tokens_are_limited(acts: Acts) -> None:
    """Neither a prompt without a limit of the answer nor the other way round says what it may use at most."""
    for said in ({"prompt": None}, {"max_tokens": None}):
        lab = Lab(acts)
        app = with_ledger(line(acts.saver, a=lab.node(**said)), budget=Budget(tokens=1000))
        assert ("call_unbounded", 0) == (refused(acts, app, AdmissionError).code, lab.dispatched)
    lab = Lab(acts)
    app = with_ledger(line(acts.saver, a=lab.node(prompt=None)), budget=Budget(tokens=1000, tokens_per_call=100))
    acts.run(app, ("in",))
    assert (1, 100) == (lab.dispatched, calls(acts)[0].bound_tokens)


def test_l34_a_cost_is_bounded_by_what_is_said_or_by_the_price(acts: Acts) -> None:
    said = Lab(acts).node(prompt=None, max_cost_usd=0.5, usage=lambda answer: {**TOLD, "cost_usd": 0.25})
    budget = Budget(cost_usd=1.0, price=lambda model, usage: 0.001 * sum(usage.values()))
    acts.run(with_ledger(line(acts.saver, a=said, b=Lab(acts).node()), budget=budget))
    first, second = calls(acts)

    assert [0.25, 0.015] == [first.cost_usd, second.cost_usd]
    assert (0, 0) == (first.reserved_cost_usd, second.reserved_cost_usd)


def test_l33_what_is_no_model_takes_no_turn_and_no_tokens(acts: Acts) -> None:
    search = Lab(acts).node(
        kind="tool", prompt=None, max_tokens=None, max_cost_usd=0.01, usage=lambda answer: {"cost_usd": 0.002}
    )
    budget = Budget(turns=0, tokens=0, cost_usd=1, price=lambda model, usage: 1.0)
    acts.run(with_ledger(line(acts.saver, a=search), budget=budget))
    usage = acts.saver.ledger.usage(acts.saver.ledger.runs()[0].run_id)

    assert ("tool", 0.002) == (calls(acts)[0].kind, calls(acts)[0].cost_usd)
    assert (0, 0.002) == (usage.spent[Dimension.TOKENS].used, usage.spent[Dimension.COST_USD].used)


def test_l35_a_call_that_raised_or_reports_nothing_keeps_its_bound(acts: Acts) -> None:
    lab = Lab(acts, fails=1)
    app = with_ledger(line(acts.saver, a=lab.node(usage=None)), budget=Budget(tokens=1000))
    acts.run(app)
    acts.run(app, None)
    failed, silent = calls(acts)

    assert [("interrupted", "Boom"), ("settled", None)] == [(c.status, c.error_type) for c in (failed, silent)]
    assert (failed.bound_tokens, silent.bound_tokens) == (failed.reserved_tokens, silent.reserved_tokens)
    assert (None, 2 * silent.reserved_tokens) == tokens(acts)


@pytest.mark.parametrize("told", [{"input_tokens": -1}, {"prompt_tokens": 3}, 7, {"cost_usd": float("nan")}])
def test_l36_a_report_that_can_be_none_is_refused_and_the_answer_is_kept(acts: Acts, told: Any) -> None:
    """It was paid for, whatever the report is: what it may have used stays reserved, and it is not paid for again."""
    lab = Lab(acts)
    app = with_ledger(line(acts.saver, a=lab.node(usage=lambda answer: told, memo="draft")))
    assert "invalid_usage" == refused(acts, app, InvalidArgument).code
    acts.run(app, None)

    assert (1, ["answer 1"]) == (lab.dispatched, lab.given)
    assert calls(acts)[0].bound_tokens == calls(acts)[0].reserved_tokens


@pytest.mark.parametrize("attached", [True, False])
def test_l18_a_run_that_was_cancelled_calls_nothing_more(acts: Acts, attached: bool) -> None:
    """And has ended with the body that was refused."""
    lab = Lab(acts)

    def cancels() -> None:
        acts.saver.ledger.cancel(acts.saver.ledger.runs()[0].run_id, mode="now")

    @durable
    def first(state: State, frame: Frame) -> Any:
        cancels()
        return {"log": [frame.call("lab:m", lab.ask)]}

    @durable
    async def afirst(state: State, frame: Frame) -> Any:
        await asyncio.to_thread(cancels)
        return {"log": [await frame.acall("lab:m", lab.aask)]}

    app = line(acts.saver, a=first if acts.form == "sync" else afirst)
    error = refused(acts, with_ledger(app) if attached else app, LangGraphExtError)
    assert ("cancelled", 0) == (error.code, lab.dispatched)
    acts.saver.database.transact(lambda tx: None)  # the invocation's end, which a loop does not wait for
    assert ("cancelled", []) == (acts.saver.ledger.runs()[0].status, acts.saver.ledger.verify())


# -- the answer that is kept


def test_l35_a_kept_answer_is_given_to_the_next_attempt(acts: Acts) -> None:
    """All of it, or what a function makes of it; the same the first time as behind the failure."""
    lab = Lab(acts)
    app = with_ledger(line(acts.saver, a=lab.node(failing_once(), memo=("draft", str.upper))), budget=Budget(turns=1))
    acts.run(app)
    acts.run(app, None)

    assert (["ANSWER 1", "ANSWER 1"], 1) == (lab.given, lab.dispatched)
    assert ([("draft", "ANSWER 1")], (15, 0)) == (
        [(memo.key, memo.value) for memo in acts.saver.ledger.memos(calls(acts)[0].run_id)],
        tokens(acts),
    )


def test_l35_a_kept_answer_is_given_to_an_attempt_that_goes_on_behind_a_question(acts: Acts) -> None:
    lab = Lab(acts)
    app = with_ledger(line(acts.saver, a=lab.node(lambda: interrupt("good?"), memo="draft")))
    acts.run(app)
    acts.run(app, Command(resume="yes"))

    assert (["answer 1", "answer 1"], 1) == (lab.given, lab.dispatched)


def test_l35_the_next_round_pays_for_an_answer_of_its_own(acts: Acts) -> None:
    """Unless the key says that it never changes."""
    lab, once = Lab(acts), Lab(acts)
    acts.run(looped(lab.node(memo="draft"), 3).compile(checkpointer=acts.saver))
    acts.run(
        looped(once.node(memo="once:plan"), 3).compile(checkpointer=acts.saver),
        config={"configurable": {"thread_id": "once"}},
    )

    assert ["answer 1", "answer 2", "answer 3"] == lab.given
    assert (["answer 1"] * 3, 1) == (once.given, once.dispatched)


def test_l35_an_answer_that_cannot_be_kept_is_billed(acts: Acts) -> None:
    """Too large, of a kind that nobody encodes, or the function that should make something of it fails."""
    for thread, keeps in {
        "large": lambda _: "x" * 3_000_000,
        "odd": lambda _: object(),
        "bad": lambda _: 1 / 0,
    }.items():
        lab = Lab(acts)
        app = with_ledger(line(acts.saver, a=lab.node(memo=("draft", keeps))))
        with pytest.raises((InvalidArgument, ZeroDivisionError)):
            acts.run(app, config={"configurable": {"thread_id": str(thread)}})
        assert [("settled", 10)] == [(call.status, call.tokens_in) for call in calls(acts)]
        assert [] == acts.saver.ledger.memos(calls(acts)[0].run_id)


def test_l35_one_key_is_no_two_answers_of_one_attempt(acts: Acts) -> None:
    lab = Lab(acts)
    app = with_ledger(line(acts.saver, a=lab.node(memo="draft", times=2)))
    assert "used twice" in str(refused(acts, app, InvalidArgument))
    assert 1 == lab.dispatched


def late(acts: Acts, frame: Frame, lab: Lab, memo: str | None) -> None:
    if acts.form == "sync":
        frame.call("lab:m", lab.ask, memo=memo)
    else:
        acts.loop.run_until_complete(frame.acall("lab:m", lab.aask, memo=memo))


def test_l52_who_is_no_running_attempt_any_more_calls_nothing(acts: Acts) -> None:
    frames: list[Frame] = []
    acts.run(line(acts.saver, a=acts.node("a", lambda frame: frames.append(frame) or {"log": []})))
    lab = Lab(acts)
    for memo in (None, "draft"):
        with pytest.raises(LangGraphExtError) as found:
            late(acts, frames[0], lab, memo)
        assert found.value.code in ("attempt_mismatch", "lease_lost")
    assert 0 == lab.dispatched


# -- what goes wrong


def test_l35_a_call_that_is_cancelled_is_closed_and_keeps_its_bound(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop
) -> None:
    async def story() -> None:
        called = asyncio.Event()

        async def hangs() -> None:
            called.set()
            await asyncio.sleep(60)

        @durable
        async def node(state: State, frame: Frame) -> Any:
            await frame.acall("lab:m", hangs, prompt="hello", max_tokens=50)

        running = asyncio.ensure_future(with_ledger(line(saver, a=node)).ainvoke({"log": []}, CONFIG))
        await called.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    loop.run_until_complete(story())
    (call,) = saver.ledger.calls(saver.ledger.runs()[0].run_id)
    assert ("interrupted", "CancelledError") == (call.status, call.error_type)
    assert (call.reserved_tokens, True) == (call.bound_tokens, call.reserved_tokens > 50)


def test_l35_no_call_that_is_cancelled_stays_open(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    """At whatever turn of the loop: whether it reserves, calls, or has answered."""

    async def story(turns: int) -> None:
        asked = asyncio.Event()

        @durable
        async def node(state: State, frame: Frame) -> Any:
            asked.set()
            await frame.acall("lab:m", lambda: asyncio.sleep(0), prompt="hello", max_tokens=50)
            return {"log": ["."]}

        config: Any = {"configurable": {"thread_id": f"t{turns}"}}
        running = asyncio.ensure_future(with_ledger(line(saver, a=node)).ainvoke({"log": []}, config))
        await asked.wait()
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    for turns in range(30):
        loop.run_until_complete(story(turns))
    saver.database.transact(lambda tx: None)
    found = [call for run in saver.ledger.runs() for call in saver.ledger.calls(run.run_id)]
    assert {"open"}.isdisjoint(str(call.status) for call in found)


@pytest.mark.parametrize(
    "said",
    [
        {"memo": ""},
        {"memo": ("draft", "answer")},
        {"usage": lambda: None},
        {"kind": "agent"},
        {"role": 7},
        {"max_tokens": -1},
        {"max_cost_usd": float("inf")},
        {"prompt": 7},
    ],
    ids=lambda said: next(iter(said)),
)
def test_l34_what_means_nothing_is_refused_before_anything_is_called(acts: Acts, said: dict[str, Any]) -> None:
    lab = Lab(acts)
    refused(acts, with_ledger(line(acts.saver, a=lab.node(**said))), InvalidArgument)
    assert (0, []) == (lab.dispatched, calls(acts))


def test_l34_a_sync_call_refuses_what_would_have_to_be_awaited(saver: LedgerSaver) -> None:
    async def later() -> None: ...

    def hidden() -> Any:
        return later()

    for index, fn in enumerate((later, hidden, lambda key: key)):

        @durable
        def node(state: State, frame: Frame, fn: Any = fn) -> Any:
            return {"log": [frame.call("lab:m", fn)]}

        with pytest.raises(InvalidArgument):
            line(saver, a=node).invoke({"log": []}, {"configurable": {"thread_id": str(index)}})
    found = [call for run in saver.ledger.runs() for call in saver.ledger.calls(run.run_id)]
    assert ["interrupted"] == [str(call.status) for call in found]
