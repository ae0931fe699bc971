"""Calls: models, and other things that are paid for, which a durable body calls by itself (rules L34, L35, L52).

What a call may use is reserved before it is made, or it is refused; what it used is stored behind it, together with the
answer, if that is to be kept. (Chat models of LangChain's are counted by its callbacks: saver/call_handler.py.)
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from langgraph_ext.database import Tx
from langgraph_ext.errors import InvalidArgument, LangGraphExtError
from langgraph_ext.ledger import memos, model_calls, paid_calls
from langgraph_ext.ledger.encoded import Encoded, encode, value_of
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.model_calls import Asked, Reported
from langgraph_ext.ledger.paid_calls import Kept
from langgraph_ext.ledger.rows import text_or_none
from langgraph_ext.nodes.callables import check_takes, is_async, left_unawaited, name_of
from langgraph_ext.nodes.fenced import Fenced
from langgraph_ext.nodes.place import Place
from langgraph_ext.nodes.usages import bound_for, messages_of, named, reported_in
from langgraph_ext.saver import model_usage
from langgraph_ext.saver.attached import Invocation
from langgraph_ext.saver.refusals import refuse

__all__ = ["Calls", "Memo", "Said"]

_LOGGER = logging.getLogger("langgraph_ext")

Memo = str | tuple[str, Callable[[Any], Any]]
"""The key that an answer is kept under; and what of it is kept, if not all."""

Done = Callable[[Tx], object]


class Said(NamedTuple):
    """A call as its body describes it."""

    model: str
    prompt: Any
    max_tokens: int | None
    max_cost_usd: float | None
    usage: Callable[[Any], Any] | None
    memo: Memo | None
    kind: str
    role: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A call that was looked at, and may be asked for."""

    asked: Asked
    model: str
    usage: Callable[[Any], Any] | None
    memo: str | None
    keeps: Callable[[Any], Any] | None
    """What of its answer is kept; None for all of it."""


class _End(NamedTuple):
    """What a call has come to."""

    value: Any
    bill: Done
    """The transaction that says what it used."""
    both: Done | None
    """The same, which keeps the answer besides; None if that is not asked for, or cannot be done."""
    error: BaseException | None
    """What is raised when it is committed: the report, the price, or what should be kept, is none."""


class Calls:
    """Lets one attempt call what is paid for. Its sync and async methods differ in how they wait, and in that alone."""

    def __init__(self, place: Place, key: FrameKey, lease: Lease, invocation: Invocation | None) -> None:
        self._place, self._key, self._lease, self._invocation = place, key, lease, invocation
        self._fenced, self._database = Fenced(place, key), place.saver.database
        self._budget = None if invocation is None else invocation.budget
        self._mutex = threading.Lock()
        self._used: set[str | None] = set()
        """Keys of memos whose answers this go at the attempt has asked for."""

    def call(self, fn: Callable[[], Any], said: Said) -> Any:
        """As `Frame.call`."""
        if is_async(fn):
            raise InvalidArgument(f"frame.call: {name_of(fn)} is async; write `await frame.acall(…)`")
        wanted = self._wanted(fn, said)
        with self._using(wanted.memo):
            kept = self._fenced.transact(self._start(wanted))
            if kept is not None:
                return self._kept(kept)
            try:
                answer = fn()
                if left_unawaited(answer):
                    raise InvalidArgument("frame.call: it answered something to await; write `await frame.acall(…)`")
            except BaseException as error:
                with _noting(error):
                    self._fenced.transact(self._close(wanted, error))
                raise
            end = self._end(wanted, answer)
            try:
                self._fenced.transact(end.both or end.bill)
            except LangGraphExtError:
                if end.both is not None:  # what was spent is on record, though its answer may not be kept
                    self._fenced.transact(end.bill)
                raise
        return _value(end)

    async def acall(self, fn: Callable[[], Any], said: Said) -> Any:
        """As `Frame.acall`."""
        wanted = self._wanted(fn, said)
        with self._using(wanted.memo):
            try:
                kept = await self._asaid(self._start(wanted))
            except asyncio.CancelledError as error:  # which does not undo a commit
                await self._asaid(self._close(wanted, error))
                raise
            if kept is not None:
                return self._kept(kept)
            try:
                answer = fn()
                answer = await answer if _is_awaited(answer) else answer
            except GeneratorExit:  # its loop is gone: whoever takes the thread next closes the call
                raise
            except BaseException as error:
                with _noting(error):
                    await self._asaid(self._close(wanted, error))
                raise
            end = self._end(wanted, answer)
            try:
                await self._asaid(end.both or end.bill)
            except LangGraphExtError:
                if end.both is not None:
                    await self._asaid(end.bill)
                raise
        return _value(end)

    async def _asaid(self, act: Callable[[Tx], Any]) -> Any:
        """Commit it, also if whoever waits for that is cancelled."""
        try:
            return await asyncio.shield(self._database.queue(act))
        except LangGraphExtError as error:
            refuse(error)

    # -- before a call

    def _wanted(self, fn: object, said: Said) -> _Wanted:
        """Look at what is asked for, before anything is written."""
        check_takes(fn, "frame.call")
        provider, model = named(said.model)
        if said.kind not in ("model", "tool"):
            raise InvalidArgument(f'frame.call: kind is {said.kind!r}; it must be "model" or "tool"')
        text_or_none(said.role, "role")
        if said.usage is not None:
            check_takes(said.usage, "frame.call: usage", "the answer")
        memo, keeps = _memo(said.memo)
        asked = self._asked(said, messages_of(said.prompt), provider, model)
        return _Wanted(asked=asked, model=model, usage=said.usage, memo=memo, keeps=keeps)

    def _asked(self, said: Said, messages: list[BaseMessage] | None, provider: str | None, model: str) -> Asked:
        place, invocation = self._place, self._invocation
        prompt_bytes, context_bytes = model_usage.bytes_of(messages or ())
        bound = bound_for(
            said.kind,
            messages,
            model=model,
            max_tokens=said.max_tokens,
            max_cost_usd=said.max_cost_usd,
            budget=self._budget,
        )
        return Asked(
            call_id=uuid.uuid4().hex,
            thread_id=place.thread_id,
            epoch=self._key.epoch,
            held_us=self._lease.acquired_us,
            goes_on=True,
            root_id=place.anchors[0][1],
            checkpoint_ns=place.checkpoint_ns,
            checkpoint_id=place.checkpoint_id,
            task_id=place.task_id,
            node=place.node,
            frame=self._key,
            model=model,
            provider=provider,
            prompt_bytes=prompt_bytes,
            context_bytes=context_bytes,
            bound=bound,
            limits={} if invocation is None else invocation.limits,
            fail_fast=None if invocation is None else invocation.fail_fast,
            now_us=self._database.clock_us(),
            kind=said.kind,
            role=said.role,
        )

    @contextmanager
    def _using(self, memo: str | None) -> Iterator[None]:
        """Around a call: another one of this attempt would be given its answer, unless it came to nothing."""
        with self._mutex:
            if memo in self._used:
                raise InvalidArgument(
                    f"frame.call: memo {memo!r} is used twice in one attempt, and one answer would be taken for the "
                    "other; give each call a key of its own"
                )
            if memo is not None:
                self._used.add(memo)
        try:
            yield
        except BaseException:
            with self._mutex:
                self._used -= {memo}
            raise

    # -- transactions

    def _start(self, wanted: _Wanted) -> Callable[[Tx], Encoded | None]:
        return partial(paid_calls.start, asked=wanted.asked, frame=self._key, memo=wanted.memo)

    def _close(self, wanted: _Wanted, error: BaseException) -> Done:
        call_id, now_us = wanted.asked.call_id, self._database.clock_us()
        return partial(model_calls.close_call, call_id=call_id, error_type=type(error).__name__, now_us=now_us)

    def _end(self, wanted: _Wanted, answer: Any) -> _End:
        """What is to be said of a call that has answered. Whatever cannot be told of it, it was made, and paid for."""
        reported, error = self._reported(wanted, answer)
        settle = partial(
            paid_calls.settle,
            frame=self._key,
            call_id=wanted.asked.call_id,
            reported=reported,
            now_us=self._database.clock_us(),
        )
        if wanted.memo is None:
            return _End(answer, settle, None, error)
        try:
            value = answer if wanted.keeps is None else wanted.keeps(answer)
            packed = encode(value, self._place.saver.serde, what=f"memo {wanted.memo!r}")
        except Exception as unkept:  # noqa: BLE001 - the body's own, which is raised behind the commit
            return _End(None, settle, None, unkept)
        return _End(value, settle, partial(settle, kept=Kept(wanted.memo, packed)), error)

    def _reported(self, wanted: _Wanted, answer: Any) -> tuple[Reported, BaseException | None]:
        """What a call has used, as far as that is told, and why it is not."""
        kind, model, reported = wanted.asked.kind, wanted.model, Reported()
        try:
            told = None if wanted.usage is None else wanted.usage(answer)
            reported = reported_in(told, kind=kind, model=model, budget=self._budget)
            if reported.cost_nusd is None and kind == "model":
                price = None if self._budget is None else self._budget.price
                reported = replace(reported, cost_nusd=model_usage.priced(price, model, reported))
        except Exception as error:  # noqa: BLE001 - the body's own, or its price's, which is raised behind the commit
            return reported, error
        return reported, None

    def _kept(self, kept: Encoded) -> Any:
        return value_of(kept.type, kept.data, self._place.saver.serde)


def _memo(memo: Any) -> tuple[str | None, Callable[[Any], Any] | None]:
    """The key, and what makes of an answer what is kept.

    Raises:
        InvalidArgument: It is neither a key, nor a key and a function.
    """
    if memo is None:
        return None, None
    key, keeps = memo if isinstance(memo, tuple) and len(memo) == 2 else (memo, None)
    memos.check_key(key, None)
    if isinstance(memo, tuple):
        check_takes(keeps, "frame.call: memo", "the answer")
    return key, keeps


def _value(end: _End) -> Any:
    if end.error is not None:
        raise end.error
    return end.value


def _is_awaited(answer: Any) -> bool:
    return hasattr(answer, "__await__")


@contextmanager
def _noting(error: BaseException) -> Iterator[None]:
    """That a call failed could not be recorded: who reads its error is told, and it is closed with its lease's end."""
    try:
        yield
    except LangGraphExtError as unrecorded:
        error.add_note(f"that this call gave no answer could not be recorded ({unrecorded.code})")
        _LOGGER.warning("a call stays open on record until its thread is taken again (%s)", unrecorded.code)
