"""Driver: how a worker that holds a tree's lease drives it, turn by turn (rule E11).

    control ─▶ loops of operations ─▶ the first ready task, until it waits or ends ─▶ again
                                      none ready: wait for a loop, or give the tree back

Everything is begun from rows, so a turn that a conflict ends is made again from what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from langgraph_ext.database import Tx
from langgraph_ext.engine.activation import Activation
from langgraph_ext.engine.cancelled import to_its_end
from langgraph_ext.engine.closing import STOPPED
from langgraph_ext.engine.commits import Committed, Held, Look, RuntimeCommit
from langgraph_ext.engine.control import Close, Finish, Succeed
from langgraph_ext.engine.operations import CallLoop, has_work, loss_of
from langgraph_ext.engine.program import Program
from langgraph_ext.engine.recovery import check, take_over
from langgraph_ext.engine.rows import AgentRun, AgentTask, Operation, Stop, Tree, read_tree
from langgraph_ext.engine.runtimes import First, Runtime, Seen, refresh
from langgraph_ext.engine.states import AgentStatus, OperationState, TaskState
from langgraph_ext.engine.store import Store
from langgraph_ext.engine.task_changes import EndTask
from langgraph_ext.engine.tickets import DEADLINE
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.records import CancelMode

__all__ = ["Driver", "has_something_to_do"]

_GRACE_SECONDS = 5.0
"""For how long a call that was told to stop is waited for."""

_LOOK_SECONDS = 1.0
"""How often control is looked at while nothing but calls is under way: who asks may be another process."""


class Driver:
    """One worker on one tree, under one lease.

    Args:
        store: Reads and commits.
        program: The release's behaviours, calls and hooks.
        release: Its digest.
        root_id: The tree.
        held: The lease.
        ends_at_once: Whether the tree ends in the transaction in which its first task has the output, and not in a
            turn of its own.
        at_end: Reads what the caller wants of the tree once it has ended (`end`), where it is seen to have.
    """

    grace_seconds = _GRACE_SECONDS

    def __init__(
        self,
        store: Store,
        program: Program,
        release: str,
        root_id: str,
        held: Held,
        *,
        ends_at_once: bool = False,
        at_end: Callable[[Tx], object] | None = None,
    ) -> None:
        self._store = store
        self._program = program
        self._release = release
        self._root_id = root_id
        self._held = held
        self._ends_at_once = ends_at_once
        self._at_end = at_end
        self.end: Any = None
        """What `at_end` has read; None where nothing was read behind the tree's end."""
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._run_of: dict[str, str] = {}
        """By operation whose loop runs: its agent run."""
        self._finding: set[str] = set()
        """Operations in doubt, of which a function is asked still."""
        self._made = 0
        """Commits that were asked for."""
        self._seen: tuple[int, Seen | None] = (0, None)
        """What was seen behind one of them, and which."""
        self._to_call: set[str] = set()
        """Operations whose first call was put on record with another commit, and is to be made here."""
        self._is_asked = False
        """Whether something was asked of the tree that may not have been seen yet."""
        self._woken = asyncio.Event()
        """Set when the driver is not to wait any more: something was asked, or a loop has ended."""

    def look(self) -> None:
        """Something was asked of the tree in this process: look at it now."""
        self._is_asked = True
        self._woken.set()

    async def drive(self) -> Tree:
        """As `drive_on`; the tree, as it is then."""
        await self.drive_on()
        return await self._store.read(read_tree, self._root_id)

    async def drive_on(self, first: First | None = None) -> AgentRun:
        """Drive the tree until it has ended, or waits for something that nobody here does; its root, as seen last.

        Args:
            first: The first look, if it was taken already, with what the tree began in (`first_look`).

        Raises:
            LeaseError: The lease was lost (`lease_lost`); nothing was written since.
            StoreError: The database failed; what was begun is taken over by the next who drives the tree.
            LangGraphExtError: The tree cannot be driven with this code (recovery.check).
        """
        root = await self._recover(first)
        if root.status.ended:
            return root
        try:
            return await self._turns()
        finally:
            await to_its_end(self._stop_loops(self._loops))

    async def _recover(self, first: First | None) -> AgentRun:
        """Take over what is under way in rows, and nobody's; the root as it was read before.

        Somebody may say what came of a call meanwhile (doubts.resolve): then it is read again.
        """
        while True:
            root, recovered, seen = first if first is not None else await self._store.read(self.first_look)
            first = None
            try:
                if recovered is not None:
                    await self._commit(recovered)
                else:
                    self._seen = (self._made, seen)
                return root
            except ConflictError as conflict:
                if conflict.code != "revision_conflict":
                    raise
                await asyncio.sleep(0)

    def first_look(self, tx: Tx) -> First:
        """Read the root, what has to be written before it is driven, and, if nothing has, where it is begun."""
        tree = read_tree(tx, self._root_id)
        if tree.root.status.ended:
            return First(tree.root, None, None)
        check(tree, self._program, self._release)
        recovered = take_over(tree, self._held.epoch)
        return First(tree.root, recovered, _checked(tx, self._held, self._look) if recovered is None else None)

    async def _turns(self) -> AgentRun:
        while True:
            tree, runtime, ahead, self.end = await self._newest()
            if tree.root.status.ended:
                return tree.root
            if await self._control(tree):
                continue
            self._start_loops(tree, ahead)
            if runtime is not None and tree.stop is None:
                ends = self._ends_at_once and _is_first(runtime.task, tree.root)
                commit = self._commit_and_end if ends else self._commit
                activation = Activation(commit, self._program, runtime, self._refreshed, self._look)
                await activation.run()
            elif self._loops:
                await self._wait(tree)
            else:
                return tree.root

    async def _newest(self) -> Seen:
        """The tree as it is: seen behind the last commit of this driver, if nobody has asked anything since."""
        is_asked, self._is_asked = self._is_asked, False
        self._woken.clear()
        self._collect()
        made, seen = self._seen
        self._seen = (0, None)  # once: somebody else may write meanwhile
        if seen is None or is_asked or made != self._made:
            seen = await self._store.read(_checked, self._held, self._look)
        return seen

    def _look(self, tx: Tx) -> Seen:
        """Read the tree, what the behaviour may look at whose turn it is, and what calls need that are to be made."""
        tree = read_tree(tx, self._root_id, whole=False)
        if tree.root.status.ended:
            return Seen(tree, None, {}, None if self._at_end is None else self._at_end(tx))
        task = _first_ready(tree)
        ahead = {
            each.operation_id: self._program.ahead(tx, each)
            for each in tree.operations.values()
            if each.state is OperationState.DISPATCHED and each.operation_id not in self._loops
        }
        return Seen(tree, None if task is None else self._refreshed(tx, task), ahead)

    def _refreshed(self, tx: Tx, task: AgentTask) -> Runtime:
        """Read what a task's behaviour may look at."""
        behaviour = self._program.behaviour(task.behaviour, task.version)
        return refresh(
            tx,
            task.agent_task_id,
            spec=self._program.spec,
            live=self._program.live,
            serde=self._store.serde,
            context=getattr(behaviour, "reads_context", False),
        )

    # -- control

    async def _control(self, tree: Tree) -> bool:
        """See to what closes or ends scopes; whether something was."""
        root = tree.root
        if root.status is AgentStatus.RUNNING:
            output = _output_of(tree)
            if output is not None:  # committed before whatever else would end it
                await self._stop_calls(root, tree)
                return await self._end(root, Succeed(agent_run_id=root.agent_run_id, output=output["value"]))
            if tree.stop is not None and not self._finishes(tree, tree.stop):
                return await self._close(root, STOPPED, tree.stop.reason)
            for run in sorted(tree.runs.values(), key=lambda each: not each.is_root):
                if run.status is AgentStatus.RUNNING and run.is_late(self._store.clock_us()):
                    return await self._close(run, DEADLINE, "")
        closing = [each for each in tree.runs.values() if each.status is AgentStatus.CLOSING]
        for run in closing:
            await self._stop_calls(run, tree)
            await self._end(run, Finish(agent_run_id=run.agent_run_id))
        return bool(closing)

    def _finishes(self, tree: Tree, stop: Stop) -> bool:
        """Whether something of a tree that is to stop may come to its end first, as it was asked (see `CancelMode`)."""
        if stop.mode is CancelMode.NOW:
            return False
        return bool(self._loops) or any(_goes_on(tree, each) for each in tree.operations.values())

    async def _stop_calls(self, run: AgentRun, tree: Tree) -> None:
        """End the loops of an agent run. A call whose loop was told to stop beside it is lost: nobody makes it."""
        if loops := self._loops_in(run):
            await self._stop_loops(loops)
            tree = await self._read()
        for operation in tree.operations.values():
            if operation.agent_run_id == run.agent_run_id and operation.state is OperationState.DISPATCHED:
                made = operation.operation_id not in self._to_call
                self._to_call.discard(operation.operation_id)
                with suppress(ConflictError):  # the loop's last commit was under way, and tells how it has ended
                    await self._commit(loss_of(operation, made=made))

    async def _close(self, run: AgentRun, reason: str, message: str) -> bool:
        close = Close(agent_run_id=run.agent_run_id, reason=reason, message=message)
        return await self._try(f"close:{run.agent_run_id}:{run.revision}", close)

    async def _end(self, run: AgentRun, change: Finish | Succeed) -> bool:
        return await self._try(f"terminal:{run.agent_run_id}", change)

    async def _try(self, key: str, change: Close | Finish | Succeed) -> bool:
        """Commit control; who was first has won, and is read again."""
        try:
            await self._commit(RuntimeCommit(root_id=self._root_id, key=key, changes=(change,)), self._look)
        except ConflictError:
            await asyncio.sleep(0)
        return True

    # -- operations

    def _start_loops(self, tree: Tree, ahead: Mapping[str, Any]) -> None:
        for operation in tree.operations.values():
            run = tree.runs[operation.agent_run_id]
            is_new = operation.operation_id not in self._loops
            if operation.operation_id in self._finding and operation.state is not OperationState.UNKNOWN:
                self._finding.discard(operation.operation_id)
                if not is_new:  # somebody has said what a function looks for still
                    self._loops[operation.operation_id].cancel()
            is_dispatched = operation.state is OperationState.DISPATCHED and operation.operation_id in self._to_call
            begins = _may_begin if tree.stop is None else _goes_on
            if is_new and (is_dispatched or begins(tree, operation)) and run.status is AgentStatus.RUNNING:
                self._to_call.discard(operation.operation_id)
                read = ahead.get(operation.operation_id)
                loop = asyncio.ensure_future(self._run_loop(operation, is_dispatched=is_dispatched, ahead=read))
                loop.add_done_callback(self._ended)
                self._loops[operation.operation_id] = loop
                self._run_of[operation.operation_id] = operation.agent_run_id
                if operation.state is OperationState.UNKNOWN:
                    self._finding.add(operation.operation_id)

    async def _run_loop(self, operation: Operation, *, is_dispatched: bool, ahead: Any) -> None:
        loop = CallLoop(self._program, self._commit, self._look, self._finding.discard)
        with suppress(ConflictError):  # somebody was first, or the scope closes: the next turn reads where it stands
            await loop.run(operation, is_dispatched=is_dispatched, ahead=ahead)

    def _ended(self, loop: asyncio.Task[None]) -> None:
        if loop in self._loops.values():  # else it was collected, and its end seen to
            self._woken.set()

    def _collect(self) -> None:
        """Forget loops that have ended, and raise what one has met."""
        for operation_id, loop in list(self._loops.items()):
            if loop.done():
                del self._loops[operation_id], self._run_of[operation_id]
                if not loop.cancelled():
                    loop.result()

    def _loops_in(self, run: AgentRun) -> dict[str, asyncio.Task[None]]:
        return {each: loop for each, loop in self._loops.items() if self._run_of[each] == run.agent_run_id}

    async def _stop_loops(self, loops: Mapping[str, asyncio.Task[None]]) -> None:
        """Tell loops to stop, and wait for them, but not for ever: what heeds no cancellation is left behind.

        Its call is lost then (rule E27), and whatever it still commits finds that.
        """
        stopping = list(loops.values())
        for operation_id in list(loops):
            del self._loops[operation_id], self._run_of[operation_id]
        for loop in stopping:
            loop.cancel()
            loop.add_done_callback(_say_nothing)
        if stopping:
            await asyncio.wait(stopping, timeout=self.grace_seconds)

    async def _wait(self, tree: Tree) -> None:
        """Wait for a loop to end, a hint, a deadline, or a while."""
        now_us = self._store.clock_us()
        running = [run for run in tree.runs.values() if run.status is AgentStatus.RUNNING]
        ends = [run.deadline_us - now_us for run in running if run.deadline_us is not None and run.paused_us is None]
        timeout = max(0.0, min([_LOOK_SECONDS, *(each / 1e6 for each in ends)]))
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._woken.wait()

    # -- the store

    async def _commit(
        self, wanted: RuntimeCommit, look: Look | None = None, then: RuntimeCommit | None = None
    ) -> Committed:
        self._made += 1
        made = self._made
        together = {} if then is None else {"then": then}
        committed = await self._store.commit(wanted, self._held, look, **together)
        if isinstance(committed.seen, Seen):
            self._seen = (made, committed.seen)
        if not committed.again:
            self._to_call.update(committed.result.get("dispatched", ()))
        return committed

    async def _commit_and_end(self, wanted: RuntimeCommit, look: Look | None = None) -> Committed:
        """As `_commit`, of the first task; if it has its output, the tree ends with that."""
        last, then = wanted.changes[-1], None
        if isinstance(last, EndTask) and last.error is None:
            succeed = Succeed(agent_run_id=self._root_id, output=last.output)
            then = RuntimeCommit(root_id=self._root_id, key=f"terminal:{self._root_id}", changes=(succeed,))
        return await self._commit(wanted, look, then)

    async def _read(self) -> Tree:
        return await self._store.read(partial(read_tree, root_id=self._root_id, whole=False))


def _checked(tx: Tx, held: Held, look: Callable[[Tx], Seen]) -> Seen:
    """What a driver looks at; what looks like a wait, or a slow call, may be another worker's by now."""
    seen = look(tx)
    if not seen.tree.root.status.ended:
        leases.check(tx, *held)
    return seen


def has_something_to_do(tree: Tree) -> bool:
    """Whether a driver would go on with a tree, and not only wait for a call or a person."""
    if any(each.status is AgentStatus.CLOSING for each in tree.runs.values()):
        return True
    running = {each.agent_run_id for each in tree.runs.values() if each.status is AgentStatus.RUNNING}
    works = any(_may_begin(tree, each) and each.agent_run_id in running for each in tree.operations.values())
    return tree.stop is not None or works or _first_ready(tree) is not None


def _may_begin(tree: Tree, operation: Operation) -> bool:
    """Whether a loop has something to do for it; nothing is called where a person decides on a limit."""
    calls = operation.state in (OperationState.PREPARED, OperationState.READY)
    return has_work(operation) and not (calls and tree.holds(operation))


def _goes_on(tree: Tree, operation: Operation) -> bool:
    """Whether an operation begins though its tree is to stop: of a batch, if that may be finished, the other calls."""
    is_finished = tree.stop is not None and tree.stop.mode is CancelMode.AFTER_BATCH
    return is_finished and operation.kind == "tool" and _may_begin(tree, operation)


def _first_ready(tree: Tree) -> AgentTask | None:
    """The task whose turn it is; also one that is running in rows alone, after a conflict."""
    ready = [
        each
        for each in tree.tasks.values()
        if each.state in (TaskState.READY, TaskState.RUNNING)
        and tree.runs[each.agent_run_id].status is AgentStatus.RUNNING
    ]
    return min(ready, key=lambda each: (each.ready_seq, each.agent_run_id, each.agent_task_id), default=None)


def _output_of(tree: Tree) -> dict[str, Any] | None:
    """The root's output, once its first task has it."""
    for task in tree.tasks.values():
        if _is_first(task, tree.root):
            return {"value": task.output} if task.state is TaskState.SUCCEEDED else None
    return None


def _is_first(task: AgentTask, root: AgentRun) -> bool:
    """Whether a root has begun with a task."""
    return task.agent_run_id == root.agent_run_id and task.parent_operation is None


def _say_nothing(loop: asyncio.Task[None]) -> None:
    """How a loop ends that was told to stop concerns nobody; asked, so that it is not logged as forgotten."""
    if not loop.cancelled():
        loop.exception()
