"""Durable nodes in real graphs: admission, settlement, failures, and the lease that an attempt takes for itself."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.errors import NodeError, NodeTimeoutError
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send, TimeoutPolicy, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import AdmissionError, InvalidArgument, RecoveryRequired, StoreError
from langgraph_ext.ledger import admission
from langgraph_ext.nodes import AttemptInterrupted, Frame, durable, frame
from langgraph_ext.saver import host
from tests.support.acted import Acts, cancelled_inside
from tests.support.apps import CONFIG, Boom, State, fan, line, says
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


def raises(times: int, kind: type[Exception] = Boom) -> Callable[[Frame], Any]:
    """A body that raises so many times."""
    left = iter(range(times))

    def body(frame: Frame) -> Any:
        for _ in left:
            raise kind("not yet")
        return {"log": ["at last"]}

    return body


# -- what is on record


def test_l22_every_execution_is_an_attempt_on_record(acts: Acts) -> None:
    """Started and succeeded; the lease that it took is given back."""
    acts.run(line(acts.saver, a=acts.node("a"), b=acts.node("b", kind="worker")))

    assert [("a", 1, "succeeded"), ("b", 1, "succeeded")] == acts.attempts()
    assert ["attempt.started", "attempt.succeeded"] * 2 == acts.events("attempt")
    assert [] == acts.saver.ledger.verify()


def test_l14_the_attempt_gives_its_lease_back_in_the_settlement(acts: Acts) -> None:
    seen: list[tuple[int, bool]] = []
    acts.run(line(acts.saver, a=acts.node("a", lambda frame: seen.append(acts.lease()) or {"log": []})))

    assert [(1, True)] == seen
    assert (1, False) == acts.lease()


def test_l22_parallel_bodies_share_the_lease_of_their_step(acts: Acts) -> None:
    """The last of them gives it back."""
    names = [f"n{number}" for number in range(5)]
    acts.run(fan(acts.saver, *names, **{name: acts.node(name) for name in names}))

    assert sorted((name, 1, "succeeded") for name in names) == sorted(acts.attempts())
    assert not acts.lease()[1]


def test_l22_several_durable_parts_of_one_task_are_told_apart(acts: Acts) -> None:
    first, second = acts.node("first"), acts.node("second")
    if acts.form == "sync":
        app = line(acts.saver, both=lambda state: {"log": first(state)["log"] + second(state)["log"]})
    else:

        async def both(state: State) -> Any:
            return {"log": (await first(state))["log"] + (await second(state))["log"]}

        app = line(acts.saver, both=both)
    acts.run(app)

    assert ["in", "first", "second"] == app.get_state(CONFIG).values["log"]
    assert [("both", 1, "succeeded")] * 2 == acts.attempts()


def test_l22_parts_that_run_side_by_side_are_told_apart(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    acts = Acts(saver, "async", "sync", loop)
    parts = [acts.node(name, kind=name) for name in ("first", "second")]

    async def both(state: State) -> Any:
        return {
            "log": [word for told in await asyncio.gather(*(part(state) for part in parts)) for word in told["log"]]
        }

    app = line(saver, both=both)
    acts.run(app)

    assert ["in", "first", "second"] == app.get_state(CONFIG).values["log"]
    assert [("both", 1, "succeeded")] * 2 == acts.attempts()


def test_l22_in_a_subgraph(acts: Acts) -> None:
    acts.run(line(acts.saver, sub=line(None, leaf=acts.node("leaf")), after=acts.node("after")))

    assert [("leaf", 1, "succeeded"), ("after", 1, "succeeded")] == acts.attempts()


def test_l4_a_command_to_the_parent_is_settled_too(acts: Acts) -> None:
    """LangGraph hands a saver no writes of that task: the parent's next checkpoint settles it."""
    away = acts.node("leaf", lambda frame: Command(graph=Command.PARENT, goto="after", update={"log": ["gone"]}))
    builder = StateGraph(State).add_node("sub", line(None, leaf=away)).add_node("after", says("after"))
    acts.run(builder.add_edge(START, "sub").compile(checkpointer=acts.saver))

    assert [("leaf", 1, "succeeded")] == acts.attempts()


def test_durable_outside_of_a_graph_is_the_function_itself() -> None:
    assert {"log": ["x"]} == durable(lambda state: {"log": state})(["x"])


# -- L16, L17


def test_l16_scenario_09_a_body_that_succeeded_is_not_run_again(acts: Acts) -> None:
    """Its router raised: LangGraph runs the task again, and gets the result that is stored."""
    once = iter([True])

    def route(state: State) -> str:
        if next(once, False):
            raise Boom("router")
        return "end"

    builder = StateGraph(State).add_node("a", acts.node("a")).add_node("end", says("end")).add_edge(START, "a")
    app = builder.add_conditional_edges("a", route, ["end"]).compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, None)

    assert (["a"], ["in", "a", "end"]) == (acts.ran, app.get_state(CONFIG).values["log"])
    assert [("a", 1, "succeeded")] == acts.attempts()
    assert (acts.lease()[1], acts.saver.ledger.verify()) == (False, [])


def test_l17_a_paused_attempt_goes_on_as_the_same_one(acts: Acts) -> None:
    ids: list[tuple[str, bool, int]] = []

    def body(frame: Frame) -> Any:
        ids.append((frame.attempt_id, frame.goes_on, frame.epoch))
        return {"log": [interrupt("sure?")]}

    app = line(acts.saver, ask=acts.node("ask", body))
    acts.run(app)
    assert [("ask", 1, "paused")] == acts.attempts()
    assert not acts.lease()[1]
    acts.run(app, Command(resume="yes"))

    (first, *told), (second, *again) = ids
    assert (first, [False, 1], [True, 2]) == (second, told, again)
    assert [("ask", 1, "succeeded")] == acts.attempts()
    assert ["attempt.started", "attempt.paused", "attempt.resumed", "attempt.succeeded"] == acts.events("attempt")


# -- L49 and what follows it


def test_l49_every_try_of_a_retry_policy_is_an_attempt(acts: Acts) -> None:
    """Its end is stored at once, with the error: LangGraph tells a saver nothing of a try it repeats."""
    node = acts.node("a", raises(2, ConnectionError))
    builder = StateGraph(State).add_node("a", node, retry_policy=RetryPolicy(initial_interval=0.01, jitter=False))
    acts.run(builder.add_edge(START, "a").compile(checkpointer=acts.saver))

    assert [("a", 1, "failed"), ("a", 2, "failed"), ("a", 3, "succeeded")] == acts.attempts()
    failed = [e.details for e in acts.saver.ledger.events(limit=100) if e.name == "attempt.failed"]
    assert [("ConnectionError", "not yet")] * 2 == [(each["error_type"], each["error_message"]) for each in failed]
    assert [] == acts.saver.ledger.verify()


def test_l49_a_body_that_failed_runs_again_as_the_next_attempt(acts: Acts) -> None:
    app = line(acts.saver, a=acts.node("a", raises(1)))
    acts.run(app)
    assert ([("a", 1, "failed")], False) == (acts.attempts(), acts.lease()[1])
    acts.run(app, None)

    assert [("a", 1, "failed"), ("a", 2, "succeeded")] == acts.attempts()


def test_l49_a_cancelled_body_is_on_record(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    acts = Acts(saver, "async", "sync", loop)
    loop.run_until_complete(cancelled_inside(saver))

    assert ([("slow", 1, "cancelled")], False) == (acts.attempts(), acts.lease()[1])


def test_l49_who_is_cancelled_while_it_asks_leaves_no_attempt_that_runs(
    saver: LedgerSaver, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that has begun is not undone: what it admitted ends at once, and the next is admitted."""
    acts = Acts(saver, "async", "sync", loop)
    asks, enter = threading.Event(), admission.enter

    def slowly(tx: Any, entry: Any) -> Any:
        asks.set()
        time.sleep(0.1)
        return enter(tx, entry)

    app = line(saver, a=acts.node("a"))

    async def story() -> None:
        running = asyncio.create_task(app.ainvoke({"log": []}, CONFIG, durability="sync"))
        await asyncio.to_thread(asks.wait)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    with monkeypatch.context() as patched:
        patched.setattr(admission, "enter", slowly)
        loop.run_until_complete(story())
    assert ([("a", 1, "cancelled")], [], False) == (acts.attempts(), acts.ran, acts.lease()[1])
    acts.run(app, None)

    assert [("a", 1, "cancelled"), ("a", 2, "succeeded")] == acts.attempts()


def test_l11_a_body_may_say_that_nobody_knows_how_it_ended(acts: Acts) -> None:
    """It is interrupted, not failed; an opaque one stops until somebody authorizes the next."""

    def body(frame: Frame) -> Any:
        if frame.number == 1:
            raise AttemptInterrupted("session_lost", "the line went dead")
        return {"log": ["done"]}

    app = line(acts.saver, a=acts.node("a", body, effect="opaque"))
    with pytest.raises(AttemptInterrupted):
        acts.run(app)
    with pytest.raises(RecoveryRequired, match="authorize_recovery") as refusal:
        acts.run(app, None)
    acts.saver.ledger.authorize_recovery(str(refusal.value.details["attempt_id"]))
    acts.run(app, None)

    assert [("a", 1, "interrupted"), ("a", 2, "succeeded")] == acts.attempts()
    (told,) = [e.details for e in acts.saver.ledger.events(limit=100) if e.name == "attempt.interrupted"]
    assert ("session_lost", "the line went dead") == (told["error_code"], told["error_message"])


# -- refusals


def test_l21_no_more_attempts_than_were_allowed(acts: Acts) -> None:
    """Over retries and resumes together; a refusal is no failure: nothing is written, and the thread can go on."""
    app = line(acts.saver, a=acts.node("a", raises(9), max_attempts=2))
    for given in (("in",), None):
        acts.run(app, given)
    with pytest.raises(AdmissionError, match="max_attempts=2") as refusal:
        acts.run(app, None)

    assert "retry_exhausted" == refusal.value.code
    assert ([("a", 1, "failed"), ("a", 2, "failed")], ["a", "a"]) == (acts.attempts(), acts.ran)
    assert (("a",), False) == (app.get_state(CONFIG).next, acts.lease()[1])


def test_l23_a_node_with_effects_refuses_to_run_where_nothing_is_stored(acts: Acts) -> None:
    app = line(acts.saver, a=acts.node("a", effect="write"))
    with pytest.raises(AdmissionError, match='invoke with durability="sync"') as refusal:
        acts.run(app, durability="exit")

    assert ("durability_required", []) == (refusal.value.code, acts.ran)


def test_l2_a_visit_never_changes_its_effect_class(acts: Acts) -> None:
    acts.run(line(acts.saver, a=acts.node("a", raises(1))))
    with pytest.raises(Exception, match="never changes what it is") as refusal:
        acts.run(line(acts.saver, a=acts.node("a", effect="opaque")), None)

    assert ("task_identity_conflict", ["a"]) == (getattr(refusal.value, "code", None), acts.ran)


def test_a_graph_without_a_ledger_is_told_what_to_do(form: Form, loop: asyncio.AbstractEventLoop) -> None:
    acts = Acts(None, form, "sync", loop)  # type: ignore[arg-type]
    with pytest.raises(AdmissionError, match="LedgerSaver") as refusal:
        acts.run(line(InMemorySaver(), a=acts.node("a")))

    assert "ledger_missing" == refusal.value.code


@pytest.mark.parametrize(
    "options",
    [{"effect": "read"}, {"on_unknown": "ask"}, {"on_unknown": "probe"}, {"probe": print}, {"max_attempts": 0}],
)
def test_durable_refuses_options_that_mean_nothing(options: Any) -> None:
    with pytest.raises(InvalidArgument, match="durable: "):
        durable(**options)


def test_frame_is_found_inside_only() -> None:
    with pytest.raises(RuntimeError, match="outside of a durable body"):
        frame()


# -- other shapes of LangGraph


class SlowSaver(LedgerSaver):
    """Its puts take a while."""

    def put(self, *args: Any, **kwargs: Any) -> Any:
        time.sleep(0.1)
        return super().put(*args, **kwargs)

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0.1)
        return await super().aput(*args, **kwargs)


def test_l23_a_body_waits_until_the_checkpoint_it_executes_is_stored(
    tmp_path: Path, form: Form, loop: asyncio.AbstractEventLoop
) -> None:
    """Under durability `async` LangGraph runs it before; so a crash would lose its identity."""
    stored: list[bool] = []
    with SlowSaver(tmp_path / "slow.db") as saver:
        acts = Acts(saver, form, "async", loop)

        def body(frame: Frame) -> Any:
            found = admission.not_stored(_NoTx(saver), "t", host.anchors_in(get_config()))
            stored.append(found is None)
            return {"log": ["x"]}

        acts.run(line(saver, a=acts.node("a", body), b=acts.node("b", body), sub=line(None, c=acts.node("c", body))))

    assert [True, True, True] == stored


class FailingSaver(LedgerSaver):
    """A saver whose puts raise this, once it is set."""

    raises: Exception | None = None

    def _submit_put(self, planned: Any, staged: Any) -> Any:
        if self.raises is not None:
            raise self.raises
        return super()._submit_put(planned, staged)


@pytest.mark.parametrize("error", [Boom("a bug"), StoreError("the disk is full", code="store_full")])
def test_l23_whose_checkpoint_will_not_be_stored_does_not_wait_for_it(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, error: Exception
) -> None:
    """Under durability `async` LangGraph goes on behind a put that failed; a body is refused at once, and told why."""
    refused: list[Any] = []
    with FailingSaver(tmp_path / "runs.db") as saver:
        acts = Acts(saver, "sync", "async", loop)
        durable_node = acts.node("b")

        def a(state: State) -> Any:
            saver.raises = error
            return {"log": ["a"]}

        def b(state: State) -> Any:
            begun = time.monotonic()
            try:
                return durable_node(state)
            except (AdmissionError, StoreError) as refusal:
                refused.append((refusal, time.monotonic() - begun))
                raise

        with pytest.raises((Boom, AdmissionError, StoreError)):
            line(saver, a=a, b=b).invoke({"log": []}, CONFIG, durability="async")

    ((refusal, seconds),) = refused
    expected = "checkpoint_not_stored" if isinstance(error, Boom) else "store_full"
    assert (expected, []) == (refusal.code, acts.ran)
    assert error in (refusal.__cause__, refusal.__cause__.__cause__)
    assert seconds < 10


class _NoTx:
    """Reads by one snapshot each."""

    def __init__(self, saver: LedgerSaver) -> None:
        self._saver = saver

    def maybe(self, query: str, **params: Any) -> Any:
        return self._saver.database.read(lambda tx: tx.maybe(query, **params))


def test_l23_a_subgraph_without_a_saver_is_settled_by_the_graph_around_it(acts: Acts) -> None:
    if acts.durability == "sync":
        pytest.skip("LangGraph 1.2 fails with durability sync and a subgraph compiled with checkpointer=False")
    inner = StateGraph(State).add_node("leaf", acts.node("leaf")).add_edge(START, "leaf").compile(checkpointer=False)
    acts.run(line(acts.saver, sub=inner, after=says("after")))

    assert [("leaf", 1, "succeeded")] == acts.attempts()
    acting = StateGraph(State).add_node("leaf", acts.node("leaf", effect="write")).add_edge(START, "leaf")
    app = line(acts.saver, sub=acting.compile(checkpointer=False))
    with pytest.raises(AdmissionError, match="without checkpointer=False"):
        acts.run(app)


def test_l23_under_exit_a_body_without_effects_runs_unrecorded(acts: Acts) -> None:
    acts.run(line(acts.saver, a=acts.node("a", lambda frame: {"log": [str(frame)]})), durability="exit")

    assert [] == acts.attempts()


def test_l22_below_a_task_of_the_functional_api(acts: Acts) -> None:
    """A finished `@task` is not called again; one that failed is another attempt."""
    fail = iter([True])

    def work(frame: Frame) -> Any:
        if next(fail, False):
            raise Boom("once")
        return "worked"

    if acts.form == "sync":
        done, body = task(durable(lambda n: n + 1)), acts.node("body", work)
        late = task(name="late")(body)

        @entrypoint(checkpointer=acts.saver)
        def app(given: Any) -> Any:
            return [done(1).result(), late(given).result()]
    else:

        @task
        @durable
        async def adone(n: int) -> int:
            return n + 1

        alate = task(name="late")(acts.node("body", work))

        @entrypoint(checkpointer=acts.saver)
        async def app(given: Any) -> Any:
            return [await adone(1), await alate(given)]

    acts.run(app, {"n": 1})
    answer = acts.run(app, None)

    assert [2, "worked"] == answer
    assert ["succeeded", "failed", "succeeded"] == [status for _, _, status in acts.attempts()]


def test_scenario_09_an_error_handler_that_has_committed_does_not_run_again(acts: Acts) -> None:
    """While a sibling failed. Its failed task is another visit than its own."""
    once = iter([True])

    def sibling(state: State) -> Any:
        if next(once, False):
            time.sleep(0.2)
            raise Boom("sibling")
        return {"log": ["sibling"]}

    async def asibling(state: State) -> Any:
        if next(once, False):
            await asyncio.sleep(0.2)
            raise Boom("sibling")
        return {"log": ["sibling"]}

    def handler(frame: Frame) -> Any:
        return {"log": ["handled"]}

    bad = acts.node("bad", raises(9, KeyError))
    builder = StateGraph(State).add_node("bad", bad, error_handler=_handles(acts, handler))
    builder.add_node("sibling", sibling if acts.form == "sync" else asibling)
    app = builder.add_edge(START, "bad").add_edge(START, "sibling").compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, None)

    assert sorted(["in", "handled", "sibling"]) == sorted(app.get_state(CONFIG).values["log"])
    assert (1, 1) == (acts.ran.count("handler"), acts.ran.count("bad"))
    assert [("bad", 1, "failed"), ("bad", 1, "succeeded")] == acts.attempts()


def _handles(acts: Acts, body: Callable[[Frame], Any]) -> Any:
    """An error handler, which takes the error besides the state."""
    inner = acts.node("handler", body)
    if acts.form == "sync":

        def handler(state: State, error: NodeError) -> Any:
            return inner(state)

        return handler

    async def ahandler(state: State, error: NodeError) -> Any:
        return await inner(state)

    return ahandler


def test_scenario_16_only_what_did_not_finish_runs_again(acts: Acts) -> None:
    """Of ten sent tasks one fails; with it, some may be cancelled."""
    fail = iter([True])

    def body(number: int) -> Callable[[Frame], Any]:
        def act(frame: Frame) -> Any:
            if number == 7 and next(fail, False):
                raise Boom("seven")
            return {"log": [f"n{number}"]}

        return act

    nodes = {f"n{number}": acts.node(f"n{number}", body(number)) for number in range(10)}
    app = fan(acts.saver, *nodes, **nodes)
    acts.run(app)
    finished = {name for name, _, status in acts.attempts() if status == "succeeded"}
    before = len(acts.ran)
    acts.run(app, None)

    assert sorted(set(nodes) - finished) == sorted(acts.ran[before:])
    assert sorted(nodes) == sorted(name for name, _, status in acts.attempts() if status == "succeeded")
    assert 12 + 1 == len(app.get_state(CONFIG).values["log"])


def test_a_durable_tool_of_a_tool_node(acts: Acts) -> None:
    """Each call is a part of the task of its own."""
    if acts.form == "sync":

        @tool
        @durable
        def double(n: int) -> int:
            """Twice."""
            acts.ran.append("double")
            return 2 * n
    else:

        @tool
        @durable
        async def double(n: int) -> int:
            """Twice."""
            acts.ran.append("double")
            return 2 * n

    calls = [{"name": "double", "args": {"n": n}, "id": str(n)} for n in (1, 2)]
    builder = StateGraph(MessagesState).add_node("tools", ToolNode([double])).add_edge(START, "tools")
    app = builder.compile(checkpointer=acts.saver)
    acts.run(app, {"messages": [AIMessage("", tool_calls=calls)]})

    assert ["2", "4"] == [str(each.content) for each in app.get_state(CONFIG).values["messages"][1:]]
    assert [("tools", 1, "succeeded")] * 2 == acts.attempts()


# -- timeouts


def _timed(acts: Acts, policy: TimeoutPolicy, body: Any, **options: Any) -> Any:
    builder = StateGraph(State).add_node("slow", body, timeout=policy, **options)
    return builder.add_edge(START, "slow").compile(checkpointer=acts.saver)


def _slow(times: int, seconds: float = 30.0, **options: Any) -> Any:
    """A body that takes too long so many times."""
    left = iter(range(times))

    @durable(**options)
    async def slow(state: State) -> Any:
        for _ in left:
            await asyncio.sleep(seconds)
        return {"log": ["in time"]}

    return slow


@pytest.fixture
def timed(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> Acts:
    """LangGraph has timeouts for async nodes only."""
    return Acts(saver, "async", "sync", loop)


@pytest.mark.parametrize("policy", [TimeoutPolicy(run_timeout=0.4), TimeoutPolicy(idle_timeout=0.4)])
def test_l49_a_body_that_takes_too_long_is_timed_out(timed: Acts, policy: TimeoutPolicy) -> None:
    """Known when LangGraph stores its error; the next one may be in time."""
    app = _timed(timed, policy, _slow(1))
    with pytest.raises(NodeTimeoutError):
        timed.run(app)
    assert ([("slow", 1, "timed_out")], False) == (timed.attempts(), timed.lease()[1])
    timed.run(app, None)

    assert [("slow", 1, "timed_out"), ("slow", 2, "succeeded")] == timed.attempts()
    assert ["attempt.timed_out", "attempt.started", "attempt.succeeded"] == timed.events("attempt")[-3:]
    assert [] == timed.saver.ledger.verify()


def test_l49_a_timeout_that_a_retry_policy_repeats_is_on_record(timed: Acts) -> None:
    """LangGraph stores no error of it: that it is tried again says what it was."""
    retry = RetryPolicy(initial_interval=0.05, jitter=False)
    timed.run(_timed(timed, TimeoutPolicy(run_timeout=0.4), _slow(2), retry_policy=retry))

    assert [("slow", 1, "timed_out"), ("slow", 2, "timed_out"), ("slow", 3, "succeeded")] == timed.attempts()


def test_l49_a_timeout_in_a_subgraph_is_on_record(timed: Acts) -> None:
    inner = StateGraph(State).add_node("slow", _slow(1), timeout=TimeoutPolicy(run_timeout=0.4)).add_edge(START, "slow")
    with pytest.raises(NodeTimeoutError):
        timed.run(line(timed.saver, sub=inner.compile()))

    assert [("slow", 1, "timed_out")] == timed.attempts()


def test_l49_a_body_that_cleans_up_after_its_timeout_is_timed_out(timed: Acts) -> None:
    """It ends behind LangGraph's error."""

    @durable
    async def slow(state: State) -> Any:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.1)

    async def story(app: Any) -> None:
        with pytest.raises(NodeTimeoutError):
            await app.ainvoke({"log": []}, CONFIG, durability="sync")
        await asyncio.sleep(0.2)

    timed.loop.run_until_complete(story(_timed(timed, TimeoutPolicy(run_timeout=0.4), slow)))

    assert ([("slow", 1, "timed_out")], False) == (timed.attempts(), timed.lease()[1])


def test_l49_who_is_cancelled_before_its_timeout_is_cancelled(timed: Acts) -> None:
    """Also if the next one times out."""
    entered = asyncio.Event()

    @durable
    async def slow(state: State) -> Any:
        entered.set()
        await asyncio.sleep(30)

    app = _timed(timed, TimeoutPolicy(run_timeout=0.5), slow)

    async def cancelled() -> None:
        running = asyncio.create_task(app.ainvoke({"log": []}, CONFIG, durability="sync"))
        await entered.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        while timed.attempts() == [("slow", 1, "running")]:  # LangGraph does not wait for a body with a timeout
            await asyncio.sleep(0.01)

    timed.loop.run_until_complete(cancelled())
    assert [("slow", 1, "cancelled")] == timed.attempts()
    with pytest.raises(NodeTimeoutError):
        timed.run(app, None)

    assert [("slow", 1, "cancelled"), ("slow", 2, "timed_out")] == timed.attempts()


def test_l49_a_timed_out_bodys_effect_is_in_doubt(timed: Acts) -> None:
    @durable(effect="write")
    async def slow(state: State, frame: Frame) -> Any:
        async def call(key: str) -> str:
            await asyncio.sleep(30)
            return "never"

        return {"log": [await frame.aonce("act", {}, call)]}

    app = _timed(timed, TimeoutPolicy(run_timeout=0.4), slow)
    with pytest.raises(NodeTimeoutError):
        timed.run(app)
    with pytest.raises(RecoveryRequired):
        timed.run(app, None)

    assert [("slow", 1, "timed_out")] == timed.attempts()
    assert [True] == [each.in_doubt for each in timed.saver.ledger.effects()]


# -- Send, Command, refusals


def test_l22_each_task_of_a_send_is_a_visit_of_its_own(acts: Acts) -> None:
    """Of one node, at one checkpoint."""
    app = fan(acts.saver, "n", "n", "n", n=acts.node("n", lambda frame: {"log": [frame.attempt_id]}))
    acts.run(app)

    assert [("n", 1, "succeeded")] * 3 == acts.attempts()
    assert 3 == len(set(app.get_state(CONFIG).values["log"][2:-1]))


def test_l4_a_command_goes_where_it_says_and_is_settled(acts: Acts) -> None:
    """An update, a node, and a task that it sends."""
    to = [Send("other", {"log": []}), "last"]
    away = acts.node("a", lambda frame: Command(goto=to, update={"log": ["going"]}))
    builder = StateGraph(State).add_node("a", away, destinations=("other", "last"))
    builder.add_node("other", acts.node("other")).add_node("last", says("last"))
    app = builder.add_edge(START, "a").compile(checkpointer=acts.saver)
    acts.run(app)

    assert ["going", "in", "last", "other"] == sorted(app.get_state(CONFIG).values["log"])
    assert [("a", 1, "succeeded"), ("other", 1, "succeeded")] == acts.attempts()


def test_l20_a_refusal_is_no_failure_to_langgraph(acts: Acts) -> None:
    """No policy repeats it, no error handler takes it over, nothing is written: the thread goes on when it may."""
    handled: list[str] = []

    def body(frame: Frame) -> Any:
        if frame.number == 1:
            raise AttemptInterrupted("lost", "the line went dead")
        return {"log": ["done"]}

    def handler(frame: Frame) -> Any:
        handled.append(frame.node)
        return {"log": ["handled"]}

    def build(**policies: Any) -> Any:
        builder = StateGraph(State).add_node("a", acts.node("a", body, effect="opaque"), **policies)
        return builder.add_edge(START, "a").compile(checkpointer=acts.saver)

    with pytest.raises(AttemptInterrupted):
        acts.run(build())
    retry = RetryPolicy(max_attempts=5, retry_on=Exception, initial_interval=0.01)
    guarded = build(retry_policy=retry, error_handler=_handles(acts, handler))
    before = acts.events("visit", "attempt")
    with pytest.raises(RecoveryRequired) as refusal:
        acts.run(guarded, None)
    assert (["a"], [], ("a",)) == (acts.ran, handled, guarded.get_state(CONFIG).next)
    assert before == acts.events("visit", "attempt")
    acts.saver.ledger.authorize_recovery(str(refusal.value.details["attempt_id"]))
    acts.run(guarded, None)

    assert (["in", "done"], []) == (guarded.get_state(CONFIG).values["log"], handled)
    assert not acts.lease()[1]
