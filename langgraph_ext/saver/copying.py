"""Copying what is encrypted: each row of a thread is opened where it is, and sealed for where it goes."""

from __future__ import annotations

from langgraph_ext.database import Row, Tx
from langgraph_ext.saver import values
from langgraph_ext.saver.sealing import Seals
from langgraph_ext.saver.writes import sealed_again

__all__ = ["copy_rows", "put_sealed_again"]

_PAGE = 64
"""Rows that are in memory at a time."""

_COPIED = (
    "listed",
    "checkpoint_ns",
    "checkpoint_id",
    "parent_id",
    "task_id",
    "task_path",
    "answers",
    "partial",
    "sends",
)


def copy_rows(tx: Tx, source: str, target: str, *, stored_us: int) -> None:
    """Copy the puts and calls of a thread, in their order; its strands are copied apart (strands.py).

    Raises:
        EncryptionError: One of them does not open; nothing is copied.
    """
    assert tx.sealer is not None, "a plain thread is copied by the database"
    after = 0
    while rows := tx.all("thread_rows", thread_id=source, after=after, size=_PAGE):
        for row in rows:
            opens = Seals(tx.sealer, source, row["checkpoint_ns"], row["checkpoint_id"])
            seals = opens.of_thread(target)
            metadata, places = None, None
            if row["listed"] is None:
                body, data = sealed_again(row, opens, seals)
            else:
                body = row["body"]
                metadata = seals.seal_metadata(opens.open_metadata(row["sealed"]))
                places, data = put_sealed_again(row, opens, seals)
            copied = {name: row[name] for name in _COPIED}
            where = {"thread_id": target, "stored_us": stored_us}
            tx.run("row_copy", **copied, **where, metadata=metadata, places=places, body=body, data=data)
        after = rows[-1]["seq"]


def put_sealed_again(row: Row, opens: Seals | None, seals: Seals) -> tuple[bytes, bytes]:
    """Places and data of a put, sealed for another place, or with another key; values of other rows stay theirs."""
    places = values.decode_places(row["places"])
    return values.sealed_again(places, row["data"], opens, seals)
