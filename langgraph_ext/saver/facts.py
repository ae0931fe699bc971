"""Facts: what LangGraph's calls say to the ledger, in the ledger's words.

The end of a run (rule L54), the outcome of a task (rule L9) and its questions (rule L24) are read off what `put` and
`put_writes` carry. All of it is decided here, before the transaction; the ledger decides what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

from langgraph_ext import canonical
from langgraph_ext.ledger.calls import Call
from langgraph_ext.ledger.interrupts import Question
from langgraph_ext.ledger.records import VisitStatus
from langgraph_ext.ledger.runs import Ending
from langgraph_ext.ledger.texts import message_of
from langgraph_ext.saver import host
from langgraph_ext.saver.config import Address

__all__ = ["call_of", "ending_of", "event_of", "sends_of"]

Writes = Sequence[tuple[str, Any]]

_SUCCEEDED = VisitStatus.SUCCEEDED.event

_MOST_KIND = 256
"""Characters of a question's kind; what is longer is no kind."""


def ending_of(checkpoint: Checkpoint) -> Ending:
    """What a root checkpoint in which nothing starts a task says about the end of its run.

    It is an end where the channels are those of a StateGraph or of an entrypoint; other graphs start their tasks by
    channels of any name.
    """
    return Ending.SETTLED if host.is_known_kind(*_maps_of(checkpoint)) else Ending.UNKNOWN


def _maps_of(checkpoint: Checkpoint) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return checkpoint.get("channel_versions", {}), checkpoint.get("versions_seen", {})


def sends_of(values: Mapping[str, Any]) -> str | None:
    """The nodes of a checkpoint's scheduled tasks, in their order, as a JSON list; None if there are none."""
    sends = host.sends(values)
    return canonical.encode_plain([str(getattr(send, "node", "")) for send in sends]).decode() if sends else None


def event_of(writes: Writes, task_id: str, task_path: str, *, regular: bool) -> str | None:
    """The event that a task's writes are; None if no task of a node made them.

    LangGraph takes a task for finished when it has a write that is not a control write, unless an error came with it.
    """
    if not host.is_task(task_id, task_path):
        return None
    if regular:
        return _SUCCEEDED
    channels = {channel for channel, _ in writes}
    if ERROR in channels:
        return _failure(next(value for channel, value in writes if channel == ERROR)).event
    if INTERRUPT in channels:
        return VisitStatus.PAUSED.event
    return None if channels <= host.CONTROL_CHANNELS or channels == {host.SCHEDULED} else _SUCCEEDED


def _error_of(writes: Writes, *, plain: bool) -> tuple[str, str] | None:
    """Type and message of the error among a task's writes. Not `plain`: the message may not be kept as it is."""
    for channel, error in writes:
        if channel == ERROR:
            return type(error).__name__, message_of(error) if plain else ""
    return None


def call_of(
    address: Address,
    config: RunnableConfig,
    writes: Writes,
    task_id: str,
    task_path: str,
    *,
    event: str | None,
    answers: int,
    serde: SerializerProtocol,
    stored_us: int,
) -> Call:
    """What a call says beyond its output.

    Args:
        address: Thread, namespace and the checkpoint being executed.
        config: The call's.
        writes: `(channel, value)` in the task's order.
        task_id: The task.
        task_path: Its path.
        event: What `event_of` says of them.
        answers: How many answers the task says it was given.
        serde: The saver's.
        stored_us: When: microseconds since the epoch, UTC.
    """
    plain = host.is_plain(serde)
    asked = [one for channel, value in writes if channel == INTERRUPT for one in host.questions(value)]
    assert address.checkpoint_id is not None
    return Call(
        thread_id=address.thread_id,
        checkpoint_ns=address.checkpoint_ns,
        checkpoint_id=address.checkpoint_id,
        root_id=(host.root_of(config) if address.checkpoint_ns else None) or address.checkpoint_id,
        around=(*host.around(config), (address.checkpoint_ns, address.checkpoint_id)) if address.checkpoint_ns else (),
        task_id=task_id,
        task_path=task_path,
        outcome=VisitStatus.of_event(event) if event else None,
        error=_error_of(writes, plain=plain),
        handled=any(channel == host.ERROR_SOURCE_NODE for channel, _ in writes),
        answers=answers if event else 0,
        questions=tuple(_question(one, answers + at, serde, plain) for at, one in enumerate(asked)),
        resumes=task_id == host.NULL_TASK and any(channel == RESUME for channel, _ in writes),
        stored_us=stored_us,
    )


def _question(asked: Any, ordinal: int, serde: SerializerProtocol, plain: bool) -> Question:
    kind = asked.value.get("kind") if plain and isinstance(asked.value, dict) else None
    if not isinstance(kind, str) or len(kind) > _MOST_KIND or not kind.isprintable():
        kind = None
    value_type, value = _payload(asked.value, serde, plain)
    return Question(
        interrupt_id=str(asked.id),
        ordinal=ordinal,
        kind=kind,
        value_type=value_type,
        value=value,
    )


def _payload(value: Any, serde: SerializerProtocol, plain: bool) -> tuple[str, bytes]:
    """As JSON, which anybody can read, if it is that; else as the serde has it."""
    if plain:
        try:
            return "json", canonical.encode_plain(value)
        except TypeError:
            pass
    return serde.dumps_typed(value)


def _failure(error: object) -> VisitStatus:
    if host.is_cancellation(error):
        return VisitStatus.CANCELLED
    return VisitStatus.TIMED_OUT if host.is_timeout(error) else VisitStatus.FAILED
