"""Calls: the transaction that stores what one `put_writes` was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraph_ext.database import Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver import host
from langgraph_ext.saver.config import Address, text
from langgraph_ext.saver.values import Dumps
from langgraph_ext.saver.writes import answers_in, are_ordinary, are_partial, pack_call

__all__ = ["Call", "may_linger", "prepare", "store"]


_NO_WRITES = b"[]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A `put_writes` call on its way into the log: checked and encoded."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    task_path: str
    head: bytes
    data: bytes
    answers: int | None
    """How many answers the task says it was given, if it says so."""
    partial: bool
    """Whether its writes beside the error are not to be shown."""
    ordinary: bool
    """Whether it holds no error, interrupt, resume or scheduled call."""
    stored_us: int


def prepare(
    address: Address,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    *,
    in_loop: bool,
    dumps: Dumps,
    stored_us: int,
) -> Call:
    """Check and encode, in the caller's thread. `in_loop`: the call comes from a running graph.

    Raises:
        InvalidArgument: The config names no checkpoint, or a name cannot be stored.
    """
    thread_id, checkpoint_ns, checkpoint_id = address
    if checkpoint_id is None:
        raise InvalidArgument("put_writes: the config names no checkpoint; pass the checkpoint_id being executed")
    head, data = pack_call(writes, dumps)
    return Call(
        thread_id=thread_id,
        checkpoint_ns=checkpoint_ns,
        checkpoint_id=checkpoint_id,
        task_id=text(task_id, "task_id", "put_writes"),
        task_path=text(task_path, "task_path", "put_writes"),
        head=head,
        data=data,
        answers=answers_in(writes, task_id),
        partial=in_loop and are_partial(writes),
        ordinary=are_ordinary(writes),
        stored_us=stored_us,
    )


def may_linger(call: Call) -> bool:
    """Whether it may wait a moment to share its commit with the put that usually follows it.

    LangGraph does not wait for `put_writes` in a step; it does wait for the end of what it asked, an interrupt, and the
    tasks of a fan-out come too many at once for each to wait.
    """
    return call.ordinary and not host.is_send(call.task_path)


def store(tx: Tx, call: Call) -> None:
    """Append the call to the log. A call without writes leaves nothing."""
    if call.head == _NO_WRITES:
        return
    tx.run(
        "writes_insert",
        thread_id=call.thread_id,
        checkpoint_ns=call.checkpoint_ns,
        checkpoint_id=call.checkpoint_id,
        task_id=call.task_id,
        task_path=call.task_path,
        answers=call.answers,
        partial=1 if call.partial else None,
        stored_us=call.stored_us,
        head=call.head,
        data=call.data,
    )
