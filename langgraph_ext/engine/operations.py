"""Operations: one loop for each call that is under way, beside the behaviours (hooks, dispatch, retry, outcome).

Each step is committed before the next, and each begins from what is stored, so that any worker goes on where another
one stopped: prepared: with the hooks; raw: with those behind it; dispatched by somebody who is gone: by its policy; in
doubt: with the function that finds out, if its tool has one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from langgraph_ext.engine.applying import Change, Ref, operation_of
from langgraph_ext.engine.cancelled import is_end_of_caller, is_told_to_stop
from langgraph_ext.engine.commits import Commit, Committed, Look, RuntimeCommit
from langgraph_ext.engine.doubts import Doubt, Resolve
from langgraph_ext.engine.moves import error_outcome, outcome_of
from langgraph_ext.engine.operation_changes import (
    Allow,
    CompleteOperation,
    Deny,
    Dispatch,
    FailTry,
    LoseCall,
    SaveRaw,
)
from langgraph_ext.engine.program import Allowed, Denied, Failed, NotKnown, Program
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.runtimes import Seen
from langgraph_ext.engine.states import OperationState
from langgraph_ext.errors import AdmissionError, BudgetExhausted, LangGraphExtError
from langgraph_ext.ledger.not_done import EffectNotDone
from langgraph_ext.ledger.texts import cut, message_of

__all__ = ["CallLoop", "has_work", "loss_of"]

_MOST_LATE = 2
"""Calls of an operation that may be made again by its key, if each is late."""

_HAS_WORK = (OperationState.PREPARED, OperationState.READY, OperationState.RAW)


def has_work(operation: Operation) -> bool:
    """Whether a loop has something to do for it."""
    return operation.state in _HAS_WORK or (operation.is_in_doubt and operation.on_unknown == "reconcile")


class Written(NamedTuple):
    """What a step has come to."""

    again: bool
    """Whether it was committed before, by another call."""
    operation: Operation
    """As it is behind it."""
    held: bool
    """Whether a person decides on a limit before it goes on."""


class CallLoop:
    """One operation on its way.

    Args:
        program: Hooks and calls.
        commit: Writes under the driver's lease.
        look: Reads the tree, behind each commit: it may be this loop's last, and then the driver goes on with it.
        found: Told of an operation once it is on record what came of its call, as far as that was found out here.
    """

    def __init__(
        self, program: Program, commit: Commit, look: Look, found: Callable[[str], object] = lambda operation_id: None
    ) -> None:
        self._found = found
        self._program = program
        self._commit = commit
        self._look = look

    async def run(self, operation: Operation, *, is_dispatched: bool = False, ahead: Any = None) -> None:
        """Take it as far as it goes: to its outcome, or to where it waits for a ticket.

        Args:
            operation: As it was read.
            is_dispatched: Whether its driver has put its call on record already, for it to be made here.
            ahead: What was read for that call already.
        """
        if is_dispatched:
            operation = await self._call(operation, operation.tries, ahead)
        while has_work(operation):
            if operation.state is OperationState.RAW:
                operation = await self._ask_after(operation)
            elif operation.state is OperationState.UNKNOWN:
                operation = await self._find_out(operation)
            else:
                number = operation.tries + 1
                is_new = operation.state is OperationState.PREPARED
                written = await (self._ask_before(operation) if is_new else self._dispatch(operation, number))
                operation = written.operation
                if written.held:
                    return
                # A call that another worker has put on record, now or under this key before, is that worker's.
                is_own = not written.again and operation.tries == number
                if is_own and operation.state is OperationState.DISPATCHED:
                    operation = await self._call(operation, number)

    async def _ask_before(self, operation: Operation) -> Written:
        operation_id, key = operation.operation_id, f"model-ready:{operation.operation_id}"
        if operation.before is None:
            decided = await self._program.before(operation)
        else:  # they were asked before a limit held it up
            upto = max(operation.request.get("steering") or (), default=None)
            decided, key = Allowed(operation.request, operation.before, upto), f"{key}:{operation.revision}"
        if isinstance(decided, Denied):
            change: Change = Deny(
                operation_id=operation_id, before=decided.before, code=decided.code, message=decided.message
            )
        else:
            change = Allow(
                operation_id=operation_id,
                request=decided.request,
                before=decided.before,
                needs_ticket=self._program.needs_ticket(operation),
                claims_upto=decided.claims_upto,
            )
        return await self._write(operation, key, change, is_last=False)

    async def _dispatch(self, operation: Operation, number: int) -> Written:
        dispatch = Dispatch(operation_id=operation.operation_id, number=number)
        key = f"call:{operation.operation_id}:{number}:{operation.revision}"
        return await self._write(operation, key, dispatch, is_last=False)

    async def _call(self, operation: Operation, number: int, ahead: Any = None) -> Operation:
        """Make the call that is on record; the operation as it is then."""
        operation_id = operation.operation_id
        usage: dict[str, Any] | None = None
        came: Any = None
        try:
            raw = await self._answer(operation, number, ahead)
            usage = self._program.usage_of(operation, raw)
        except asyncio.CancelledError:
            await self._commit(loss_of(operation, goes_on=self._program.goes_on(operation)), None)
            raise
        except NotKnown as given_up:
            again = given_up.again and operation.tries < _MOST_LATE
            lost = loss_of(operation, again=again, goes_on=given_up.goes_on)
            return self._seen_in(await self._commit(lost, self._look), operation)
        except Exception as error:
            if isinstance(error, AdmissionError | BudgetExhausted) and operation.kind != "tool":
                await self._commit(loss_of(operation, made=False), None)  # refused by who counts calls, and not made
                raise
            pause = self._program.retry_after(operation, number, error)
            code, message = _told(error)
            came, usage = (error.partial, error.usage) if isinstance(error, Failed) else (None, None)
            if pause is not None:
                told = {"code": code, "message": message, "partial": came, "usage": usage}
                failed = FailTry(operation_id=operation_id, number=number, **told)
                key = f"call-failed:{operation_id}:{number}"
                operation = (await self._write(operation, key, failed, as_read=False, is_last=False)).operation
                if pause > 0:
                    await asyncio.sleep(pause)
                return operation
            raw = error_outcome(code, message)
        after: list[object] | None = None if self._program.asks_after(operation) else []
        saved = SaveRaw(operation_id=operation_id, number=number, raw=raw, after=after, usage=usage, partial=came)
        return (await self._write(operation, f"call-raw:{operation_id}:{number}", saved, as_read=False)).operation

    async def _answer(self, operation: Operation, number: int, ahead: Any) -> Any:
        """What the call answers, if it can be stored. One that ends as if it were cancelled has failed."""
        try:
            raw = await self._program.call(operation, number, ahead)
        except asyncio.CancelledError:
            if is_told_to_stop():
                raise
            raise RuntimeError("the call was cancelled, and nobody has asked for that") from None
        except (Exception, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - SystemExit: a tool's own, and no end of this program
            raise RuntimeError(f"it raised {type(error).__name__}: {message_of(error)}") from None
        return outcome_of(raw)

    async def _ask_after(self, operation: Operation) -> Operation:
        answered = await self._program.after(operation)
        operation_id = operation.operation_id
        change = CompleteOperation(operation_id=operation_id, after=answered.after, outcome=answered.outcome)
        return (await self._write(operation, f"complete:{operation_id}", change)).operation

    async def _find_out(self, operation: Operation) -> Operation:
        """Ask the release's function what came of a call of which nobody knows; a person, if that cannot tell."""
        operation_id = operation.operation_id
        change: Change
        try:
            outcome = await self._program.reconcile(operation)
            change = Doubt(operation_id=operation_id) if outcome is None else _resolved(operation_id, outcome)
        except EffectNotDone:
            change = Resolve(operation_id=operation_id)
        except BaseException as error:  # a user's function: what it raises tells nothing
            if is_end_of_caller(error):
                raise
            change = Doubt(operation_id=operation_id)
        written = await self._write(operation, f"reconciled:{operation_id}:{operation.tries}", change)
        self._found(operation_id)
        return written.operation

    async def _write(
        self, operation: Operation, key: str, change: Change, *, as_read: bool = True, is_last: bool = True
    ) -> Written:
        """Commit a step.

        Args:
            operation: As it was read.
            key: The commit's.
            change: What it writes.
            as_read: Whether the operation must be as it was read, which it need not be behind its call.
            is_last: Whether the loop has most likely come to its end with it, and the driver goes on.
        """
        expected = {Ref.operation(operation.operation_id): operation.revision} if as_read else {}
        wanted = RuntimeCommit(root_id=operation.root_id, key=key, changes=(change,), expected=expected)
        alone = partial(operation_of, operation_id=operation.operation_id)
        committed = await self._commit(wanted, self._look if is_last else alone)
        held = bool(committed.result.get("held"))
        return Written(committed.again, self._seen_in(committed, operation), held)

    def _seen_in(self, committed: Committed, operation: Operation) -> Operation:
        """The operation, as it is behind a commit. One that is consumed has ended, and nothing of it is left to do."""
        if isinstance(committed.seen, Operation):
            return committed.seen
        seen: Seen = committed.seen
        known = seen.tree.operations.get(operation.operation_id)
        return known or operation._replace(state=OperationState.COMPLETED)


def _resolved(operation_id: str, outcome: Any) -> Resolve:
    """What was found out, if it can be stored."""
    return Resolve(operation_id=operation_id, outcome=outcome_of(outcome))


def loss_of(operation: Operation, *, again: bool = True, goes_on: bool = False, made: bool = True) -> RuntimeCommit:
    """What is written of a dispatched call whose end nobody will tell: its loop is told to stop, or has given it up."""
    operation_id, number = operation.operation_id, operation.tries
    lost = LoseCall(operation_id=operation_id, number=number, again=again, goes_on=goes_on, made=made)
    key = f"call-lost:{operation_id}:{number}"
    return RuntimeCommit(root_id=operation.root_id, key=key, changes=(lost,))


def _told(error: Exception) -> tuple[str, str]:
    """Code and message of an error, which may hold anything, and may be unable to say it."""
    if isinstance(error, LangGraphExtError | Failed):
        return cut(error.code), message_of(error.args[0])
    return "call_failed", cut(f"{type(error).__name__}: {message_of(error)}")
