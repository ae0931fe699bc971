"""E27, E28, K01: how a scope stops, and what may still be committed while it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from langgraph_ext.engine import conditions
from langgraph_ext.engine.control import Close, Finish, Succeed
from langgraph_ext.engine.driver import Driver
from langgraph_ext.engine.granting import ConsumeTicket
from langgraph_ext.engine.operation_changes import (
    Allow,
    Begin,
    CompleteOperation,
    Deny,
    Dispatch,
    FailTry,
    LoseCall,
    SaveRaw,
)
from langgraph_ext.engine.outcomes import Progress, Runtime, Wait
from langgraph_ext.engine.rows import Operation, Tree
from langgraph_ext.engine.states import AgentStatus, OperationState, TaskState, TicketState
from langgraph_ext.engine.task_changes import Activate, EndTask, GoOn, WaitFor
from langgraph_ext.errors import ConflictError, StoreError
from tests.support.agents import Stub, Told, Yielded, phase
from tests.support.bench import Bench, raises

ROOT, TASK = "id-000001", "id-000002"
COMMITS = ["activate:", "progress:", "model-ready:", "call-raw:", "complete:", "task-result:", "terminal:"]
"""Commits of a run that asks a model."""


def code_of(act: Callable[[], Any]) -> str:
    with pytest.raises(ConflictError) as refused:
        act()
    return refused.value.code


class Hand:
    """A held root whose task is running, driven by hand."""

    def __init__(self, bench: Bench, *, loop_limit: int = 5) -> None:
        self.bench = bench
        assert ROOT == bench.start("rounds", {"rounds": 1}, loop_limit=loop_limit)
        self.held = bench.hold(ROOT)
        self.commit(Activate(agent_task_id=TASK))

    def commit(self, *changes: Any) -> Any:
        return self.bench.commit(self.held, *changes).result

    def close(self, reason: str = "stopped") -> bool:
        return bool(self.commit(Close(agent_run_id=ROOT, reason=reason))["first"])

    def begin(self, purpose: str = "m", state: str = "prepared", *, kind: str = "model", **more: Any) -> str:
        """An operation in a state, by the commits that lead there."""
        begun = {"agent_task_id": TASK, "purpose": purpose, "kind": kind, "name": "n", "request": {}, **more}
        operation_id = str(self.commit(Begin(**begun))["operations"][purpose])
        if state in ("dispatched", "raw", "ready", "completed"):
            self.commit(Allow(operation_id=operation_id, request={}, before=[], needs_ticket=kind == "model"))
        if state == "ready":
            self.commit(FailTry(operation_id=operation_id, number=1, code="c", message="m"))
        if state in ("raw", "completed"):
            self.commit(SaveRaw(operation_id=operation_id, number=1, raw={"value": "raw"}))
        if state == "completed":
            self.commit(CompleteOperation(operation_id=operation_id, after=["h"], outcome={"value": "seen"}))
        return operation_id

    def operation(self, purpose: str = "m") -> Any:
        return self.bench.operation(ROOT, purpose)


@pytest.fixture
def hand(bench: Bench) -> Hand:
    return Hand(bench)


# -- E27


@pytest.mark.parametrize("reasons", [("stopped", "deadline_exceeded"), ("loops_exhausted", "stopped")])
def test_e27_the_first_reason_wins(bench: Bench, hand: Hand, reasons: tuple[str, str]) -> None:
    assert [True, False] == [hand.close(each) for each in reasons]
    hand.commit(Finish(agent_run_id=ROOT))
    assert False is hand.close("too late")
    assert reasons[0] == bench.tree(ROOT).root.reason
    assert "scope_closed" == code_of(lambda: hand.commit(Succeed(agent_run_id=ROOT, output=1)))


@pytest.mark.parametrize(
    ("reason", "status", "of_run"),
    [
        ("stopped", "cancelled", "cancelled"),
        ("loops_exhausted", "exhausted", "budget_exhausted"),
        ("deadline_exceeded", "failed", "failed"),
        ("compaction_failed", "failed", "failed"),
    ],
)
def test_e27_how_a_run_ends_follows_from_its_reason(
    bench: Bench, hand: Hand, reason: str, status: str, of_run: str
) -> None:
    hand.close(reason)
    hand.commit(Finish(agent_run_id=ROOT))
    assert (status, reason) == (str(bench.tree(ROOT).root.status), bench.tree(ROOT).root.reason)
    assert [(of_run,)] == bench.all("SELECT status FROM run")
    assert TaskState.CANCELLED is bench.task(ROOT).state


@pytest.mark.parametrize("terminal", ["closed", "ended"])
def test_e27_every_begin_and_start_reads_the_gate_in_its_own_commit(bench: Bench, hand: Hand, terminal: str) -> None:
    """Nothing begins, goes on or ends well in a scope that closes, however early it was prepared."""
    prepared, ready = hand.begin("p"), hand.begin("r", "ready")
    hand.close()
    if terminal == "ended":
        hand.commit(Finish(agent_run_id=ROOT))
    before = bench.everything()
    for change in (
        Activate(agent_task_id=TASK),
        GoOn(agent_task_id=TASK, continuation=phase("x")),
        WaitFor(agent_task_id=TASK, continuation=phase("x"), condition=conditions.operations_ended()),
        EndTask(agent_task_id=TASK, output=1),
        Begin(agent_task_id=TASK, purpose="new", kind="tool", name="t", request={}),
        Allow(operation_id=prepared, request={}, before=[], needs_ticket=False),
        Allow(operation_id=prepared, request={}, before=[], needs_ticket=True),
        Dispatch(operation_id=ready, number=2),
        Succeed(agent_run_id=ROOT, output=1),
    ):
        assert "scope_closed" == code_of(lambda change=change: hand.commit(change)), change
    assert before == bench.everything()


@pytest.mark.parametrize("state", ["prepared", "ready"])
def test_e27_what_has_not_begun_is_closed_on_the_spot(hand: Hand, state: str) -> None:
    """In the commit that closes: it is cancelled, its ticket is settled, and it is never dispatched."""
    hand.begin("m", state)
    hand.close()
    assert OperationState.CANCELLED is hand.operation().state
    assert "cancelled" == hand.operation().outcome["error"]["code"]
    assert 0 == hand.bench.tree(ROOT).root.reserved


def test_e27_a_request_that_waits_for_a_ticket_is_closed_on_the_spot(bench: Bench) -> None:
    hand = Hand(bench, loop_limit=1)
    hand.begin("m", "dispatched")
    hand.begin("n")
    operation_id = hand.operation("n").operation_id
    hand.commit(Allow(operation_id=operation_id, request={}, before=[], needs_ticket=True))
    assert OperationState.ASKED is hand.operation("n").state
    hand.close()
    assert (OperationState.CANCELLED, TicketState.RELEASED) == (
        hand.operation("n").state,
        bench.ticket(ROOT, "n").state,
    )
    assert OperationState.DISPATCHED is hand.operation("m").state


def test_e27_what_has_begun_ends_only_through_its_operation(bench: Bench, hand: Hand) -> None:
    """The close leaves it alone, and the scope does not end before it."""
    operation_id = hand.begin("m", "dispatched")
    hand.close()
    assert OperationState.DISPATCHED is hand.operation().state
    assert "scope_busy" == code_of(lambda: hand.commit(Finish(agent_run_id=ROOT)))
    assert AgentStatus.CLOSING is bench.tree(ROOT).root.status

    hand.commit(SaveRaw(operation_id=operation_id, number=1, raw={"value": 1}))
    hand.commit(Finish(agent_run_id=ROOT))
    assert (AgentStatus.CANCELLED, 0) == (bench.tree(ROOT).root.status, bench.tree(ROOT).root.reserved)
    assert TicketState.RELEASED is bench.ticket(ROOT, "m").state


@pytest.mark.parametrize(
    ("kind", "policy", "ends"),
    [
        ("model", "repeatable", "cancelled"),
        ("tool", "repeatable", "cancelled"),
        ("tool", "once", "unknown"),
        ("tool", "keyed", "unknown"),
    ],
)
def test_e27_a_call_that_nobody_will_tell_of_is_unknown_unless_it_changes_nothing(
    hand: Hand, kind: str, policy: str, ends: str
) -> None:
    operation_id = hand.begin("m", "dispatched", kind=kind, policy=policy)
    hand.close()
    hand.commit(LoseCall(operation_id=operation_id, number=1))
    hand.commit(Finish(agent_run_id=ROOT))
    assert ends == str(hand.operation().state)
    assert 0 == hand.bench.tree(ROOT).root.reserved


def test_e27_a_child_closes_alone_and_a_root_takes_all_with_it(bench: Bench, hand: Hand) -> None:
    for name in ("a", "b"):
        bench.child(ROOT, name)
    hand.commit(Close(agent_run_id="a", reason="loops_exhausted"))
    hand.commit(Finish(agent_run_id="a"))
    assert ["running", "exhausted", "running"] == [str(bench.tree(ROOT).runs[each].status) for each in (ROOT, "a", "b")]
    assert TaskState.CANCELLED is bench.tree(ROOT).tasks["task-of-a"].state

    hand.close()
    hand.commit(Finish(agent_run_id=ROOT))
    assert ["cancelled", "exhausted", "cancelled"] == [
        str(bench.tree(ROOT).runs[each].status) for each in (ROOT, "a", "b")
    ]
    assert "loops_exhausted" == bench.tree(ROOT).runs["a"].reason


@pytest.mark.parametrize("who", ["root", "stop", "both"])
async def test_e27_root_reasons_are_looked_at_before_local_ones(bench: Bench, who: str) -> None:
    """The child's id is smaller than the root's, and both are late."""
    root = bench.start("rounds", {"rounds": 1}, run_us=5)
    bench.child(root, "a-child")
    bench.write("UPDATE agent_run SET deadline_us = 1 WHERE agent_run_id = 'a-child'")
    bench.clock.advance(us=10 if who != "stop" else 0)
    if who != "root":
        bench.hold(root, "somebody")
        bench.stop(root)
        bench.clock.advance(60 if who == "both" else 0)
        if who == "stop":
            bench.write("UPDATE lease SET released_us = 1")
    tree = await bench.drive(root)
    expected = "deadline_exceeded" if who == "root" else "stopped"
    assert {root: expected, "a-child": expected} == {each.agent_run_id: each.reason for each in tree.runs.values()}
    assert [root] == [key.split(":")[1] for key in bench.commit_keys("close:")]  # which took the child with it


async def test_e27_a_failed_task_closes_its_agent_run(bench: Bench) -> None:
    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        begin = Begin(agent_task_id=TASK, purpose="t", kind="tool", name="t", request={})
        yield Progress(continuation=phase("a"), changes=(begin,))
        raise RuntimeError("no")

    program = Stub(behaviours={"told": Told(behaviour)})
    tree = await bench.drive(bench.start("told"), program)
    assert (AgentStatus.FAILED, "node_implementation_failed") == (tree.root.status, tree.root.reason)
    assert OperationState.CANCELLED is bench.operation(ROOT, "t").state


async def test_e27_a_deadline_closes_a_run_whose_call_hangs(bench: Bench) -> None:
    """By the engine's clock, looked at while nothing but the call is under way."""
    called = asyncio.Event()

    async def hangs(operation: Any, number: int) -> Any:
        called.set()
        await asyncio.Event().wait()

    root = bench.start("rounds", {"rounds": 1}, run_us=3_600_000_000)
    held = bench.hold(root)
    driver = bench.driver(root, held, Stub(answer=hangs))
    driving = asyncio.ensure_future(driver.drive())
    await called.wait()
    bench.clock.advance(3_600)
    driver.look()
    tree = await driving
    assert (AgentStatus.FAILED, "deadline_exceeded") == (tree.root.status, tree.root.reason)


async def test_e27_a_deadline_of_a_child_that_has_ended_keeps_nobody_awake(bench: Bench) -> None:
    """The driver waits for what is under way, and does not turn for ever."""
    release, turns = asyncio.Event(), 0

    async def waits(operation: Any, number: int) -> Any:
        await release.wait()
        return {"value": 1}

    root = bench.start("rounds", {"rounds": 1})
    bench.child(root, "a")
    held = bench.hold(root)
    bench.commit(held, Close(agent_run_id="a", reason="stopped"))
    bench.commit(held, Finish(agent_run_id="a"))
    bench.write("UPDATE agent_run SET deadline_us = 1 WHERE agent_run_id = 'a'")
    driver = bench.driver(root, held, Stub(answer=waits))
    control = driver._control

    async def counting(tree: Tree) -> bool:
        nonlocal turns
        turns += 1
        return await control(tree)

    driver._control = counting  # type: ignore[method-assign]
    driving = asyncio.ensure_future(driver.drive())
    await asyncio.sleep(0.3)
    release.set()
    await driving
    assert 1 < turns < 40


# -- E28


def test_e28_a_late_success_is_recorded_and_changes_nothing(bench: Bench, hand: Hand) -> None:
    """Its hooks had not begun: they are skipped, and it settles with what came back."""
    operation_id = hand.begin("m", "dispatched")
    hand.close()
    hand.commit(SaveRaw(operation_id=operation_id, number=1, raw={"value": "late"}))

    found = hand.operation()
    assert (OperationState.COMPLETED, {"value": "late"}) == (found.state, found.outcome)
    assert {"skipped": "closing"} == found.after
    root = bench.tree(ROOT).root
    assert (AgentStatus.CLOSING, "stopped", 0) == (root.status, root.reason, root.consumed)
    assert "scope_closed" == code_of(
        lambda: hand.commit(GoOn(agent_task_id=TASK, continuation=phase("x")), ConsumeTicket(operation_id=operation_id))
    )


def test_e28_an_answer_whose_hooks_had_not_begun_settles_with_the_close(hand: Hand) -> None:
    operation_id = hand.begin("m", "raw")
    hand.close()
    found = hand.operation()
    assert (OperationState.COMPLETED, {"value": "raw"}, {"skipped": "closing"}) == (
        found.state,
        found.outcome,
        found.after,
    )
    complete = CompleteOperation(operation_id=operation_id, after=["h"], outcome={"value": "seen"})
    assert "revision_conflict" == code_of(lambda: hand.commit(complete))


def test_e28_a_late_failure_is_the_outcome_and_nothing_is_tried_again(bench: Bench, hand: Hand) -> None:
    """A call that may be made again fails while its scope closes: nothing stays half done."""
    operation_id = hand.begin("m", "dispatched")
    hand.close()
    hand.commit(FailTry(operation_id=operation_id, number=1, code="rate_limit", message="slow"))
    found = hand.operation()
    assert (OperationState.COMPLETED, "rate_limit") == (found.state, found.outcome["error"]["code"])
    hand.commit(Finish(agent_run_id=ROOT))
    assert [("failed",)] == bench.all("SELECT state FROM agent_call")
    assert 0 == bench.tree(ROOT).root.reserved


def test_e28_nothing_stays_half_done_in_a_run_that_has_ended(bench: Bench, hand: Hand) -> None:
    states = ("prepared", "ready", "raw", "completed", "dispatched")
    ids = {state: hand.begin(state, state, kind="tool") for state in states}
    hand.close()
    hand.commit(LoseCall(operation_id=ids["dispatched"], number=1))
    hand.commit(Finish(agent_run_id=ROOT))
    tree = bench.tree(ROOT)
    assert all(each.state.ended for each in tree.operations.values())
    assert all(each.state.ended for each in tree.tasks.values())
    assert {"value": "seen"} == hand.operation("completed").outcome
    assert [] == bench.all("SELECT * FROM agent_call WHERE state = 'open'")


def test_e28_a_denial_that_is_late_is_no_conflict_of_the_run(hand: Hand) -> None:
    operation_id = hand.begin("m")
    hand.close()
    deny = Deny(operation_id=operation_id, before=[], code="denied", message="no")
    assert "revision_conflict" == code_of(lambda: hand.commit(deny))
    assert OperationState.CANCELLED is hand.operation().state


# -- K01, and stops of whole runs


async def a_then_b(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
    """Calls A, and B only when A has ended."""
    now = dict(continuation or phase("a"))
    while True:
        purpose = now["phase"]
        operation = runtime.operations.get(purpose)
        if operation is None:
            begin = Begin(agent_task_id=TASK, purpose=purpose, kind="model", name="m", request={})
            yield Progress(continuation=now, changes=(begin,))
        elif operation.state.ended:
            now = phase("b")
            yield Progress(continuation=now, changes=(ConsumeTicket(operation_id=operation.operation_id),))
        else:
            yield Wait(continuation=now, condition=conditions.operations_ended(purpose))


async def stopped_during_a(bench: Bench, *, late: bool) -> tuple[Any, Stub]:
    """Stop a run while A is called; an answer that is late comes although the call was told to stop."""
    called = asyncio.Event()

    async def answer(operation: Any, number: int) -> Any:
        called.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if late:
                return {"value": {"calls": ["b"]}}
            raise

    program = Stub(answer=answer, behaviours={"told": Told(a_then_b)})
    work = bench.work(bench.start("told"), program)
    driving = asyncio.ensure_future(work.drive())
    await called.wait()
    bench.stop(ROOT, "enough")
    work.look()
    return await driving, program


async def test_k01_a_late_answer_is_kept_and_starts_nothing(bench: Bench) -> None:
    """A runs, B has not begun; a stop, then A's answer with calls: B never begins, A's result is kept, and the reason
    stays."""
    tree, program = await stopped_during_a(bench, late=True)

    assert (AgentStatus.CANCELLED, "stopped", "enough") == (tree.root.status, tree.root.reason, tree.root.message)
    assert ["a"] == [each.purpose for each in tree.operations.values()]
    assert {"value": {"calls": ["b"]}} == bench.operation(ROOT, "a").outcome
    assert {"before a": 1, "call a": 1} == dict(program.asked)
    assert (0, 0) == (tree.root.consumed, tree.root.reserved)
    assert [("cancelled",)] == bench.all("SELECT status FROM run")
    assert [(1,)] == bench.all("SELECT count(*) FROM inbox WHERE consumed_us IS NOT NULL")


async def test_k01_a_call_that_ends_when_it_is_told_to_is_cancelled(bench: Bench) -> None:
    tree, program = await stopped_during_a(bench, late=False)
    assert (AgentStatus.CANCELLED, TaskState.CANCELLED) == (tree.root.status, tree.tasks[TASK].state)
    assert OperationState.CANCELLED is bench.operation(ROOT, "a").state
    assert [("interrupted",)] == bench.all("SELECT state FROM agent_call")
    assert {"before a": 1, "call a": 1} == dict(program.asked)


@pytest.mark.parametrize("kind", ["progress:", "model-ready:", "call-raw:", "complete:", "task-result:", "terminal:"])
@pytest.mark.parametrize("where", ["before", "after"])
async def test_e27_a_stop_at_any_commit_ends_the_run(bench: Bench, kind: str, where: str) -> None:
    """Whatever is under way: nothing stays half done, the agent run and the ledger's run say the same, and the words of
    who stopped it are kept. An output that is on record when the stop is seen has come first."""
    root = bench.start("rounds", {"rounds": 2})
    ended = (where, kind) == ("after", "terminal:")  # then it is `run_closed`

    def stop() -> None:
        if not ended:
            bench.stop(root, "enough")

    bench.strike(where, kind, stop)
    tree = await asyncio.wait_for(bench.drive(root), 10)

    has_output = kind in ("task-result:", "terminal:")
    expected = (AgentStatus.SUCCEEDED, None) if has_output else (AgentStatus.CANCELLED, "enough")
    assert expected == (tree.root.status, tree.root.message)
    assert [(str(tree.root.status),)] == bench.all("SELECT status FROM run")
    assert all(each.state.ended for each in (*tree.tasks.values(), *tree.operations.values()))
    assert {TicketState.RELEASED, TicketState.CONSUMED} >= {each.state for each in tree.tickets.values()}
    assert (tree.root.consumed, 0) == (
        [each.state for each in tree.tickets.values()].count(TicketState.CONSUMED),
        tree.root.reserved,
    )


async def test_e27_a_stop_beside_a_dispatch_leaves_no_call_that_nobody_makes(bench: Bench) -> None:
    """The loop is told to stop when its dispatch is committed and its call not made: the call is lost, and the run
    ends."""
    root = bench.start("rounds", {"rounds": 1})
    held = bench.hold(root)
    driver = bench.driver(root, held)
    commit, dispatched = driver._commit, asyncio.Event()

    async def hangs(wanted: Any, look: Any = None) -> Any:
        committed = await commit(wanted, look)
        if wanted.key.startswith("model-ready:"):
            dispatched.set()
            await asyncio.Event().wait()
        return committed

    driver._commit = hangs  # type: ignore[method-assign]
    driving = asyncio.ensure_future(driver.drive())
    await dispatched.wait()
    bench.stop(root)
    driver.look()
    tree = await asyncio.wait_for(driving, 5)
    assert (AgentStatus.CANCELLED, 0) == (tree.root.status, tree.root.reserved)
    assert OperationState.CANCELLED is bench.operation(root).state


async def test_e27_a_lost_call_that_could_not_be_written_is_written_later(bench: Bench) -> None:
    """The database is busy just when a call is told to stop: the run ends all the same."""
    bench.strike("before", "call-lost:", raises(StoreError("busy", code="store_busy", retryable=True)))
    tree, _ = await stopped_during_a(bench, late=False)
    assert (AgentStatus.CANCELLED, "stopped") == (tree.root.status, tree.root.reason)


async def test_e27_what_was_asked_before_anybody_drives_is_done_first(bench: Bench) -> None:
    """Nothing is called, and nothing begins."""
    root = bench.start("rounds", {"rounds": 1})
    bench.stop(root)
    program = Stub()
    tree = await bench.drive(root, program)
    assert (AgentStatus.CANCELLED, {}, {}) == (tree.root.status, tree.operations, dict(program.asked))


@pytest.mark.parametrize(("policy", "ends"), [("repeatable", "cancelled"), ("once", "unknown")])
async def test_e27_a_call_that_heeds_no_cancellation_is_given_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, policy: str, ends: str
) -> None:
    """It is waited for a while; what it answers later changes nothing."""
    monkeypatch.setattr(Driver, "grace_seconds", 0.05)
    called, late = asyncio.Event(), asyncio.Event()

    async def deaf(operation: Operation, number: int) -> Any:
        called.set()
        while not late.is_set():
            with suppress(asyncio.CancelledError):
                await late.wait()
        return {"value": "too late"}

    class Acts:
        async def activate(self, input: Any, continuation: Any, runtime: Any) -> Any:
            begin = Begin(
                agent_task_id=runtime.task.agent_task_id, purpose="t", kind="tool", name="t", request={}, policy=policy
            )
            yield Wait(continuation=phase("t"), condition=conditions.operations_ended("t"), changes=(begin,))

    root = bench.start("acts", None)
    driving = asyncio.ensure_future(bench.drive(root, Stub(answer=deaf, behaviours={"acts": Acts()})))
    await called.wait()
    bench.stop(root, "enough")
    tree = await asyncio.wait_for(driving, 10)
    late.set()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert left
    await asyncio.wait(left)  # the call that was left behind

    assert AgentStatus.CANCELLED is tree.root.status
    assert ends == bench.operation(root, "t").state
    assert [("interrupted",)] == bench.all("SELECT state FROM agent_call")
