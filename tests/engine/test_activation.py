"""E6 to E11: how an agent task is driven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext.engine import conditions
from langgraph_ext.engine.batches import FreezeBatch
from langgraph_ext.engine.contexts import Append
from langgraph_ext.engine.control import Close
from langgraph_ext.engine.granting import ConsumeTicket, ReleaseTicket
from langgraph_ext.engine.operation_changes import Begin, CompleteOperation
from langgraph_ext.engine.outcomes import Complete, Fail, Progress, Runtime, Wait
from langgraph_ext.engine.recovery import Abandon, LookAgain
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.states import AgentStatus, TaskState
from langgraph_ext.engine.task_changes import Activate, EndTask, GoOn, WaitFor
from langgraph_ext.errors import (
    ConflictError,
    InvalidArgument,
    LangGraphExtError,
    LeaseError,
    RecoveryRequired,
    StoreError,
)
from tests.support.agents import Stub, Told, Yielded, phase
from tests.support.bench import Bench, StrikingStore, raises

Benches = Callable[..., Bench]
TASK = "id-000002"
"""The task of a bench's first root."""
NEVER = conditions.operations_ended("never")


def told(behaviour: Callable[..., Yielded], **options: Any) -> Stub:
    """A program whose behaviour `told` is a function."""
    return Stub(behaviours={"told": Told(behaviour)}, **options)


def tool(purpose: str = "t", **more: Any) -> Begin:
    """An intent of the first root's task."""
    return Begin(**{"agent_task_id": TASK, "purpose": purpose, "kind": "tool", "name": "t", "request": {}, **more})


# -- E6


async def test_e6_n01_the_generator_never_runs_past_a_yield_that_is_not_committed(bench: Bench) -> None:
    """The database fails before a Progress commit: the next line ran no time, nothing was called, and the one who
    takes over starts at the same phase."""
    bench.strike("before", "progress:", raises(StoreError("gone", code="store_io")))
    ran: list[str] = []

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        ran.append(f"from {continuation and continuation['phase']}")
        if continuation is None:
            yield Progress(continuation=phase("second"), changes=(tool(),))
            ran.append("past it")
        yield Complete(output=1, continuation=phase("completed"))

    program = told(behaviour)
    root = bench.start("told")
    with pytest.raises(StoreError):
        await bench.drive(root, program)
    assert (["from None"], {}) == (ran, dict(program.asked))
    assert (TaskState.READY, None) == (bench.task(root).state, bench.task(root).continuation)

    await bench.drive(root, program, "another")
    assert ["from None", "from None", "past it"] == ran


async def test_e6_n02_a_commit_whose_answer_is_lost_is_found(bench: Bench) -> None:
    """Progress was committed and its worker died before it was told: the revision has risen once, there is one
    operation, and the task goes on behind it."""
    lost = StoreError("the answer is lost", code="store_io")
    bench.strike("after", "progress:", raises(lost))
    root = bench.start("rounds", {"rounds": 1})
    with pytest.raises(StoreError):
        await bench.drive(root)
    assert (2, "call") == (bench.task(root).revision, bench.task(root).continuation["phase"])

    tree = await bench.drive(root, who="another")
    assert (AgentStatus.SUCCEEDED, 1) == (tree.root.status, len(tree.operations))


async def test_e6_what_a_commit_answers_is_sent_to_the_generator(bench: Bench) -> None:
    answers = []

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        answers.append((yield Progress(continuation=phase("a"), changes=(tool(),))))
        answers.append((runtime.task.revision, sorted(runtime.operations)))
        yield Complete(output=1, continuation=phase("completed"))

    await bench.drive(bench.start("told"), told(behaviour))
    assert {"id": TASK, "state": "running", "revision": 2} == answers[0]["task"]
    assert ["t"] == list(answers[0]["operations"])
    assert (2, ["t"]) == answers[1]


# -- E7

GO_ON = GoOn(agent_task_id=TASK, continuation=phase("a"))
WAIT = WaitFor(agent_task_id=TASK, continuation=phase("a"), condition=NEVER)
END = EndTask(agent_task_id=TASK, output=1)
FAIL = EndTask(agent_task_id=TASK, error={"code": "c", "message": "m"})
ACTIVATE = Activate(agent_task_id=TASK)
ABANDON = Abandon(agent_task_id=TASK)
LOOK = LookAgain(agent_task_id=TASK)
CLOSE = Close(agent_run_id="id-000001", reason="stopped")

MOVES = {
    ("ready", "activate"): "running",
    ("running", "go_on"): "running",
    ("running", "wait"): "waiting",
    ("running", "end"): "succeeded",
    ("running", "fail"): "failed",
    ("running", "abandon"): "ready",
}
CHANGES: dict[str, Any] = {
    "activate": ACTIVATE,
    "go_on": GO_ON,
    "wait": WAIT,
    "end": END,
    "fail": FAIL,
    "abandon": ABANDON,
}


def bring(bench: Bench, state: str) -> Any:
    """A held root whose task is in a state, by commits where there are some."""
    held = bench.hold(bench.start("rounds", {"rounds": 1}))
    if state != "ready":
        bench.commit(held, ACTIVATE)
    if state == "waiting":
        bench.commit(held, WAIT)
    elif state == "succeeded":
        bench.commit(held, END)
    elif state in ("failed", "cancelled"):
        bench.write(f"UPDATE agent_task SET state = '{state}', ended_us = 1")
    return held


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("state", [str(each) for each in TaskState])
def test_e7_a_task_moves_as_the_states_say_and_not_otherwise(bench: Bench, state: str, change: str) -> None:
    held = bring(bench, state)
    before = bench.everything()
    target = MOVES.get((state, change))
    if target is not None:
        bench.commit(held, CHANGES[change])
        assert target == bench.task("id-000001").state
    else:
        with pytest.raises(ConflictError) as refused:
            bench.commit(held, CHANGES[change])
        assert "revision_conflict" == refused.value.code
        assert before == bench.everything()


@pytest.mark.parametrize("change", ["go_on", "wait", "end", "fail"])
def test_e7_a_task_that_another_epoch_activated_is_not_driven_under_this_one(bench: Bench, change: str) -> None:
    bring(bench, "running")
    held = bench.take_over("id-000001")
    with pytest.raises(ConflictError) as refused:
        bench.commit(held, CHANGES[change])
    assert "revision_conflict" == refused.value.code


def test_e7_a_task_is_ready_at_once_if_its_condition_is_true_already(bench: Bench) -> None:
    held = bring(bench, "running")
    bench.commit(held, WaitFor(agent_task_id=TASK, continuation=phase("a"), condition=conditions.operations_ended()))
    task = bench.task("id-000001")
    assert (TaskState.READY, None, "a") == (task.state, task.condition, task.continuation["phase"])


def test_e7_a_repeated_result_returns_the_first(bench: Bench) -> None:
    held = bring(bench, "running")
    first = bench.commit(held, END, key=f"task-result:{TASK}")
    again = bench.commit(held, END, key=f"task-result:{TASK}")
    assert (first.result, True) == again[:2]
    with pytest.raises(ConflictError):
        bench.commit(held, EndTask(agent_task_id=TASK, output=2), key=f"task-result:{TASK}")
    assert 1 == bench.task("id-000001").output


@pytest.mark.parametrize("state", ["ready", "running", "waiting"])
async def test_e7_any_live_task_is_cancelled_by_control(bench: Bench, state: str) -> None:
    bring(bench, state)
    bench.clock.advance(60)
    bench.stop("id-000001")
    await bench.drive("id-000001", who="another")
    assert TaskState.CANCELLED == bench.task("id-000001").state


@pytest.mark.parametrize("bad", ["paused", "", "READY"])
def test_e7_the_rows_refuse_a_state_that_there_is_none_of(bench: Bench, bad: str) -> None:
    bring(bench, "ready")
    with pytest.raises(Exception, match="CHECK"):
        bench.write("UPDATE agent_task SET state = ?", bad)


# -- E8


async def test_e8_after_a_conflict_a_commit_that_is_there_is_gone_on_from(bench: Bench) -> None:
    """The generator is closed, and another one begins at the stored continuation; nothing is written twice."""
    conflict = ConflictError("lost its answer", code="revision_conflict")
    bench.strike("after", "progress:", raises(conflict))
    seen: list[Any] = []

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        seen.append(continuation and continuation["phase"])
        try:
            if continuation is None:
                yield Progress(continuation=phase("second"), changes=(tool(f"t{len(seen)}"),))
                seen.append("went on")
            yield Complete(output=1, continuation=phase("completed"))
        finally:
            seen.append("closed")

    tree = await bench.drive(bench.start("told"), told(behaviour))
    assert AgentStatus.SUCCEEDED is tree.root.status
    assert [None, "closed", "second", "closed"] == seen
    assert ["t1"] == [each.purpose for each in tree.operations.values()]


async def test_e8_after_a_conflict_the_same_phase_is_prepared_again(bench: Bench) -> None:
    """Somebody has moved the row: the changes of the old generator are gone, and those of the new one are written."""
    bench.strike("before", "progress:", lambda: bench.write("UPDATE agent_task SET revision = revision + 1"))
    seen: list[Any] = []

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        if continuation is None:
            seen.append(runtime.task.revision)
            yield Progress(continuation=phase("second"), changes=(tool(f"t{len(seen)}"),))
        yield Complete(output=1, continuation=phase("completed"))

    tree = await bench.drive(bench.start("told"), told(behaviour))
    assert AgentStatus.SUCCEEDED is tree.root.status
    assert [0, 1] == seen
    assert ["t2"] == [each.purpose for each in tree.operations.values()]


async def test_e8_what_was_committed_under_the_key_wins_over_another_try(bench: Bench) -> None:
    """A key that is on record for something else is no failure of the behaviour: the task is read again."""
    held = {}

    def other() -> None:
        go_on = GoOn(agent_task_id=TASK, continuation=phase("second", by="another"))
        bench.commit(held["now"], Activate(agent_task_id=TASK), go_on, key=f"progress:{TASK}:0:second")

    bench.strike("before", "progress:", other)
    seen: list[Any] = []

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        seen.append(continuation)
        if continuation is None:
            yield Progress(continuation=phase("second", by="me"))
        yield Complete(output=1, continuation=phase("completed"))

    root = bench.start("told")
    held["now"] = bench.hold(root)
    tree = await bench.driver(root, held["now"], told(behaviour)).drive()
    assert AgentStatus.SUCCEEDED is tree.root.status
    assert [None, phase("second", by="another")] == seen


async def test_e8_a_scope_that_closes_while_a_task_fails_is_no_error_of_the_driver(bench: Bench) -> None:
    """The behaviour's change is refused, and before that is told the run is stopped: the first reason stays."""
    root = bench.start("told")
    held = bench.hold(root)
    bench.strike("before", "task-result:", lambda: bench.commit(held, Close(agent_run_id=root, reason="stopped")))

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        if continuation is None:
            yield Progress(continuation=phase("a"), changes=(tool(),))
        release = ReleaseTicket(operation_id=runtime.operations["t"].operation_id)
        yield Progress(continuation=phase("b"), changes=(release,))

    tree = await bench.driver(root, held, told(behaviour)).drive()
    assert (AgentStatus.CANCELLED, "stopped") == (tree.root.status, tree.root.reason)


# -- E9


async def failed(bench: Bench, behaviour: Callable[..., Yielded]) -> str | None:
    """Drive it, and tell why it failed; that it has called nothing is seen to."""
    program = told(behaviour)
    tree = await bench.drive(bench.start("told"), program)
    assert (AgentStatus.FAILED, TaskState.FAILED) == (tree.root.status, tree.tasks[TASK].state)
    assert tree.tasks[TASK].error["code"] == tree.root.reason
    assert {} == program.asked
    return tree.root.reason


@pytest.mark.parametrize("steps", [0, 2])
async def test_e9_a_generator_that_ends_without_a_result_has_failed(bench: Bench, steps: int) -> None:
    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        for n in range(steps):
            yield Progress(continuation=phase(f"p{n}"))

    assert "node_missing_terminal_outcome" == await failed(bench, behaviour)
    assert steps == len(bench.commit_keys("progress"))


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("sk-secret"),
        InvalidArgument("sk-secret"),
        ConflictError("sk-secret", code="revision_conflict"),
        LangGraphExtError("sk-secret", code="node_outcome_invalid"),
        RecoveryRequired("sk-secret"),
        TimeoutError("sk-secret"),
        StoreError("sk-secret", code="closed"),
        LeaseError("sk-secret", code="lease_lost"),
        asyncio.CancelledError("sk-secret"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_e9_an_exception_is_a_failure_whose_text_is_kept_to_itself(bench: Bench, error: Exception) -> None:
    """Whatever its class: a behaviour has no store of its own that could be lost."""

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        yield Progress(continuation=phase("a"))
        raise error

    assert "node_implementation_failed" == await failed(bench, behaviour)
    assert "sk-secret" not in str(bench.everything())
    assert type(error).__name__ in bench.task("id-000001").error["message"]


class TwoArguments:
    async def activate(self, input: Any, continuation: Any) -> Yielded:
        yield Complete(output=1, continuation=phase("completed"))


class NoGenerator:
    async def activate(self, input: Any, continuation: Any, runtime: Runtime) -> int:
        return 1


class Nothing:
    def activate(self, input: Any, continuation: Any, runtime: Runtime) -> None:
        return None


@pytest.mark.parametrize("behaviour", [TwoArguments, NoGenerator, Nothing], ids=lambda each: each.__name__)
async def test_e9_what_is_no_async_generator_has_failed(bench: Bench, behaviour: Callable[[], Any]) -> None:
    """Its task is not left running, to raise the same for whoever drives it next."""
    tree = await bench.drive(bench.start("told"), Stub(behaviours={"told": behaviour()}))
    assert (AgentStatus.FAILED, "node_implementation_failed") == (tree.root.status, tree.root.reason)


@pytest.mark.parametrize("yields", [True, False])
async def test_e9_a_generator_that_cannot_be_closed_has_its_result(bench: Bench, yields: bool) -> None:
    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        try:
            yield Complete(output=7, continuation=phase("completed"))
        finally:
            if yields:
                yield Progress(continuation=phase("a"))
            raise ValueError("sk-secret")

    tree = await bench.drive(bench.start("told"), told(behaviour))
    assert (AgentStatus.SUCCEEDED, 7) == (tree.root.status, tree.root.output)


OTHERS = ConsumeTicket(operation_id="of another task")


def said(*entries: Any) -> Progress:
    """A history that goes on with these."""
    return Progress(continuation=phase("a"), changes=(Append(agent_task_id=TASK, after=0, entries=entries),))


INVALID: dict[str, Any] = {
    "no outcome": {"not": "one"},
    "a string": "completed",
    "no continuation": Progress(continuation=None),  # type: ignore[arg-type]
    "a continuation that is a text": Progress(continuation="phase"),  # type: ignore[arg-type]
    "another protocol": Progress(continuation={"protocol": 2, "phase": "a"}),
    "no phase": Progress(continuation={"protocol": 1}),
    "a phase that is a number": Progress(continuation={"protocol": 1, "phase": 3}),
    "a continuation that JSON cannot hold": Progress(continuation=phase("a", what=object())),
    "a number that JSON cannot hold": Wait(continuation=phase("a", what=float("nan")), condition=NEVER),
    "a number that is too long": Progress(continuation=phase("a", what=2**70)),
    "an output that JSON cannot hold": Complete(output={1, 2}, continuation=phase("completed")),
    "a completion without a continuation": Complete(output=1, continuation=None),  # type: ignore[arg-type]
    "a failure without a code": Fail(code=None, message="m"),  # type: ignore[arg-type]
    "a failure whose message is an error": Fail(code="c", message=ValueError("m")),  # type: ignore[arg-type]
    "a failure whose message is no Unicode": Fail(code="c", message="\ud800"),
    "a condition of no kind": Wait(continuation=phase("a"), condition={"kind": "moon"}),
    "a condition of a strange kind": Wait(continuation=phase("a"), condition={"kind": ["operations"]}),
    "a condition that is none": Wait(continuation=phase("a"), condition=None),  # type: ignore[arg-type]
    "a condition of nothing": Wait(continuation=phase("a"), condition={"kind": "operations"}),
    "a condition of a number": Wait(continuation=phase("a"), condition={"kind": "operations", "purposes": [3]}),
    "an intent of another task": Progress(continuation=phase("a"), changes=(tool(agent_task_id="another"),)),
    "a request that JSON cannot hold": Progress(continuation=phase("a"), changes=(tool(request=object()),)),
    "an intent of no kind": Progress(continuation=phase("a"), changes=(tool(kind="moon"),)),
    "a wait for what was never begun": Wait(continuation=phase("a"), condition=NEVER),
    "an intent of no policy": Progress(continuation=phase("a"), changes=(tool(policy="twice"),)),
    "an intent without a purpose": Progress(continuation=phase("a"), changes=(tool(purpose=None),)),
    "an intent whose purpose is no Unicode": Progress(continuation=phase("a"), changes=(tool(purpose="\ud800"),)),
    "a ticket of a list": Progress(
        continuation=phase("a"),
        changes=(ConsumeTicket(operation_id=[]),),  # type: ignore[arg-type]
    ),
    "an operation that is not committed": Progress(continuation=phase("a"), changes=(tool(), OTHERS)),
    "a release of another's ticket": Progress(
        continuation=phase("a"), changes=(ReleaseTicket(operation_id="of another task"),)
    ),
    "an end of itself": Progress(continuation=phase("a"), changes=(END,)),
    "a close": Complete(output=1, continuation=phase("completed"), changes=(CLOSE,)),
    "a result of an operation": Progress(
        continuation=phase("a"), changes=(CompleteOperation(operation_id="o", after=[], outcome={}),)
    ),
    "a message of nobody": said({"kind": "decision", "tokens": 1, "operation_id": "nobody"}),
    "a message that is nowhere": said({"kind": "input", "tokens": 1}),
    "a message that JSON cannot hold": said({"kind": "input", "tokens": 1, "message": object()}),
    "a message of no kind": said({"kind": "moon", "tokens": 1, "message": {}}),
    "a message without a size": said({"kind": "input", "message": {}}),
    "a message of a strange size": said({"kind": "input", "tokens": -1, "message": {}}),
    "a summary of nothing": said({"kind": "summary", "tokens": 1, "message": {}}),
    "messages that are numbers": said(3),
    "a batch of nobody's decision": Progress(
        continuation=phase("a"),
        changes=(FreezeBatch(operation_id="nobody", agent_task_id=TASK, members=(), serial=False),),
    ),
    "a key of somebody else's": Progress(continuation=phase("a"), key="accept-model:nobody"),
    "no tuple": Progress(continuation=phase("a"), changes=[tool()]),  # type: ignore[arg-type]
    "no changes": Progress(continuation=phase("a"), changes=None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("outcome", INVALID)
async def test_e9_an_outcome_that_a_behaviour_may_not_yield_is_refused_before_its_commit(
    bench: Bench, outcome: str
) -> None:
    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        yield INVALID[outcome]

    assert "node_outcome_invalid" == await failed(bench, behaviour)
    assert [] == bench.commit_keys("progress")
    assert {} == bench.tree("id-000001").operations


@pytest.mark.parametrize("outcome", [Progress(continuation=phase("a")), Wait(continuation=phase("a"), condition=NEVER)])
async def test_e9_from_completed_a_task_goes_nowhere(bench: Bench, outcome: Any) -> None:
    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        yield Progress(continuation=phase("completed"))
        yield outcome

    assert "node_outcome_invalid" == await failed(bench, behaviour)


async def test_e9_in_completed_a_task_gives_its_output(bench: Bench) -> None:
    """Which is that phase's one outcome."""

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        yield Progress(continuation=phase("completed"))
        yield Complete(output=7, continuation=phase("completed"))

    tree = await bench.drive(bench.start("told"), told(behaviour))
    assert (AgentStatus.SUCCEEDED, 7) == (tree.root.status, tree.root.output)


async def test_e9_a_ticket_is_consumed_for_a_reason_that_is_text(bench: Bench) -> None:
    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        asked = runtime.operations.get("m")
        if asked is None:
            begin = tool("m", kind="model")
            yield Wait(continuation=phase("a"), condition=conditions.operations_ended("m"), changes=(begin,))
        else:
            consume = ConsumeTicket(operation_id=asked.operation_id, reason=object())  # type: ignore[arg-type]
            yield Complete(output=1, continuation=phase("completed"), changes=(consume,))

    tree = await bench.drive(bench.start("told"), told(behaviour))
    assert (AgentStatus.FAILED, "node_outcome_invalid") == (tree.root.status, tree.root.reason)


async def test_e9_an_operation_of_another_task_is_not_this_ones_to_settle(bench: Bench) -> None:
    """Though it is committed, and of the same tree."""
    root = bench.start("told")
    child = bench.child(root, "child", behaviour="rounds")
    held = bench.hold(root)
    bench.commit(held, Activate(agent_task_id=child))
    begin = Begin(agent_task_id=child, purpose="p", kind="model", name="m", request={})
    other = bench.commit(held, begin).result["operations"]["p"]

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        yield Progress(continuation=phase("a"), changes=(ConsumeTicket(operation_id=other),))

    tree = await bench.driver(root, held, told(behaviour)).drive()
    assert "node_outcome_invalid" == tree.tasks[TASK].error["code"]


async def test_e9_a_lost_lease_raises_and_writes_nothing(bench: Bench) -> None:
    """No business failure is made of it, and the next owner goes on."""
    root = bench.start("rounds", {"rounds": 1})
    stolen: list[Any] = []

    def steal() -> None:
        bench.take_over(root, "thief")
        stolen.append(bench.everything())

    bench.strike("before", "progress:", steal)
    with pytest.raises(LeaseError) as lost:
        await bench.drive(root)
    assert "lease_lost" == lost.value.code
    assert stolen == [bench.everything()]

    tree = await bench.drive(root, who="thief")
    assert AgentStatus.SUCCEEDED is tree.root.status


@pytest.mark.parametrize("kind", ["progress:", "task-result:", "model-ready:", "call-raw:", "complete:"])
async def test_e9_a_lost_database_raises_and_fails_nothing(bench: Bench, kind: str) -> None:
    bench.strike("before", kind, raises(StoreError("full", code="store_full")))
    root = bench.start("rounds", {"rounds": 1})
    with pytest.raises(StoreError):
        await bench.drive(root)
    assert AgentStatus.RUNNING is bench.tree(root).root.status

    tree = await bench.drive(root, who="another")
    assert (AgentStatus.SUCCEEDED, 1) == (tree.root.status, tree.root.consumed)


async def test_e9_a_cancelled_coroutine_is_no_stop(bench: Bench) -> None:
    """The run stays open, and whoever drives it next brings it to its end."""
    called = asyncio.Event()

    async def hangs(operation: Any, number: int) -> Any:
        called.set()
        await asyncio.Event().wait()

    root = bench.start("rounds", {"rounds": 1})
    driving = asyncio.ensure_future(bench.drive(root, Stub(answer=hangs)))
    await called.wait()
    driving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await driving
    assert AgentStatus.RUNNING is bench.tree(root).root.status

    tree = await bench.drive(root, who="another")
    assert (AgentStatus.SUCCEEDED, 1) == (tree.root.status, tree.root.consumed)


# -- E10


def ends(bench: Bench, held: Any) -> None:
    """The operation of the purpose `t` ends."""
    bench.write("UPDATE agent_operation SET state = 'raw', raw = X'7B7D'")
    operation_id = bench.operation("id-000001", "t").operation_id
    bench.commit(held, CompleteOperation(operation_id=operation_id, after=[], outcome={"value": 1}))


@pytest.mark.parametrize("first", ["the wait", "the result"])
def test_e10_n03_a_result_wakes_whoever_waits_whichever_comes_first(bench: Bench, first: str) -> None:
    """In both orders the same task is ready, once; two more notices make no second activation."""
    held = bring(bench, "running")
    bench.commit(held, tool())
    waits = WaitFor(agent_task_id=TASK, continuation=phase("a"), condition=conditions.operations_ended("t"))
    steps = [lambda: bench.commit(held, waits), lambda: ends(bench, held)]
    for step in steps if first == "the wait" else reversed(steps):
        step()
    ready = bench.task("id-000001")
    bench.commit(held, LOOK)
    bench.commit(held, LOOK)

    assert (TaskState.READY, None) == (ready.state, ready.condition)
    assert ready == bench.task("id-000001")
    bench.commit(held, ACTIVATE)
    with pytest.raises(ConflictError):
        bench.commit(held, ACTIVATE)
    assert 2 == len(bench.events("task.activated"))  # the one before it waited, and this one


def test_e10_a_condition_of_several_waits_for_the_last(bench: Bench) -> None:
    held = bring(bench, "running")
    for purpose in ("t", "u"):
        bench.commit(held, tool(purpose))
    condition = conditions.operations_ended("t", "u")
    bench.commit(held, WaitFor(agent_task_id=TASK, continuation=phase("a"), condition=condition))
    bench.write("UPDATE agent_operation SET state = 'raw', raw = X'7B7D'")
    for purpose, state in (("t", TaskState.WAITING), ("u", TaskState.READY)):
        operation_id = bench.operation("id-000001", purpose).operation_id
        bench.commit(held, CompleteOperation(operation_id=operation_id, after=[], outcome={"value": 1}))
        assert state is bench.task("id-000001").state


# -- E11


async def test_e11_ready_tasks_run_in_the_order_that_commits_gave(bench: Bench) -> None:
    """By ready_seq, then agent run, then agent task; never by a clock."""
    order: list[str] = []

    async def notes(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        order.append(runtime.task.agent_task_id)
        yield Complete(output=1, continuation=phase("completed"))

    async def waits(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        if continuation is None:
            begin = Begin(agent_task_id=runtime.task.agent_task_id, purpose="t", kind="tool", name="t", request={})
            yield Wait(continuation=phase("a"), condition=conditions.operations_ended("t"), changes=(begin,))
        yield Complete(output=1, continuation=phase("completed"))

    async def until_all_ran(operation: Operation, number: int) -> Any:
        while len(order) < 4:
            await asyncio.sleep(0.001)
        return {"value": 1}

    root = bench.start("told")
    for name, seq in (("a", 9), ("c", 4), ("b", 4), ("d", 2)):
        bench.child(root, name, behaviour="notes", seq=seq)
        bench.clock.advance(-1)
    await bench.drive(root, Stub(answer=until_all_ran, behaviours={"told": Told(waits), "notes": Told(notes)}))
    assert ["task-of-d", "task-of-b", "task-of-c", "task-of-a"] == order


async def test_e11_after_each_progress_the_driver_yields_to_the_loop(benches: Benches) -> None:
    """Also where nothing else makes it wait: somebody else has had a turn between any two steps."""

    class Blocking(StrikingStore):
        async def transact(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
            return self.database.transact(fn, *args, **kwargs)

        async def read(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
            return self.database.read(fn, *args, **kwargs)

    bench = benches(store=Blocking)
    turns, seen = 0, []

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def behaviour(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        for n in range(5):
            seen.append(turns)
            yield Progress(continuation=phase(f"p{n}"))
        yield Complete(output=1, continuation=phase("completed"))

    root = bench.start("told")
    held = bench.hold(root)
    ticking = asyncio.ensure_future(tick())
    await bench.driver(root, held, told(behaviour)).drive()
    ticking.cancel()
    assert sorted(set(seen)) == seen


async def test_e11_one_loop_calls_for_an_operation(bench: Bench) -> None:
    """However often the driver turns meanwhile."""
    turned = asyncio.Event()

    async def slow(operation: Any, number: int) -> Any:
        await turned.wait()
        return {"value": 1}

    program = Stub(answer=slow)
    root = bench.start("rounds", {"rounds": 1})
    held = bench.hold(root)
    driver = bench.driver(root, held, program)
    driving = asyncio.ensure_future(driver.drive())
    for _ in range(5):
        await asyncio.sleep(0.01)
        driver.look()
    turned.set()
    await driving
    assert 1 == program.asked["call business-model:1"]
