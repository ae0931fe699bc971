"""Task writes: the transaction that stores what one `put_writes` was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langgraph_ext.database import Append, Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver import host
from langgraph_ext.saver.config import APPENDED, Address, text
from langgraph_ext.saver.values import Dumps
from langgraph_ext.saver.writes import answers_in, are_partial, are_regular, encode_writes

__all__ = ["TaskWrites", "may_linger", "prepare", "store"]


class TaskWrites(NamedTuple):
    """What a task wrote, on its way into the log: checked and encoded."""

    append: Append | None
    """None if there are no writes."""
    regular: bool
    """Whether it holds no error, interrupt, answer or scheduled task."""


def prepare(
    address: Address,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    *,
    from_graph: bool,
    dumps: Dumps,
    stored_us: int,
) -> TaskWrites:
    """Check and encode, in the caller's thread. `from_graph`: they come from a running graph.

    Raises:
        InvalidArgument: The config names no checkpoint, or a name cannot be stored.
    """
    thread_id, checkpoint_ns, checkpoint_id = address
    if checkpoint_id is None:
        raise InvalidArgument("put_writes: the config names no checkpoint; pass the checkpoint_id being executed")
    if not (type(task_id) is type(task_path) is str and (task_id + task_path).isascii()):
        task_id, task_path = text(task_id, "task_id", "put_writes"), text(task_path, "task_path", "put_writes")
    body, data = encode_writes(writes, dumps)
    regular = are_regular(writes)
    row: dict[str, object] = {
        **APPENDED,
        "thread_id": thread_id,
        "checkpoint_ns": checkpoint_ns,
        "checkpoint_id": checkpoint_id,
        "task_id": task_id,
        "task_path": task_path,
        "answers": None if regular else answers_in(writes, task_id),
        "partial": 1 if from_graph and not regular and are_partial(writes) else None,
        "stored_us": stored_us,
        "body": body,
        "data": data,
    }
    return TaskWrites(Append("log_append", row) if writes else None, regular)


def may_linger(written: TaskWrites, task_path: str) -> bool:
    """Whether they may wait a moment to share their commit with the put that usually follows.

    LangGraph does not wait for `put_writes` in a step; it does wait for the end of what it asked, an interrupt, and the
    tasks of a fan-out come too many at once for each to wait.
    """
    return written.regular and not host.is_send(task_path)


def store(tx: Tx, written: TaskWrites) -> None:
    """Append them to the log. A call without writes leaves nothing."""
    if written.append is not None and not (tx.repeated and _is_stored(tx, written.append.params)):
        tx.run("log_append", **written.append.params)


def _is_stored(tx: Tx, row: Mapping[str, object]) -> bool:
    """Whether an earlier try of this very call was committed."""
    key = ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "stored_us", "body")
    return tx.maybe("writes_same", **{name: row[name] for name in key}) is not None
