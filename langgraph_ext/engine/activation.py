"""Activation: one stretch in memory of driving an agent task (rules E6 to E9).

The generator never runs past a yield that is not committed: only the commit's answer moves it. Whatever goes wrong with
the commit closes it; what is stored decides how the task goes on.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Any

from langgraph_ext.database import Tx
from langgraph_ext.engine.applying import Change, Ref
from langgraph_ext.engine.cancelled import is_told_to_stop
from langgraph_ext.engine.commits import Commit, Committed, Look, RuntimeCommit
from langgraph_ext.engine.outcome_checks import check
from langgraph_ext.engine.outcomes import Complete, Fail, Outcome, Progress, Wait
from langgraph_ext.engine.program import Program
from langgraph_ext.engine.rows import AgentTask
from langgraph_ext.engine.runtimes import Runtime
from langgraph_ext.engine.states import TaskState
from langgraph_ext.engine.task_changes import Activate, EndTask, GoOn, WaitFor
from langgraph_ext.errors import ConflictError, LangGraphExtError

__all__ = ["Activation"]

Refreshed = Callable[[Tx, AgentTask], Runtime]

_LOGGER = logging.getLogger("langgraph_ext")

_READ_AGAIN = frozenset({"revision_conflict", "scope_closed", "idempotency_conflict"})
"""Codes of conflicts that say that somebody was first, and nothing of what the behaviour wanted."""


class Activation:
    """A task that is driven until it waits, ends, or has to be read again.

    Args:
        commit: Writes under the driver's lease, and looks at something behind that.
        program: The release's behaviours.
        runtime: What the task's behaviour may look at.
        refreshed: Reads that again.
        look: What the driver looks at next: behind the last commit.
    """

    def __init__(self, commit: Commit, program: Program, runtime: Runtime, refreshed: Refreshed, look: Look) -> None:
        self._commit_and_look = commit
        self._program = program
        self._runtime = runtime
        self._task = runtime.task
        self._activates: tuple[Change, ...] = ()
        if runtime.task.state is TaskState.READY:  # else it runs already, in rows alone, after a conflict
            self._activates = (Activate(agent_task_id=runtime.task.agent_task_id),)
        self._refreshed = refreshed
        self._look = look

    async def run(self) -> None:
        """Drive the task. It is activated in the commit of its first outcome: until then nothing has happened.

        Raises:
            LeaseError: The lease was lost.
            StoreError: The database failed.
        """
        task, runtime = self._task, self._runtime
        try:
            behaviour = self._program.behaviour(task.behaviour, task.version)
            try:
                generator = _generator(behaviour.activate(task.input, task.continuation, runtime))
            except Exception as error:  # noqa: BLE001 - as below
                await self._fail("node_implementation_failed", f"it raised {type(error).__name__}")
                return
            try:
                await self._go_through(generator)
            finally:
                await self._close(generator)
        except ConflictError as conflict:
            if conflict.code not in _READ_AGAIN:
                with suppress(ConflictError):  # the scope closes, or the task has ended: who was first has won
                    await self._fail("node_outcome_invalid", f"its change is refused ({conflict.code})")
            await asyncio.sleep(0)

    async def _go_through(self, generator: AsyncGenerator[Outcome, Any]) -> None:
        answer: Any = None
        while True:
            try:
                outcome = await generator.asend(answer)
            except StopAsyncIteration:
                await self._fail("node_missing_terminal_outcome", "it ended without a result")
                return
            except (Exception, asyncio.CancelledError) as error:  # a behaviour's own; its text may hold payloads
                if isinstance(error, asyncio.CancelledError) and is_told_to_stop():
                    raise
                await self._fail("node_implementation_failed", f"it raised {type(error).__name__}")
                return
            try:
                check(outcome, self._runtime)
            except LangGraphExtError as refused:
                await self._fail(refused.code, str(refused.args[0]))
                return
            committed = await self._write(outcome)
            if not isinstance(outcome, Progress):
                return
            answer = committed.result
            self._runtime.become(committed.seen)
            await asyncio.sleep(0)

    async def _close(self, generator: AsyncGenerator[Outcome, Any]) -> None:
        """Close it. What it raises then is told to the log alone: what it has yielded is committed, and counts."""
        try:
            await generator.aclose()
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_told_to_stop():
                raise
            _LOGGER.warning(
                "task %r: its behaviour %r raised %s when it was closed",
                self._task.agent_task_id,
                self._task.behaviour,
                type(error).__name__,
            )

    async def _write(self, outcome: Outcome) -> Committed:
        task = self._runtime.task
        change, key = _change_of(outcome, task)
        expected = {Ref.task(task.agent_task_id): task.revision}
        goes_on = isinstance(outcome, Progress)
        look: Look = (lambda tx: self._refreshed(tx, task)) if goes_on else self._look
        return await self._commit(key, *outcome.changes, change, expected=expected, look=look)

    async def _fail(self, code: str, message: str) -> None:
        task = self._task
        ended = EndTask(agent_task_id=task.agent_task_id, error={"code": code, "message": message})
        await self._commit(f"task-result:{task.agent_task_id}", ended, look=self._look)

    async def _commit(
        self, key: str, *changes: Change, expected: dict[Ref, int] | None = None, look: Look
    ) -> Committed:
        together = (*self._activates, *changes)
        wanted = RuntimeCommit(root_id=self._task.root_id, key=key, changes=together, expected=expected or {})
        committed = await self._commit_and_look(wanted, look)
        self._activates = ()
        return committed


def _generator(activated: object) -> AsyncGenerator[Outcome, Any]:
    """What a behaviour has begun.

    Raises:
        TypeError: It is no async generator.
    """
    if isinstance(activated, AsyncGenerator):
        return activated
    if inspect.iscoroutine(activated):
        activated.close()
    raise TypeError(f"a behaviour is an async generator, and not a {type(activated).__name__}")


def _change_of(outcome: Outcome, task: AgentTask) -> tuple[Change, str]:
    """What an outcome says of its task, and the key of its commit."""
    task_id = task.agent_task_id
    if isinstance(outcome, Progress):
        return GoOn(agent_task_id=task_id, continuation=dict(outcome.continuation)), _key_of(outcome, task)
    if isinstance(outcome, Wait):
        waits = {"continuation": dict(outcome.continuation), "condition": dict(outcome.condition)}
        return WaitFor(agent_task_id=task_id, **waits), _key_of(outcome, task)
    if isinstance(outcome, Complete):
        ended = {"output": outcome.output, "continuation": dict(outcome.continuation)}
        return EndTask(agent_task_id=task_id, **ended), f"task-result:{task_id}"
    assert isinstance(outcome, Fail)
    continuation = None if outcome.continuation is None else dict(outcome.continuation)
    error = {"code": outcome.code, "message": outcome.message}
    return EndTask(agent_task_id=task_id, error=error, continuation=continuation), f"task-result:{task_id}"


def _key_of(outcome: Progress | Wait, task: AgentTask) -> str:
    """Of the commit of what does not end a task."""
    return outcome.key or f"progress:{task.agent_task_id}:{task.revision}:{outcome.continuation['phase']}"
