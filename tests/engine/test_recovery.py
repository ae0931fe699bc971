"""E29 to E31, F01, F02: what a worker does first with a tree that another one has driven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext.engine import conditions
from langgraph_ext.engine.operation_changes import Allow, Begin, Dispatch, SaveRaw
from langgraph_ext.engine.outcomes import Complete, Runtime, Wait
from langgraph_ext.engine.recovery import check, take_over
from langgraph_ext.engine.states import AgentStatus, OperationState, TaskState, TicketState
from langgraph_ext.engine.task_changes import Activate, GoOn, WaitFor
from langgraph_ext.errors import LangGraphExtError, LeaseError, StoreError
from langgraph_ext.ledger.leases import DEFAULT_TTL_US
from tests.support.agents import RELEASE, Stub, Told, Yielded, phase
from tests.support.bench import Bench, raises

ROOT, TASK = "id-000001", "id-000002"
GONE = StoreError("gone", code="store_io")


async def broken_off(bench: Bench, kind: str, where: str = "after", *, at: int = 1, **options: Any) -> Stub:
    """Drive a run of two rounds until its database fails at a commit; the program that was driven."""
    program = Stub(**options)
    bench.strike(where, kind, raises(GONE), at=at)
    root = bench.start("rounds", {"rounds": 2}, run_us=3_600_000_000)
    with pytest.raises(StoreError):
        await bench.drive(root, program)
    bench.store.strikes.clear()
    return program


async def code_of_driving(bench: Bench, program: Stub) -> str:
    with pytest.raises(LangGraphExtError) as refused:
        await bench.drive(ROOT, program, "another")
    return refused.value.code


# -- E29: the order


async def test_e29_a_terminal_run_only_returns_its_result(bench: Bench) -> None:
    """With any code: nothing is checked, written or called."""
    root = bench.start("echo", {"a": 1})
    await bench.drive(root)
    before = bench.everything()
    program = Stub(behaviours={"echo": None})
    tree = await bench.drive(root, program, "another")
    assert (AgentStatus.SUCCEEDED, {"a": 1}) == (tree.root.status, tree.root.output)
    assert before == bench.everything()


BROKEN: dict[str, tuple[str, str]] = {
    "definition_changed": ("definition_changed", "UPDATE agent_run SET release = 'sha256:1'"),
    "no such behaviour": ("node_abi_unavailable", "UPDATE agent_task SET behaviour = 'gone'"),
    "another version": ("node_abi_unavailable", "UPDATE agent_task SET version = 2"),
    "another protocol": (
        "node_protocol_unsupported",
        """UPDATE agent_task SET continuation = CAST('{"protocol":9,"phase":"call"}' AS BLOB)""",
    ),
    "a ticket too many": ("recovery_invariant", "UPDATE agent_run SET consumed = consumed + 1"),
    "a reservation of nobody": ("recovery_invariant", "DELETE FROM agent_ticket"),
    "a wait without a request": (
        "recovery_invariant",
        "UPDATE agent_operation SET state = 'asked', outcome = NULL, ended_us = NULL",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
async def test_e29_e30_everything_is_verified_before_any_outside_call(bench: Bench, broken: str) -> None:
    """A digest, a behaviour, a protocol version or a sum that is not in order stops the run, with the scene kept."""
    await broken_off(bench, "model-ready:")
    code, sql = BROKEN[broken]
    bench.write(sql)
    before = bench.everything()
    program = Stub()

    assert code == await code_of_driving(bench, program)
    assert {} == program.asked
    assert before == bench.everything()


async def test_e29_every_task_of_the_tree_is_verified(bench: Bench) -> None:
    """Also one of a child run, whose turn would come much later."""
    await broken_off(bench, "model-ready:")
    bench.child(ROOT, "child", behaviour="gone", seq=99)
    program = Stub()
    assert "node_abi_unavailable" == await code_of_driving(bench, program)
    assert {} == program.asked


async def test_e29_what_has_ended_needs_no_code(bench: Bench) -> None:
    await broken_off(bench, "model-ready:")
    task = bench.child(ROOT, "child", behaviour="gone")
    bench.write("UPDATE agent_task SET state = 'failed', ended_us = 1 WHERE agent_task_id = ?", task)
    tree = await bench.drive(ROOT, who="another")
    assert AgentStatus.SUCCEEDED is tree.root.status


@pytest.mark.parametrize("asked", ["stop", "deadline"])
async def test_e29_control_comes_first(bench: Bench, asked: str) -> None:
    """A run that was to stop, or is late, calls nothing more: what its worker had dispatched is closed."""
    await broken_off(bench, "model-ready:")
    if asked == "stop":
        bench.stop(ROOT)
    else:
        bench.clock.advance(3_600)
    program = Stub()
    tree = await bench.drive(ROOT, program, "another")

    assert ("stopped" if asked == "stop" else "deadline_exceeded") == tree.root.reason
    assert {} == program.asked
    assert (0, TicketState.RELEASED) == (tree.root.reserved, bench.ticket(ROOT).state)
    assert TaskState.CANCELLED is tree.tasks[TASK].state


async def test_e29_a_scope_that_was_closing_is_settled_by_control(bench: Bench) -> None:
    """Its worker died between the close and the end."""
    await broken_off(bench, "model-ready:")
    bench.stop(ROOT)
    bench.strike("after", "close:", raises(GONE))
    with pytest.raises(StoreError):
        await bench.drive(ROOT, who="another")
    assert AgentStatus.CLOSING is bench.tree(ROOT).root.status

    program = Stub()
    tree = await bench.drive(ROOT, program, "third")
    assert (AgentStatus.CANCELLED, "stopped", {}) == (tree.root.status, tree.root.reason, dict(program.asked))


async def test_e29_a_running_task_is_abandoned_and_goes_on_from_where_it_stands(bench: Bench) -> None:
    await broken_off(bench, "progress:")
    assert TaskState.RUNNING is bench.task(ROOT).state
    await bench.drive(ROOT, who="another")
    assert ["task.activated", "task.abandoned", "task.activated"] == bench.events("task.a%")[:3]


async def test_e29_what_is_said_of_a_tree_while_it_is_taken_over_is_read(bench: Bench) -> None:
    """Somebody writes between the look and the takeover: it is looked at again, and goes on."""
    await broken_off(bench, "call-raw:", "before")
    bench.strike("before", "recover:", lambda: bench.write("UPDATE agent_task SET revision = revision + 1"))
    tree = await bench.drive(ROOT, who="another")
    assert AgentStatus.SUCCEEDED is tree.root.status


async def test_e29_a_waiting_tasks_condition_is_looked_at_again(bench: Bench) -> None:
    """Should it be true, whoever was to notice it."""
    await broken_off(bench, "complete:", "before")
    bench.write(
        """UPDATE agent_operation SET state = 'completed', outcome = CAST('{"value":1}' AS BLOB), ended_us = 1"""
    )
    assert TaskState.WAITING is bench.task(ROOT).state
    program = Stub()
    tree = await bench.drive(ROOT, program, "another")
    assert AgentStatus.SUCCEEDED is tree.root.status
    assert 0 == program.asked["call business-model:1"]


async def test_e29_what_waits_for_somebody_else_is_given_back(bench: Bench) -> None:
    """A driver that has nothing to do does not turn for ever."""

    root = bench.start("echo")
    held = bench.hold(root)
    wait = WaitFor(agent_task_id=TASK, continuation=phase("a"), condition=conditions.operations_ended("elsewhere"))
    bench.commit(held, Activate(agent_task_id=TASK))
    bench.commit(held, wait)
    bench.clock.advance(us=DEFAULT_TTL_US + 1)
    for who in ("another", "a third"):
        tree = await asyncio.wait_for(bench.drive(root, Stub(), who), 5)
        assert TaskState.WAITING is tree.tasks[TASK].state


# -- E29: operations resume where their facts stop


async def test_e29_a_prepared_operation_goes_on_with_its_hooks(bench: Bench) -> None:
    program = await broken_off(bench, "model-ready:", "before")
    tree = await bench.drive(ROOT, program, "another")
    asked = {key: count for key, count in program.asked.items() if key.endswith(":1")}
    assert {"before business-model:1": 2, "call business-model:1": 1, "after business-model:1": 1} == asked
    assert AgentStatus.SUCCEEDED is tree.root.status


async def test_e29_f01_a_stored_answer_is_never_asked_for_again_only_its_hooks(bench: Bench) -> None:
    """Twice broken off: raw is stored and its hooks were not asked; then they were, and that was not stored."""
    program = await broken_off(bench, "call-raw:")
    identity = bench.operation(ROOT).operation_id
    bench.strike("before", "complete:", raises(GONE))
    with pytest.raises(StoreError):
        await bench.drive(ROOT, program, "another")
    tree = await bench.drive(ROOT, program, "third")

    asked = {key: count for key, count in program.asked.items() if key.endswith(":1")}
    assert {"before business-model:1": 1, "call business-model:1": 1, "after business-model:1": 2} == asked
    assert (identity, 2) == (bench.operation(ROOT).operation_id, len(tree.operations))
    assert AgentStatus.SUCCEEDED is tree.root.status


async def test_e29_a_completed_operation_is_used_again(bench: Bench) -> None:
    program = await broken_off(bench, "complete:")
    await bench.drive(ROOT, program, "another")
    assert {1} == set(program.asked.values())


POLICIES = [("repeatable", 2, "completed"), ("keyed", 2, "completed"), ("once", 1, "unknown")]


@pytest.mark.parametrize(("policy", "calls", "ends"), POLICIES)
async def test_e29_a_call_with_no_reliable_result_goes_by_its_policy(
    bench: Bench, policy: str, calls: int, ends: str
) -> None:
    """What changes nothing, or has a key, is called again under the same identity; a `once` is unknown."""

    async def one_call(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        known = runtime.operations.get("t")
        if known is None or not known.state.ended:
            begin = Begin(agent_task_id=TASK, purpose="t", kind="tool", name="t", request={}, policy=policy)
            yield Wait(continuation=phase("a"), condition=conditions.operations_ended("t"), changes=(begin,))
        yield Complete(output=runtime.operations["t"].outcome, continuation=phase("completed"))

    keys = []

    async def answer(operation: Any, number: int) -> Any:
        keys.append((operation.operation_id, operation.idempotency_key))
        return {"value": number}

    program = Stub(answer=answer, behaviours={"told": Told(one_call)})
    root = bench.start("told")
    bench.strike("before", "call-raw:", raises(GONE))
    with pytest.raises(StoreError):
        await bench.drive(root, program)
    tree = await bench.drive(root, program, "another")

    assert (AgentStatus.SUCCEEDED, calls) == (tree.root.status, program.asked["call t"])
    assert (ends, 1) == (str(bench.operation(root, "t").state), len(set(keys)))
    assert 1 == program.asked["before t"]
    assert "interrupted" == bench.all("SELECT state FROM agent_call ORDER BY number")[0][0]


async def test_e29_ids_tickets_deadlines_and_inputs_stay(bench: Bench) -> None:
    await broken_off(bench, "model-ready:")
    before, ticket = bench.tree(ROOT), bench.ticket(ROOT)
    bench.clock.advance(100)
    tree = await bench.drive(ROOT, who="another")

    assert before.root.deadline_us == tree.root.deadline_us
    assert before.tasks.keys() == tree.tasks.keys()
    assert before.operations.keys() < tree.operations.keys()
    assert (TicketState.RESERVED, TicketState.CONSUMED) == (ticket.state, bench.ticket(ROOT).state)
    assert ticket.requested_seq == bench.ticket(ROOT).requested_seq
    assert (2, 0) == (tree.root.consumed, tree.root.reserved)


async def test_e29_a_driver_that_goes_on_under_its_own_epoch_recovers_each_time(bench: Bench) -> None:
    """The database failed, the lease could not be given back, and the same worker drives again, twice: what is under
    way then is another call each time."""
    calls = 0

    async def one_call(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        known = runtime.operations.get("t")
        if known is None or not known.state.ended:
            named = {"purpose": "t", "kind": "tool", "name": "t", "policy": "repeatable"}
            begin = Begin(agent_task_id=TASK, request={}, **named)
            yield Wait(continuation=phase("a"), condition=conditions.operations_ended("t"), changes=(begin,))
        yield Complete(output=1, continuation=phase("completed"))

    async def answer(operation: Any, number: int) -> Any:
        nonlocal calls
        calls += 1
        return {"value": 1}

    program = Stub(answer=answer, behaviours={"told": Told(one_call)})
    root = bench.start("told")
    held = bench.hold(root)
    for n in range(3):
        bench.store.strikes.clear()
        if n < 2:
            bench.strike("before", "call-raw:", raises(GONE))
            with pytest.raises(StoreError):
                await bench.driver(root, held, program).drive()
    tree = await bench.driver(root, held, program).drive()
    assert (AgentStatus.SUCCEEDED, 3) == (tree.root.status, calls)
    numbers = [("interrupted",), ("interrupted",), ("settled",)]
    assert numbers == bench.all("SELECT state FROM agent_call ORDER BY number")


# -- E30


async def test_e30_verification_only_reads(bench: Bench) -> None:
    """And plans what is to be written without writing it."""
    await broken_off(bench, "model-ready:")
    before, tree = bench.everything(), bench.tree(ROOT)
    check(tree, Stub(), RELEASE)
    assert take_over(tree, 7) is not None
    assert before == bench.everything()


async def test_e30_recovery_appends_and_forgets_nothing(bench: Bench) -> None:
    """Commits and events of the one before are still there, at the beginning."""
    await broken_off(bench, "model-ready:")
    keys, events = bench.commit_keys(), bench.events()
    await bench.drive(ROOT, who="another")
    assert keys == bench.commit_keys()[: len(keys)]
    assert events == bench.events()[: len(events)]


# -- E31, F02


async def test_e31_f02_a_stale_worker_stops_and_writes_nothing(bench: Bench) -> None:
    """It is in the middle of a call when its lease expires and another one takes the tree over: what it brings is
    refused, and the other one's run is not touched."""
    called, go_on = asyncio.Event(), asyncio.Event()

    async def slow(operation: Any, number: int) -> Any:
        called.set()
        await go_on.wait()
        return {"value": "stale"}

    root = bench.start("rounds", {"rounds": 1}, run_us=3_600_000_000)
    stale = asyncio.ensure_future(bench.drive(root, Stub(answer=slow), "stale"))
    await called.wait()
    deadline = bench.tree(root).root.deadline_us
    bench.clock.advance(31)
    tree = await bench.drive(root, who="another")
    after = bench.everything()
    go_on.set()
    with pytest.raises(LeaseError) as lost:
        await stale

    assert "lease_lost" == lost.value.code
    assert after == bench.everything()
    assert (AgentStatus.SUCCEEDED, deadline) == (tree.root.status, tree.root.deadline_us)
    assert "stale" not in str(tree.root.output)


async def test_e31_f02_a_stale_checkpoint_says_running_and_is_not_believed(bench: Bench) -> None:
    """Under the new epoch nothing of the old activation may be gone on with before it is abandoned."""
    await broken_off(bench, "progress:")
    held = bench.take_over(ROOT)
    stale = bench.task(ROOT)
    assert TaskState.RUNNING is stale.state
    with pytest.raises(LangGraphExtError) as refused:
        bench.commit(held, GoOn(agent_task_id=TASK, continuation=phase("x")))
    assert "revision_conflict" == refused.value.code
    assert stale == bench.task(ROOT)


async def test_e31_two_workers_do_not_drive_one_tree(bench: Bench) -> None:
    """The second one is told who holds it, and has called nothing."""
    called, go_on = asyncio.Event(), asyncio.Event()

    async def slow(operation: Any, number: int) -> Any:
        called.set()
        await go_on.wait()
        return {"value": 1}

    root = bench.start("rounds", {"rounds": 1})
    first = asyncio.ensure_future(bench.drive(root, Stub(answer=slow), "first"))
    await called.wait()
    program = Stub()
    with pytest.raises(LeaseError) as busy:
        await bench.drive(root, program, "second")
    assert ("thread_busy", {}) == (busy.value.code, dict(program.asked))
    go_on.set()
    assert AgentStatus.SUCCEEDED is (await first).root.status


async def test_e31_a_worker_gives_its_lease_back(bench: Bench) -> None:
    """Also when it fails: the next one need not wait."""
    await broken_off(bench, "progress:")
    assert [(1,)] == bench.all("SELECT count(*) FROM lease WHERE released_us IS NOT NULL")
    await bench.drive(ROOT, who="another")
    assert [(2, 1)] == bench.all("SELECT epoch, released_us IS NOT NULL FROM lease")


def test_e29_a_dispatched_call_whose_scope_closed_is_not_called_again(bench: Bench) -> None:
    """By hand: closing, taken over, lost."""
    assert ROOT == bench.start("rounds", {"rounds": 1})
    held = bench.hold(ROOT)
    bench.commit(held, Activate(agent_task_id=TASK))
    begin = Begin(agent_task_id=TASK, purpose="m", kind="model", name="m", request={})
    operation_id = bench.commit(held, begin).result["operations"]["m"]
    bench.commit(held, Allow(operation_id=operation_id, request={}, before=[], needs_ticket=True))
    bench.write("UPDATE agent_run SET status = 'closing', reason = 'stopped'")
    later = bench.take_over(ROOT)
    recovered = take_over(bench.tree(ROOT), later.epoch)
    assert recovered is not None
    bench.commit(later, *recovered.changes, key=recovered.key)

    assert OperationState.CANCELLED is bench.operation(ROOT, "m").state
    for change in (
        Dispatch(operation_id=operation_id, number=2),
        SaveRaw(operation_id=operation_id, number=1, raw={"value": 1}),
    ):
        refused: Callable[[], Any] = lambda change=change: bench.commit(later, change)  # noqa: E731
        with pytest.raises(LangGraphExtError):
            refused()
