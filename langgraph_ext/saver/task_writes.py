"""Task writes: the transaction that stores what one `put_writes` was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_ext import canonical
from langgraph_ext.database import Append, Sealer, Tx, seal_words
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import attempts, calls, tombstones
from langgraph_ext.ledger.task_paths import is_send
from langgraph_ext.saver import facts, growth, host, values
from langgraph_ext.saver.bodies import Bodies, Known
from langgraph_ext.saver.config import Address, text
from langgraph_ext.saver.early import Early
from langgraph_ext.saver.fences import fence
from langgraph_ext.saver.identity import Seen
from langgraph_ext.saver.sealing import Seals, seals_at
from langgraph_ext.saver.writes import answers_in, are_partial, encode_writes, kinds_in, large_in, lay_out

__all__ = ["Answer", "TaskWrites", "may_linger", "prepare", "store"]


Answer = Mapping[str, Known] | bool | None
"""What the transaction says that stores a call."""


class Large(NamedTuple):
    """Writes of which some are large."""

    encoded: Sequence[tuple[str, str, bytes]]
    """All of them."""
    grown: Mapping[str, growth.Grown] | None
    """Those that go to strands; None if that has to be found out in the transaction."""


class TaskWrites(NamedTuple):
    """What a task wrote, on its way into the log: checked and encoded."""

    append: Append | None
    """The whole of it; None if there are no writes, or if the ledger has to be told."""
    row: Mapping[str, object] | None
    """None if there are no writes."""
    call: calls.Call | None
    """What it says to the ledger, if it has to be told."""
    epoch: int | None
    """Under which epoch it is stored; None if under no lease."""
    regular: bool
    """Whether it holds no error, interrupt, answer or scheduled task."""
    life: int | None = None
    """In which life of its thread its invocation began; None if that is not known."""
    large: Large | None = None
    """Its large values, if some may go to strands."""
    timed_out: tuple[str, ...] = ()
    """Attempts of the task that were cancelled by the timeout which it tells of."""


def prepare(
    address: Address,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    *,
    serde: SerializerProtocol,
    dumps: values.Dumps,
    sealer: Sealer | None,
    seen: Seen,
    bodies: Bodies,
    epoch: int | None,
    regular: bool,
    stored_us: int,
    started_us: int | None = None,
    timed_out: tuple[str, ...] = (),
    life: int | None = None,
) -> TaskWrites:
    """Check and encode, in the caller's thread.

    Args:
        address: Thread, namespace and the checkpoint being executed.
        config: Tells whether a running graph wrote them.
        writes: `(channel, value)` in the task's order.
        task_id: The task.
        task_path: Its path.
        serde: The saver's.
        dumps: Its encoder, or one that encodes less (strict.py).
        sealer: Encrypts them; None if the database is plain.
        seen: Where tasks were seen.
        bodies: What is remembered of large values.
        epoch: Under which epoch they are stored; None if under no lease.
        regular: What `are_regular` says of them.
        stored_us: When: microseconds since the epoch, UTC.
        started_us: When the task began, if that is known.
        timed_out: Attempts of the task that were cancelled by the timeout which they tell of.
        life: In which life of its thread their invocation began (lives.py); None if that is not known.

    Raises:
        InvalidArgument: The config names no checkpoint, or a name cannot be stored.
    """
    thread_id, checkpoint_ns, checkpoint_id = address
    if checkpoint_id is None:
        raise InvalidArgument("put_writes: the config names no checkpoint; pass the checkpoint_id being executed")
    if not (type(task_id) is type(task_path) is str and (task_id + task_path).isascii()):
        task_id, task_path = text(task_id, "task_id", "put_writes"), text(task_path, "task_path", "put_writes")
    seals = None if sealer is None else Seals(sealer, thread_id, checkpoint_ns, checkpoint_id)
    body, data, encoded = encode_writes(writes, dumps, task_id, seals)
    laid = None
    if encoded and (large := large_in(encoded)):
        grown = growth.shared_ahead(large, thread_id, checkpoint_ns, bodies, whole=seals is not None)
        laid = None if grown == {} else Large(encoded, grown)
    from_graph = host.from_graph(config)
    event = facts.event_of(writes, task_id, task_path, regular=regular) if from_graph else None
    answers = None if regular else answers_in(writes, task_id)
    row: dict[str, object] = {
        "thread_id": thread_id,
        "checkpoint_ns": checkpoint_ns,
        "checkpoint_id": checkpoint_id,
        "task_id": task_id,
        "task_path": task_path,
        "answers": answers,
        "partial": 1 if from_graph and not regular and are_partial(writes) else None,
        "details": None if started_us is None else f'{{"started_us":{started_us}}}',
        "event": event,
        "epoch": epoch,
        "life": life,
        "stored_us": stored_us,
        "body": body,
        "data": data,
    }
    if not writes:
        return TaskWrites(None, None, None, epoch, regular, life)
    if not from_graph or (regular and not seen.elsewhere(address, task_id, task_path)):
        append = Append("call_append", row, stored=True)
        if epoch is not None:
            append = Append("call_append_fenced", row, stored=True)
        return TaskWrites(append if laid is None else None, row, None, epoch, regular, life, large=laid)
    call = facts.call_of(
        address, config, writes, task_id, task_path, event=event, answers=answers or 0, serde=serde, stored_us=stored_us
    )
    if call.error is not None:
        details: dict[str, object] = {"error_type": call.error[0], "error_message": call.error[1]}
        if started_us is not None:
            details["started_us"] = started_us
        if sealer is not None:
            details = seal_words(sealer, ("event.details", *address, event, stored_us), details)
        row["details"] = canonical.encode_plain(details).decode()
    return TaskWrites(None, row, call, epoch, regular, life, large=laid, timed_out=timed_out)


def may_linger(written: TaskWrites, task_path: str) -> bool:
    """Whether they may wait a moment to share their commit with the put that usually follows.

    LangGraph does not wait for `put_writes` in a step; it does wait for the end of what it asked, an interrupt, and the
    tasks of a fan-out come too many at once for each to wait.
    """
    return written.regular and not is_send(task_path)


def store(tx: Tx, written: TaskWrites, early: Early | None = None, *, again: bool = False) -> Answer:
    """Append them to the log, and tell the ledger; later, if their checkpoint is not there. No writes leave nothing.

    Args:
        tx: The open transaction.
        written: What to store.
        early: Where calls wait for their checkpoint.
        again: Whether nobody knows if it was stored before.

    Returns:
        What is to be remembered of the values that went to strands, if some did. Else True. (Of an append,
        None says that nobody can tell whether it was stored.)

    Raises:
        LeaseError: The thread is another's by now (`lease_lost`).
        ConflictError: The checkpoint was deleted with its thread (`thread_deleted`).
    """
    row, call = written.row, written.call
    if row is None or ((again or tx.repeated) and _is_stored(tx, row, written.large)):
        return True
    fence(tx, str(row["thread_id"]), written.epoch, now_us=0)
    address = (str(row[name]) for name in ("thread_id", "checkpoint_ns", "checkpoint_id"))
    tombstones.refuse_call(tx, *address, life=written.life)
    where = {name: row[name] for name in ("thread_id", "checkpoint_ns")}
    grown, tails = ({}, {}) if written.large is None else _grown(tx, where, row, written.large)
    if written.large is not None:
        body, data = lay_out(written.large.encoded, grown, str(row["task_id"]), seals_at(tx, row))
        row = {**row, "body": body, "data": data}
    if call is not None:
        calls.check_identity(tx, call)
    if written.epoch is None:
        tx.run("call_append", **row)
    else:
        tx.run("call_append_fenced", **row)
    if call is not None and not calls.record(tx, call) and early is not None:
        early.add(call)
    if written.timed_out:
        attempts.have_timed_out(tx, written.timed_out, now_us=int(str(row["stored_us"])))
    return growth.write(tx, where, grown, tails) or True


def _grown(
    tx: Tx, where: Mapping[str, object], row: Mapping[str, object], large: Large
) -> tuple[Mapping[str, growth.Grown], growth.Tails]:
    """The values that go to strands, and the strands."""
    if large.grown is not None and (tails := growth.tails_of(tx, where, large.grown)) is not None:
        return large.grown, tails
    executed = tx.maybe("put_places", **where, checkpoint_id=row["checkpoint_id"])
    if executed is None:
        return {}, {}
    return growth.shared_within(tx, where, large_in(large.encoded), values.decode_places(executed["places"]))


def _is_stored(tx: Tx, row: Mapping[str, object], large: Large | None) -> bool:
    """Whether an earlier try of this very call was committed."""
    key = {name: row[name] for name in ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "stored_us")}
    if large is None:
        return tx.maybe("writes_same", **key, body=row["body"]) is not None
    asked = [(channel, kind) for channel, kind, _ in large.encoded]
    return asked in (kinds_in(other) for other in tx.all("writes_at", **key))
