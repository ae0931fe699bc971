"""Event rows: what happened besides the puts and calls, at its place in the order of commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Tx

__all__ = ["append_event"]


def append_event(
    tx: Tx,
    *,
    name: str,
    run: int | None,
    thread_id: str,
    checkpoint_ns: str,
    checkpoint_id: str,
    details: Mapping[str, Any] | None = None,
    stored_us: int,
) -> None:
    """Append one event to the log, in the transaction that causes it.

    The row has no key of its own. A transaction may be run again, so the caller appends only when a compare-and-set of
    the same transaction has changed something, or asks `tx.repeated` before.

    Args:
        tx: The open transaction.
        name: `noun.verb` in the past tense, such as `attempt.succeeded`.
        run: The run's number (`run.run`); None if it belongs to none.
        thread_id: Where it happened, as the saver is told it; so the next two.
        checkpoint_ns: The namespace.
        checkpoint_id: The checkpoint that was being executed; it may not be stored yet.
        details: What more there is to say, as JSON: ids and short texts, no payloads.
        stored_us: When: microseconds since the epoch, UTC.

    Raises:
        TypeError: Some part of the details is not JSON.
    """
    tx.run(
        "event_append",
        event=name,
        run=run,
        thread_id=thread_id,
        checkpoint_ns=checkpoint_ns,
        checkpoint_id=checkpoint_id,
        details=None if details is None else canonical.encode(dict(details), where="details").decode(),
        stored_us=stored_us,
        empty=b"",
    )
