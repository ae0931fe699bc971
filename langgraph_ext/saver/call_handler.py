"""Model calls of an attached graph, as LangChain's callbacks tell of them (rules L34–L37).

Before a call: one transaction that reserves what it may use, or refuses it; behind it: one that says what it used. A
refusal is raised in the callback, which LangChain passes on to whoever calls the model, and is a signal to LangGraph.

Where a model is awaited, so are these transactions (callback_forms.py).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config

from langgraph_ext.database import Database, Tx
from langgraph_ext.errors import AdmissionError, LangGraphExtError
from langgraph_ext.ledger import model_calls
from langgraph_ext.ledger.budgets import Price
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.model_calls import Asked
from langgraph_ext.saver import host, model_usage
from langgraph_ext.saver.acting import ATTEMPT
from langgraph_ext.saver.attached import Invocation, LedgerHandler
from langgraph_ext.saver.callback_forms import EitherForm
from langgraph_ext.saver.refusals import refuse

__all__ = ["CallHandler"]

_LOGGER = logging.getLogger("langgraph_ext")


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that was admitted and has no answer yet."""

    call_id: str
    attempt_id: str | None
    model: str | None
    price: Price | None
    database: Database


class _Call(NamedTuple):
    """A call that asks to be made, and what is remembered of it if it is."""

    asked: Asked
    opened: _Open


class CallHandler(LedgerHandler):
    """The part of the handler that knows of models."""

    def __init__(self) -> None:
        self._running: dict[UUID, Invocation] = {}
        """By run of LangChain's: the invocation that it is."""
        self._around: dict[UUID, Invocation] = {}
        """By run of LangChain's: the invocation that it belongs to."""
        self._open: dict[UUID, _Open] = {}
        """By run of LangChain's."""

    # -- what may stand between a node and a model

    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A tool begins; it may call a model."""
        self._inside(run_id, parent_run_id)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It ended."""
        self._around.pop(run_id, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It failed."""
        self._around.pop(run_id, None)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A retriever begins; it may call a model."""
        self._inside(run_id, parent_run_id)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It ended."""
        self._around.pop(run_id, None)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It failed."""
        self._around.pop(run_id, None)

    def _inside(self, run_id: UUID, parent_run_id: UUID | None) -> Invocation | None:
        """Note that a run of LangChain's stands in another one; the invocation that both belong to."""
        around = None if parent_run_id is None else self._around.get(parent_run_id)
        if around is not None:
            self._around[run_id] = around
        return around

    def _left(self) -> Invocation | None:
        """The invocation that runs yet, of a node that has ended and left a task, or a thread, which runs on."""
        config = _config()
        control = None if config is None else host.control_in(config)
        if config is None or control is None:
            return None
        found = [each for each in tuple(self._running.values()) if each.control is control]
        if len(found) > 1:  # a caller may give one control to several invocations
            thread_id = config["configurable"].get("thread_id")
            found = [each for each in found if each.lease is not None and each.lease.thread_id == thread_id]
        return found[0] if found else None

    # -- models

    def _on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **told: Any) -> None:
        """A chat model is about to be called.

        Raises:
            LangGraphExtError: It is not called, as a signal to LangGraph.
        """
        self._start([message for each in messages for message in each], **told)

    async def _aon_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **told: Any) -> None:
        """As `_on_chat_model_start`."""
        await self._astart([message for each in messages for message in each], **told)

    def _on_llm_start(self, serialized: Any, prompts: list[str], **told: Any) -> None:
        """As `_on_chat_model_start`, of a model that takes text."""
        self._start([HumanMessage(prompt) for prompt in prompts], **told)

    async def _aon_llm_start(self, serialized: Any, prompts: list[str], **told: Any) -> None:
        """As `_on_llm_start`."""
        await self._astart([HumanMessage(prompt) for prompt in prompts], **told)

    def _on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """It has answered, and said what it used.

        Raises:
            LangGraphExtError: That could not be recorded, as a signal to LangGraph where it is the thread's or the
                database's fault; what the call may have used stays reserved.
        """
        call = self._open.pop(run_id, None)
        if call is not None:
            ending, error = _ending(call, response)
            with _signalling():
                call.database.transact(ending)
            if error is not None:
                raise error

    async def _aon_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """As `_on_llm_end`."""
        call = self._open.pop(run_id, None)
        if call is not None:
            ending, error = _ending(call, response)
            with _signalling():
                await call.database.atransact(ending)
            if error is not None:
                raise error

    def _on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It gave no answer, or its stream was left before the end: what it may have used stays reserved."""
        call = self._open.pop(run_id, None)
        if call is not None:
            with _noting(error):
                call.database.transact(_closing(call, error))

    async def _aon_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """As `_on_llm_error`."""
        call = self._open.pop(run_id, None)
        if call is not None:
            with _noting(error):
                await call.database.atransact(_closing(call, error))

    on_chat_model_start = EitherForm(_on_chat_model_start, _aon_chat_model_start)
    on_llm_start = EitherForm(_on_llm_start, _aon_llm_start)
    on_llm_end = EitherForm(_on_llm_end, _aon_llm_end)
    on_llm_error = EitherForm(_on_llm_error, _aon_llm_error)

    def _start(self, messages: Sequence[BaseMessage], *, run_id: UUID, **told: Any) -> None:
        with _signalling():
            call = self._admissible(messages, **told)
            if call is not None:
                call.opened.database.transact(model_calls.start_call, call.asked)
                self._open[run_id] = call.opened

    async def _astart(self, messages: Sequence[BaseMessage], *, run_id: UUID, **told: Any) -> None:
        with _signalling():
            call = self._admissible(messages, **told)
            if call is not None:
                await call.opened.database.atransact(model_calls.start_call, call.asked)
                self._open[run_id] = call.opened

    def _admissible(
        self,
        messages: Sequence[BaseMessage],
        *,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        invocation_params: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> _Call | None:
        """A call as it asks to be made; None if nobody counts it.

        Raises:
            AdmissionError: A budget was given, and there is no ledger (`ledger_missing`).
            InvalidArgument: The budget's price function returns no price (`invalid_usage`).
        """
        invocation = None if parent_run_id is None else self._around.get(parent_run_id) or self._left()
        if invocation is None:
            return None
        database, lease = invocation.database, invocation.lease
        if database is None or lease is None:
            _refuse_uncounted(invocation)
            return None
        asked = _asked(invocation, lease, messages, metadata or {}, invocation_params or {}, now_us=database.clock_us())
        attempt_id = None if asked.frame is None else asked.frame.attempt_id
        price = None if invocation.budget is None else invocation.budget.price
        return _Call(asked, _Open(asked.call_id, attempt_id, asked.model, price, database))


@contextmanager
def _signalling() -> Iterator[None]:
    """What is refused reaches LangGraph as a signal."""
    try:
        yield
    except LangGraphExtError as error:
        refuse(error)


@contextmanager
def _noting(error: BaseException) -> Iterator[None]:
    """That a call failed could not be recorded: who reads its error is told, and it is closed with its lease's end."""
    try:
        yield
    except LangGraphExtError as unrecorded:
        error.add_note(f"that this model call gave no answer could not be recorded ({unrecorded.code})")
        _LOGGER.warning("a model call stays open on record until its thread is taken again (%s)", unrecorded.code)


def _ending(call: _Open, response: LLMResult) -> tuple[Callable[[Tx], object], BaseException | None]:
    """The transaction that says what a call has used, and what is to be raised when it is committed.

    A report that can be none closes the call without an answer. Where the price function fails, what was used is on
    record all the same.
    """
    now_us = call.database.clock_us()
    settle = partial(model_calls.settle_call, call_id=call.call_id, attempt_id=call.attempt_id, now_us=now_us)
    reported = model_usage.reported_of(response)
    try:
        reported.check()
    except LangGraphExtError as error:
        return _closing(call, error), error
    try:
        cost = model_usage.priced(call.price, call.model, reported)
    except Exception as error:  # noqa: BLE001 - the price function's own, which is raised behind the commit
        return partial(settle, reported=reported), error
    return partial(settle, reported=replace(reported, cost_nusd=cost)), None


def _closing(call: _Open, error: BaseException) -> Callable[[Tx], object]:
    """The transaction that says that a call gave no answer."""
    now_us = call.database.clock_us()
    return partial(model_calls.close_call, call_id=call.call_id, error_type=type(error).__name__, now_us=now_us)


def _refuse_uncounted(invocation: Invocation) -> None:
    if invocation.budget is not None:
        raise AdmissionError(
            "a budget was given, and nothing records what is used: the graph runs without a LedgerSaver; compile it "
            'with checkpointer=LedgerSaver("runs.db")',
            code="ledger_missing",
        )


def _asked(
    invocation: Invocation,
    lease: Lease,
    messages: Sequence[BaseMessage],
    metadata: Mapping[str, Any],
    params: Mapping[str, Any],
    *,
    now_us: int,
) -> Asked:
    frame, config = ATTEMPT.get(), _config()
    anchors = () if config is None else host.anchors_in(config)
    checkpoint_id = None if config is None else host.checkpoint_of(config)
    task_id = host.task_of(metadata)
    prompt_bytes, context_bytes = model_usage.bytes_of(messages)
    provider = metadata.get("ls_provider")
    return Asked(
        call_id=uuid.uuid4().hex,
        thread_id=lease.thread_id,
        epoch=lease.epoch,
        held_us=lease.acquired_us,
        goes_on=invocation.goes_on,
        root_id=anchors[0][1] if anchors else checkpoint_id,
        checkpoint_ns=None if checkpoint_id is None else host.namespace_of(anchors, checkpoint_id),
        checkpoint_id=checkpoint_id,
        task_id=task_id,
        node=str(metadata.get("langgraph_node", "")),
        frame=frame if frame is not None and frame.epoch == lease.epoch else None,
        model=model_usage.model_of(params, metadata),
        provider=provider if isinstance(provider, str) else None,
        prompt_bytes=prompt_bytes,
        context_bytes=context_bytes,
        bound=model_usage.bound_of(messages, params, metadata, invocation.budget),
        limits=invocation.limits,
        fail_fast=invocation.fail_fast,
        now_us=now_us,
    )


def _config() -> RunnableConfig | None:
    """Of the node that the caller stands in; None in a thread that was begun without its context."""
    try:
        config = get_config()
    except RuntimeError:
        return None
    return config if host.from_graph(config) else None
