"""L18, L33–L38: models called in attached graphs are counted and bounded, whoever calls them and however."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import tool
from langgraph.errors import GraphDrained
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy

from langgraph_ext import Budget, LedgerSaver
from langgraph_ext.database import open_database
from langgraph_ext.errors import AdmissionError, BudgetExhausted, InvalidArgument, LangGraphExtError
from langgraph_ext.ledger import CallRecord, Dimension, Spent, model_calls
from langgraph_ext.ledger.records import Run, VisitStatus
from langgraph_ext.saver.callbacks import with_ledger
from tests.database.notes import until
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, asks, fan, line, says
from tests.support.driver import Form
from tests.support.models import dispatches, scripted, used

TURNS, TOKENS = Dimension.TURNS, Dimension.TOKENS


@pytest.fixture(params=["sync", "async", "exit"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under every durability."""
    logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)  # it tells of every refusal
    return Acts(saver, form, request.param, loop)


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "dispatches")


def newest(acts: Acts) -> Run:
    acts.saver.database.transact(lambda tx: None)
    return acts.saver.ledger.runs()[0]


def calls(acts: Acts) -> list[CallRecord]:
    return acts.saver.ledger.calls(newest(acts).run_id)


def spent(acts: Acts, dimension: Dimension = TURNS) -> Spent:
    return acts.saver.ledger.usage(newest(acts).run_id).spent[dimension]


def calling(acts: Acts, model: BaseChatModel, times: int = 1, then: Callable[[], Any] = lambda: None) -> Any:
    """A plain node that calls a model."""
    if acts.form == "sync":

        def node(state: State) -> Any:
            said = [model.invoke("hello").content for _ in range(times)]
            return then() or {"log": said}

        return node

    async def anode(state: State) -> Any:
        said = [(await model.ainvoke("hello")).content for _ in range(times)]
        return then() or {"log": said}

    return anode


def refused(acts: Acts, app: Any, given: Any = ("in",), family: Any = BudgetExhausted) -> LangGraphExtError:
    with pytest.raises(family) as found:
        acts.run(app, given)
    return found.value  # type: ignore[no-any-return]


# -- what is counted


def test_l36_every_call_is_on_record_with_what_it_used(acts: Acts) -> None:
    """In a graph without a budget too, with the node, task and model that it belongs to."""
    model = scripted(usage=used(10, 5, input_token_details={"cache_read": 4}), max_tokens=50)
    acts.run(with_ledger(line(acts.saver, a=calling(acts, model, 2), b=says("b"))))
    first, second = calls(acts)

    assert [("a", 1, "settled"), ("a", 2, "settled")] == [(c.node, c.ordinal, c.status) for c in (first, second)]
    assert ("scripted", 10, 5, 4, 5) == (
        first.model,
        first.tokens_in,
        first.tokens_out,
        first.cache_read,
        first.prompt_bytes,
    )
    assert (2, 30, 0) == (spent(acts).used, spent(acts, TOKENS).used, spent(acts, TOKENS).reserved)
    assert first.task_id is not None
    assert [] == acts.saver.ledger.verify()


def test_l35_what_a_model_does_not_report_is_not_known(acts: Acts) -> None:
    """The exact figure is None, the known part stands beside it, and the bound stays reserved."""
    silent, telling = scripted(max_tokens=50), scripted(usage=used(10, 5), max_tokens=50)
    acts.run(with_ledger(line(acts.saver, a=calling(acts, silent), b=calling(acts, telling))))
    bound = calls(acts)[0].bound_tokens

    assert Spent(limit=None, used=None, known=15, reserved=bound) == spent(acts, TOKENS)
    assert bound is not None
    assert bound > 50


def test_l35_a_streamed_answer_is_counted_when_it_has_come(acts: Acts) -> None:
    """One whose stream was left before its end gave no answer: its bound stays reserved."""
    model = scripted(usage=used(10, 5), max_tokens=50)

    def node(state: State) -> Any:
        said = [str(chunk.content) for chunk in model.stream("hello")]
        stream = model.stream("hello")
        next(stream)
        stream.close()  # type: ignore[attr-defined]
        return {"log": said}

    async def anode(state: State) -> Any:
        said = [str(chunk.content) async for chunk in model.astream("hello")]
        stream = model.astream("hello")
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        return {"log": said}

    acts.run(with_ledger(line(acts.saver, a=node if acts.form == "sync" else anode)))
    assert [("settled", None), ("interrupted", "GeneratorExit")] == [(c.status, c.error_type) for c in calls(acts)]
    assert (None, 15) == (spent(acts, TOKENS).used, spent(acts, TOKENS).known)


def test_l33_calls_of_subgraphs_parallel_tasks_tools_and_attempts_count_in_one_run(acts: Acts) -> None:
    """A durable body's is its attempt's."""
    model = scripted(usage=used(10, 5), max_tokens=50)
    inner = line(None, deep=calling(acts, model))

    @tool
    def ask_model(question: str) -> str:
        """Ask."""
        return str(model.invoke(question).content)

    def with_tool(state: State) -> Any:
        return {"log": [ask_model.invoke("why?")]}

    def body(frame: Any) -> Any:
        return {"log": [str(model.invoke("hello").content)]}

    nodes = {"sub": inner, "tool": with_tool, "plain": calling(acts, model), "act": acts.node("act", body)}
    acts.run(with_ledger(fan(acts.saver, *nodes, "plain", **nodes)))
    found = calls(acts)

    attempts = [each.attempt_id for each in acts.saver.ledger.attempts(newest(acts).run_id)]
    assert ["act", "deep", "plain", "plain", "tool"] == sorted(call.node for call in found)
    assert attempts == [call.attempt_id for call in found if call.attempt_id is not None]
    assert (5, 75) == (spent(acts).used, spent(acts, TOKENS).used)
    assert [] == acts.saver.ledger.verify()


def test_l36_a_model_that_fails_keeps_what_it_may_have_used_reserved(acts: Acts) -> None:
    def fail() -> None:
        raise Boom("model")

    acts.run(with_ledger(line(acts.saver, a=calling(acts, scripted(max_tokens=50, during=fail)))))
    (call,) = calls(acts)

    assert ("interrupted", "Boom", call.bound_tokens) == (call.status, call.error_type, call.reserved_tokens)
    assert (0, 1) == (spent(acts).known, spent(acts).reserved)


def test_l36_a_report_that_can_be_none_is_refused(acts: Acts) -> None:
    """By name; the call is over, and what it may have used stays reserved."""
    error = refused(
        acts, with_ledger(line(acts.saver, a=calling(acts, scripted(usage=used(-1, 5))))), family=ValueError
    )
    assert isinstance(error, InvalidArgument)
    assert ("invalid_usage", ["interrupted"]) == (error.code, [call.status for call in calls(acts)])


# -- what is refused


def test_l34_a_call_over_the_budget_is_not_made(acts: Acts, log: str) -> None:
    """Nothing is written, the thread stands where it stood; raised, the run goes on and ends."""
    model = scripted(usage=used(), log=log)
    app = with_ledger(
        line(acts.saver, a=calling(acts, model), b=calling(acts, model), c=says("c")), budget=Budget(turns=1)
    )
    error = refused(acts, app)

    told = {"dimension": "turns", "limit": 1, "used": 1, "reserved": 0, "requested": 1}
    assert (told, "budget_exhausted") == ({name: error.details[name] for name in told}, newest(acts).status)
    assert (("b",), 1) == (app.get_state(CONFIG).next, dispatches(log))
    assert "budget_exhausted" == refused(acts, app, None).code
    assert 1 == dispatches(log)
    assert "idle" == acts.saver.ledger.raise_budget(newest(acts).run_id, turns=2).status
    assert ["in", "hi", "hi", "c"] == acts.run(app, None)["log"]
    assert ("succeeded", 2, []) == (newest(acts).status, dispatches(log), acts.saver.ledger.verify())


def test_l34_an_exhausted_run_is_refused_before_anything_of_it_runs(acts: Acts, log: str) -> None:
    """Not even a node is entered; new input begins another run, with a budget of its own."""
    entered: list[str] = []
    model = scripted(usage=used(), log=log)

    def enters(state: State) -> Any:
        entered.append("b")
        return {"log": [str(model.invoke("hello").content)]}

    app = with_ledger(line(acts.saver, a=calling(acts, model), b=enters), budget=Budget(turns=1))
    refused(acts, app)
    refused(acts, app, None)
    assert ["b"] == entered
    refused(acts, app)

    assert "budget_exhausted" == newest(acts).status
    statuses = [str(run.status) for run in acts.saver.ledger.runs()]
    assert (["b", "b"], 2, ["budget_exhausted"] * 2) == (entered, dispatches(log), statuses)


def test_l34_a_refusal_is_no_failure(acts: Acts, log: str) -> None:
    """A retry policy does not repeat it, and an error handler does not take it over."""
    handled: list[Any] = []
    model = scripted(usage=used(), log=log)

    def handle(state: State, error: Any) -> Any:
        handled.append(error)
        return {"log": ["handled"]}

    builder = StateGraph(State)
    builder.add_node(
        "a",
        calling(acts, model, 3),
        retry_policy=RetryPolicy(initial_interval=0, retry_on=Exception),
        error_handler=handle,
    )
    app = with_ledger(builder.add_edge(START, "a").compile(checkpointer=acts.saver), budget=Budget(turns=2))
    refused(acts, app)

    assert ([], 2, []) == (handled, dispatches(log), acts.saver.ledger.errors(newest(acts).run_id))


def test_l34_parallel_calls_do_not_share_the_same_rest(acts: Acts, log: str) -> None:
    """Of six calls at once, four are made under a limit of four."""
    model = scripted(usage=used(), log=log, seconds=0.02)
    app = with_ledger(fan(acts.saver, *["a"] * 6, a=calling(acts, model)), budget=Budget(turns=4))
    refused(acts, app)

    assert (4, 4) == (dispatches(log), spent(acts).known + spent(acts).reserved)


def test_l34_tokens_are_bounded_before_the_call(acts: Acts, log: str) -> None:
    """By an estimate of the prompt and the model's limit of its output; or else by the budget's own bound."""
    model = scripted(usage=used(10, 5), log=log, max_tokens=50)
    refused(acts, with_ledger(line(acts.saver, a=calling(acts, model, 9)), budget=Budget(tokens=100)))
    assert (3, 45) == (dispatches(log), spent(acts, TOKENS).used)

    unbounded = calling(acts, scripted(usage=used(10, 5), log=log))
    other: Any = {"configurable": {"thread_id": "other"}}
    with pytest.raises(AdmissionError, match="tokens_per_call") as found:
        acts.run(with_ledger(line(acts.saver, a=unbounded), budget=Budget(tokens=100)), config=other)
    assert ("call_unbounded", 3) == (found.value.code, dispatches(log))
    third: Any = {"configurable": {"thread_id": "third"}}
    acts.run(with_ledger(line(acts.saver, a=unbounded), budget=Budget(tokens=100, tokens_per_call=99)), config=third)
    assert (99, 15) == (calls(acts)[0].bound_tokens, spent(acts, TOKENS).used)


def test_l34_cost_is_counted_by_the_given_price(acts: Acts, log: str) -> None:
    budget = Budget(cost_usd=0.15, price=lambda model, usage: sum(usage.values()) / 1000)
    model = scripted(usage=used(10, 5), log=log, max_tokens=50)
    error = refused(acts, with_ledger(line(acts.saver, a=calling(acts, model, 9)), budget=budget))

    assert ("cost_usd", 0.15) == (error.details["dimension"], error.details["limit"])
    assert dispatches(log) * 0.015 == pytest.approx(spent(acts, Dimension.COST_USD).used)
    assert 0.015 == calls(acts)[0].cost_usd


def test_l38_active_time_is_bounded_and_pauses_are_not_counted(
    tmp_path: Path, form: Form, loop: asyncio.AbstractEventLoop, log: str
) -> None:
    """By the database's clock: each call takes 40 s here, and the answer an hour."""
    now = [1_700_000_000_000_000]

    def passes(seconds: int) -> None:
        now[0] += seconds * 1_000_000

    with LedgerSaver(open_database(tmp_path / "clock.db", clock_us=lambda: now[0])) as saver:
        acts = Acts(saver, form, "sync", loop)
        slow = scripted(usage=used(), log=log, during=lambda: passes(40))
        app = with_ledger(line(saver, a=asks("go?"), b=calling(acts, slow, 9)), budget=Budget(wall_seconds=100))
        acts.run(app)
        passes(3600)
        error = refused(acts, app, Command(resume="yes"))

        assert ({"limit": 100, "used": 120}, 3) == (
            {name: error.details[name] for name in ("limit", "used")},
            dispatches(log),
        )
        assert (120, "budget_exhausted") == (spent(acts, Dimension.WALL_SECONDS).used, newest(acts).status)


def test_l18_a_spent_budget_stops_durable_nodes_too(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    """One that is over its limit; who has used it up to its last call may still end with what needs none."""
    acts = Acts(saver, "sync", "sync", loop)
    model = scripted(usage=used(10, 500), max_tokens=50)  # it breaks its bound
    app = with_ledger(line(saver, a=calling(acts, model), b=acts.node("b")), budget=Budget(tokens=100))
    assert "tokens" == refused(acts, app).details["dimension"]
    assert ([], "budget_exhausted") == (acts.ran, newest(acts).status)
    saver.ledger.raise_budget(newest(acts).run_id, tokens=510)
    acts.run(app, None)

    assert (["b"], "succeeded") == (acts.ran, newest(acts).status)


def has_ended(acts: Acts, node: str, how: VisitStatus) -> bool:
    """Whether that is stored. (A node's error handler has a visit of that name, too, which has succeeded.)"""
    ledger = acts.saver.ledger
    visits = [visit for run in ledger.runs() for visit in ledger.visits(run.run_id)]
    return any((visit.node, visit.status) == (node, how) for visit in visits)


def test_l18_failures_in_a_row_stop_the_run(acts: Acts, log: str) -> None:
    """Visits that called a model and failed; a success begins to count anew, and others do not count."""
    if acts.durability == "exit":
        pytest.skip("nothing says how a visit went before the end")

    def failing() -> None:
        raise Boom("after the answer")

    def between(state: State, after: str) -> Any:
        how = VisitStatus.FAILED if outcomes[after] is failing else VisitStatus.SUCCEEDED
        until(lambda: has_ended(acts, after, how), f"how {after} went is stored, also under async")
        return {"log": ["between"]}

    model = scripted(usage=used(), log=log)
    outcomes = {"a": failing, "b": lambda: None, "c": failing, "d": failing, "e": lambda: None}
    builder, before = StateGraph(State), START
    for name, then in outcomes.items():
        handler = partial(lambda state, goto: Command(goto=goto, update={"log": ["handled"]}), goto=f"{name}2")
        builder.add_node(name, calling(acts, model, then=then), error_handler=handler)
        builder.add_node(f"{name}2", partial(between, after=name))
        builder.add_edge(before, name).add_edge(name, f"{name}2")
        before = f"{name}2"
    app = with_ledger(builder.compile(checkpointer=acts.saver), fail_fast=2)
    error = refused(acts, app, family=AdmissionError)

    assert ("fail_fast", 4, "idle") == (error.code, dispatches(log), newest(acts).status)


@pytest.mark.parametrize(("mode", "made"), [("now", 1), ("after_call", 1), ("after_batch", 2)])
def test_l45_a_cancelled_run_calls_no_model_any_more(acts: Acts, log: str, mode: str, made: int) -> None:
    """Not even in the node that is running, unless the step may be finished; then in none behind it."""
    if acts.durability == "exit":
        pytest.skip("the run is not on record before its end")

    def is_stored() -> bool:  # the step that is being run: under async it may not be yet
        head = acts.saver.get_tuple(CONFIG)
        return head is not None and head.metadata.get("step") == 0

    def cancel() -> None:
        until(is_stored, "the step of the node is on record")
        acts.saver.ledger.cancel(newest(acts).run_id, mode=mode)

    model = scripted(usage=used(), log=log, during=cancel)
    app = with_ledger(line(acts.saver, a=calling(acts, model, 2), b=calling(acts, model)))
    with pytest.raises(AdmissionError if made == 1 else (AdmissionError, GraphDrained)):
        acts.run(app)

    assert (made, "cancelled") == (dispatches(log), newest(acts).status)


# -- limits on record


def test_l34_a_limit_raised_before_the_refused_invocation_is_over_counts(acts: Acts, log: str) -> None:
    """The run is idle then, and goes on; it need not be raised once more, to more than is wanted."""
    if acts.durability == "exit":
        pytest.skip("the run is not on record before its end")
    model = scripted(usage=used(), log=log)

    def raised() -> None:
        if dispatches(log) == 2:
            with pytest.raises(BudgetExhausted) as refusal:
                model.invoke("hello")
            acts.saver.ledger.raise_budget(newest(acts).run_id, turns=9)
            raise refusal.value

    app = with_ledger(line(acts.saver, a=calling(acts, model, 2, then=raised)), budget=Budget(turns=2))
    refused(acts, app)
    assert "idle" == newest(acts).status
    acts.run(app, None)

    assert ("succeeded", 4) == (newest(acts).status, dispatches(log))


def test_l33_limits_on_record_count_until_they_are_raised(acts: Acts, log: str) -> None:
    """Whatever budget the graph is attached with later; a new run begins with that."""
    model = scripted(usage=used(), log=log)
    nodes = {"a": calling(acts, model), "b": asks("go?"), "c": calling(acts, model, 3)}
    acts.run(with_ledger(line(acts.saver, **nodes), budget=Budget(turns=2)))
    later = with_ledger(line(acts.saver, **nodes), budget=Budget(turns=9))
    refused(acts, later, Command(resume="yes"))
    assert (2, 2) == (spent(acts).limit, dispatches(log))

    acts.run(later)
    assert 9 == spent(acts).limit


def test_l33_a_limit_is_only_raised(acts: Acts) -> None:
    """Never lowered, and none is added; the same again changes nothing; a run that succeeded has done with it."""
    model = scripted(usage=used())
    app = with_ledger(line(acts.saver, a=calling(acts, model), b=asks("go?")), budget=Budget(turns=5))
    acts.run(app)
    run_id, ledger = newest(acts).run_id, acts.saver.ledger
    for wanted in ({"turns": 4}, {"tokens": 10}, {}, {"turns": -1}, {"turns": None}):
        with pytest.raises(InvalidArgument):
            ledger.raise_budget(run_id, **wanted)  # type: ignore[arg-type]
    for _ in range(2):
        ledger.raise_budget(run_id, turns=6)
    assert (6, 1) == (spent(acts).limit, [event.name for event in ledger.events(run_id)].count("budget.raised"))

    acts.run(app, Command(resume="yes"))
    with pytest.raises(LangGraphExtError) as found:
        ledger.raise_budget(run_id, turns=7)
    assert "run_closed" == found.value.code


def test_l46_a_question_keeps_a_run_open_whose_other_task_was_refused(acts: Acts) -> None:
    """It is answered, and only then the budget ends the run."""
    model = scripted(usage=used())
    app = fan(acts.saver, "ask", "a", ask=asks("go?"), a=calling(acts, model, 2))
    app = with_ledger(app, budget=Budget(turns=1))
    refused(acts, app)
    if newest(acts).status == "paused":  # the question came first
        refused(acts, app, Command(resume="yes"))
    assert ("budget_exhausted", []) == (newest(acts).status, acts.saver.ledger.verify())


def test_l33_a_caller_may_settle_for_what_there_is(acts: Acts, log: str) -> None:
    """A node that catches the refusal goes on without the model, and its run succeeds."""
    model = scripted(usage=used(), log=log)

    def node(state: State) -> Any:
        try:
            return {"log": [str(model.invoke("hello").content)]}
        except BudgetExhausted:
            return {"log": ["no model"]}

    assert ["in", "no model"] == acts.run(with_ledger(line(acts.saver, a=node), budget=Budget(turns=0)))["log"]
    assert ("succeeded", 0) == (newest(acts).status, dispatches(log))


def test_l35_a_snapshot_holds_the_usage(acts: Acts) -> None:
    acts.run(with_ledger(line(acts.saver, a=calling(acts, scripted(usage=used())))))
    run_id, ledger = newest(acts).run_id, acts.saver.ledger

    assert ledger.usage(run_id) == ledger.snapshot(run_id).usage
    assert ledger.calls(run_id) == acts.loop.run_until_complete(ledger.acalls(run_id))
    assert ledger.usage(run_id) == acts.loop.run_until_complete(ledger.ausage(run_id))
    acts.saver.delete_thread("t")
    assert 0 == acts.saver.database.read(lambda tx: tx.one("usage_of_run", run=1))["calls"]


def test_l33_options_are_checked(saver: LedgerSaver) -> None:
    for options in ({"budget": 20}, {"fail_fast": 0}, {"fail_fast": True}):
        with pytest.raises(InvalidArgument):
            with_ledger(line(saver, a=says("a")), **options)  # type: ignore[arg-type]


def test_l33_a_budget_needs_a_ledger(log: str) -> None:
    """A graph without a saver records nothing, so it calls nothing under a budget."""
    app = with_ledger(
        line(None, a=lambda state: {"log": [scripted(log=log).invoke("hello").content]}), budget=Budget(turns=1)
    )
    with pytest.raises(AdmissionError) as found:
        app.invoke({"log": []})
    assert ("ledger_missing", 0) == (found.value.code, dispatches(log))


def test_l34_async_code_awaits_its_commits(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    """No transaction runs in the thread of an event loop that awaits a model. A sync model's call counts as well.

    That one runs where the caller is, or in whichever thread commits for it just then. It also notices when LangChain
    looks callbacks up otherwise.
    """
    on_loop: list[bool] = []
    model = scripted(usage=used())
    original = model_calls.start_call

    def start(tx: Any, asked: Any) -> None:
        on_loop.append(threading.current_thread() is threading.main_thread())
        original(tx, asked)

    async def node(state: State) -> Any:
        await model.ainvoke("hello")
        async for _ in model.astream("hello"):
            pass
        return {"log": [str(model.invoke("hello").content)]}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_calls, "start_call", start)
        app = with_ledger(line(saver, a=node))
        loop.run_until_complete(app.ainvoke({"log": []}, CONFIG))

    assert ([False, False], 3) == (on_loop[:2], len(on_loop))
    assert 3 == saver.ledger.usage(saver.ledger.runs()[0].run_id).calls
