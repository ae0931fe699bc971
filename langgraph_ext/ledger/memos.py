"""Memos: small values that a durable node keeps between its attempts and its rounds (rule L44).

A memo is its node's: of all visits of one node path in one scope, and one place of a fan-out, of one run. So the rounds
of a loop share it; the tasks of a fan-out, and a subgraph that is run again, have their own.

    key          written again            owner
    once:…       with the same value      the node
    session:…    with any                 the node, or one around it: then it is shared by all nodes in that
    any other    with any                 the node
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import ConflictError, InvalidArgument
from langgraph_ext.ledger.attempts import Attempt, find
from langgraph_ext.ledger.encoded import Encoded, Serde, value_of
from langgraph_ext.ledger.frames import FrameKey, check_frame
from langgraph_ext.ledger.records import Memo
from langgraph_ext.ledger.rows import moment, run_named, text_or_none

__all__ = ["ask_memos", "check_key", "memos_given_out", "read", "read_of_visit", "write"]

MOST_BYTES = 2 * 1024 * 1024
"""Of a value, as it is stored."""

_MOST_CHARACTERS = 1024
_ONCE, _SESSION = "once:", "session:"


class _Owner(NamedTuple):
    scope: str
    place: int
    node_path: str


def check_key(key: object, owner: object) -> None:
    """See that a memo can have this key and this owner, whatever node asks.

    Raises:
        InvalidArgument: It cannot (`invalid_argument`; `memo_scope` if only a session's may have another owner).
    """
    if not isinstance(key, str) or not 0 < len(key) <= _MOST_CHARACTERS:
        raise InvalidArgument(f"memo key {key!r} must be text of 1 to {_MOST_CHARACTERS:,} characters")
    text_or_none(key, "memo key")
    if text_or_none(owner, "owner") is not None and not key.startswith(_SESSION):
        raise InvalidArgument(
            f"memo {key!r}: only a key that begins with {_SESSION!r} may have an owner= besides its own node",
            code="memo_scope",
        )


def read(tx: Tx, frame: FrameKey, *, key: str, owner: str | None) -> Encoded | None:
    """A node's memo of this key; None if it has none.

    Raises:
        ConflictError: The frame is no longer this one (`attempt_mismatch`).
        InvalidArgument: The owner is neither this node nor around it (`memo_scope`).
    """
    check_frame(tx, frame)
    row = tx.maybe("memo_get", run=frame.run, key=key, **_owner(tx, frame, key, owner)._asdict())
    return None if row is None else Encoded(row["value_type"], row["value"])


def read_of_visit(tx: Tx, frame: FrameKey, *, key: str) -> Encoded | None:
    """As `read`, if an attempt of this very visit has written it, or if its key says that it never changes.

    Raises:
        ConflictError: The frame is no longer this one (`attempt_mismatch`).
    """
    attempt = check_frame(tx, frame)
    row = tx.maybe("memo_get", run=frame.run, key=key, **_owner(tx, frame, key, None)._asdict())
    if row is None:
        return None
    writer = find(tx, row["attempt_id"])
    is_own = writer is not None and _visit(writer) == _visit(attempt)
    if not is_own and not key.startswith(_ONCE):
        return None
    return Encoded(row["value_type"], row["value"])


def write(tx: Tx, frame: FrameKey, *, key: str, owner: str | None, value: Encoded, now_us: int) -> None:
    """Keep a value under a key.

    Raises:
        ConflictError: The frame may not act (`attempt_mismatch`), or the key begins with `once:` and has another value
            (`memo_conflict`).
        InvalidArgument: The value is too large (`output_limit`), or the owner is neither this node nor around it
            (`memo_scope`).
    """
    attempt = check_frame(tx, frame)
    if len(value.data) > MOST_BYTES:
        raise InvalidArgument(
            f"memo {key!r}: {len(value.data):,} bytes are too many, {MOST_BYTES:,} at most; keep large values outside, "
            "and what names them here",
            code="output_limit",
        )
    owned = _owner(tx, frame, key, owner)
    if key.startswith(_ONCE):
        known = tx.maybe("memo_get", run=frame.run, key=key, **owned._asdict())
        if known is not None and (known["value_type"], known["value"]) != value:
            raise ConflictError(
                f"memo {key!r} of node {owned.node_path!r} was written before, with another value, and its key says "
                "that it never changes",
                code="memo_conflict",
                details={"key": key, "node_path": owned.node_path},
            )
    tx.run(
        "memo_put",
        run=frame.run,
        key=key,
        **owned._asdict(),
        thread_id=attempt.thread_id,
        value_type=value.type,
        value=value.data,
        attempt_id=frame.attempt_id,
        now_us=now_us,
    )


def _visit(attempt: Attempt) -> tuple[str, str, int]:
    """Which part of which task of its thread an attempt executes."""
    return attempt.checkpoint_id, attempt.task_id, attempt.ordinal


def _owner(tx: Tx, frame: FrameKey, key: str, owner: str | None) -> _Owner:
    """Whose a memo is: this node's, or that of one around it."""
    attempt = check_frame(tx, frame)
    where = {"checkpoint_id": attempt.checkpoint_id, "task_id": attempt.task_id}
    stands = tx.one("visit_get", thread_id=attempt.thread_id, **where)
    if owner is None or owner == stands["node_path"]:
        return _Owner(stands["scope"], stands["place"], stands["node_path"])
    if owner == "":
        return _Owner("", -1, "")
    scope, above = stands["scope"], str(stands["node_path"])
    while "/" in above and scope:
        above = above.rpartition("/")[0]
        around = tx.maybe("visit_around", run=frame.run, node_path=above, task_id=scope)
        if around is None:
            break
        if above == owner:
            return _Owner(around["scope"], around["place"], above)
        scope = around["scope"]
    raise InvalidArgument(
        f"memo {key!r}: {owner!r} is neither node {stands['node_path']!r} nor around it; give the node path of one "
        'that is, or "" for the whole run',
        code="memo_scope",
    )


def ask_memos(run_id: str) -> Callable[[Tx], list[Row]]:
    """The memos of a run, ready to be read."""
    return partial(_memos, run_id=text_or_none(run_id, "run_id") or "")


def _memos(tx: Tx, *, run_id: str) -> list[Row]:
    return tx.all("memos_of_run", run=run_named(tx, run_id)["run"])


def memos_given_out(rows: list[Row], serde: Serde | None) -> list[Memo]:
    """The memos as they are given out."""
    return [
        Memo(
            node_path=row["node_path"],
            scope=row["scope"] or None,
            place=None if row["place"] < 0 else row["place"],
            key=row["key"],
            value=value_of(row["value_type"], row["value"], serde),
            value_type=row["value_type"],
            attempt_id=row["attempt_id"],
            written_at=moment(row["written_us"]),
        )
        for row in rows
    ]
