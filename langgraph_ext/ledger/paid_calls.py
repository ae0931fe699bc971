"""Paid calls: those that a durable body makes by itself, and whose answers it may keep (rules L34, L35).

    start     the answer that is kept, if there is one; else what the call may use is reserved, and it may be made
    settle    what it used, and the answer to be kept, in one transaction: neither is there without the other

An answer is kept as a memo of the node's. One that another visit has kept is not given back, unless its key says that
it never changes: the next round of a loop pays for an answer of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from langgraph_ext.database import Tx
from langgraph_ext.ledger import memos, model_calls
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.model_calls import Asked, Reported

__all__ = ["Kept", "settle", "start"]


class Kept(NamedTuple):
    """What is kept of an answer."""

    key: str
    """The memo's."""
    value: Encoded


def start(tx: Tx, asked: Asked, *, frame: FrameKey, memo: str | None) -> Encoded | None:
    """Give an answer that is kept, or put the call on record, which may be made once this is committed.

    Args:
        tx: The transaction.
        asked: The call.
        frame: The attempt's that makes it.
        memo: The key that its answer is kept under, if under any.

    Returns:
        The answer; None if the call is to be made.

    Raises:
        LangGraphExtError: As `model_calls.start_call`.
    """
    kept = None if memo is None else memos.read_of_visit(tx, frame, key=memo)
    if kept is None:
        model_calls.start_call(tx, asked)
    return kept


def settle(tx: Tx, *, frame: FrameKey, call_id: str, reported: Reported, kept: Kept | None = None, now_us: int) -> None:
    """Replace what a call had reserved by what it used, and keep its answer. The same again changes nothing.

    Args:
        tx: The transaction.
        frame: The attempt's that has made it. An answer is kept only while that runs; the bill is stored all the same,
            by another transaction without `kept`.
        call_id: The call.
        reported: What it used.
        kept: What is kept of its answer.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        LangGraphExtError: As `model_calls.settle_call` and `memos.write`.
    """
    model_calls.settle_call(tx, call_id=call_id, reported=reported, attempt_id=frame.attempt_id, now_us=now_us)
    if kept is not None:
        memos.write(tx, frame, key=kept.key, owner=None, value=kept.value, now_us=now_us)
