"""Task writes: the transaction that stores what one `put_writes` was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from langgraph_ext.database import Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver import host
from langgraph_ext.saver.config import Address, text
from langgraph_ext.saver.values import Dumps
from langgraph_ext.saver.writes import answers_in, are_ordinary, are_partial, encode_writes

__all__ = ["TaskWrites", "may_linger", "prepare", "store"]


class TaskWrites(NamedTuple):
    """What a task wrote, on its way into the log: checked and encoded."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    task_path: str
    body: bytes
    data: bytes
    number: int
    """How many writes there are."""
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
) -> TaskWrites:
    """Check and encode, in the caller's thread. `in_loop`: they come from a running graph.

    Raises:
        InvalidArgument: The config names no checkpoint, or a name cannot be stored.
    """
    thread_id, checkpoint_ns, checkpoint_id = address
    if checkpoint_id is None:
        raise InvalidArgument("put_writes: the config names no checkpoint; pass the checkpoint_id being executed")
    body, data = encode_writes(writes, dumps)
    return TaskWrites(
        thread_id=thread_id,
        checkpoint_ns=checkpoint_ns,
        checkpoint_id=checkpoint_id,
        task_id=text(task_id, "task_id", "put_writes"),
        task_path=text(task_path, "task_path", "put_writes"),
        body=body,
        data=data,
        number=len(writes),
        answers=answers_in(writes, task_id),
        partial=in_loop and are_partial(writes),
        ordinary=are_ordinary(writes),
        stored_us=stored_us,
    )


def may_linger(written: TaskWrites) -> bool:
    """Whether they may wait a moment to share their commit with the put that usually follows.

    LangGraph does not wait for `put_writes` in a step; it does wait for the end of what it asked, an interrupt, and the
    tasks of a fan-out come too many at once for each to wait.
    """
    return written.ordinary and not host.is_send(written.task_path)


def store(tx: Tx, written: TaskWrites) -> None:
    """Append them to the log. A call without writes leaves nothing."""
    row = {
        "thread_id": written.thread_id,
        "checkpoint_ns": written.checkpoint_ns,
        "checkpoint_id": written.checkpoint_id,
        "task_id": written.task_id,
        "task_path": written.task_path,
        "answers": written.answers,
        "partial": 1 if written.partial else None,
        "stored_us": written.stored_us,
        "body": written.body,
        "data": written.data,
    }
    if written.number and not (tx.repeated and _is_stored(tx, written)):
        tx.run("writes_insert", **row)


def _is_stored(tx: Tx, written: TaskWrites) -> bool:
    """Whether an earlier try of this very call was committed."""
    found = tx.maybe(
        "writes_same",
        thread_id=written.thread_id,
        checkpoint_ns=written.checkpoint_ns,
        checkpoint_id=written.checkpoint_id,
        task_id=written.task_id,
        stored_us=written.stored_us,
        body=written.body,
    )
    return found is not None
