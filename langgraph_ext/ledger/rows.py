"""Rows of the ledger's tables as the records it gives out, and what callers ask for, checked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.ledger.records import Run, RunStatus

__all__ = ["at_least", "moment", "one_of", "run_named", "run_record", "text_or_none", "thread_of"]

E = TypeVar("E", bound=StrEnum)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(us: int) -> datetime:
    """Microseconds since the epoch as an aware time in UTC, exactly."""
    return _EPOCH + timedelta(microseconds=us)


def moment_or_none(us: int | None) -> datetime | None:
    """As `moment`; None for null."""
    return None if us is None else moment(us)


def run_named(tx: Tx, run_id: str) -> Row:
    """The row of a run.

    Raises:
        NotFound: There is none of this name (`run_not_found`).
    """
    row = tx.maybe("run_named", run_id=run_id)
    if row is None:
        raise NotFound(
            f"run {run_id!r} is not in this ledger; runs() lists those that are",
            code="run_not_found",
            details={"run_id": run_id},
        )
    return row


def thread_of(run: Row) -> str:
    """What a run's thread is called, or was before it was deleted."""
    name: str = run["deleted_thread"] or run["thread_id"]
    return name


def run_record(row: Row) -> Run:
    """A run as it is given out."""
    return Run(
        run_id=row["run_id"],
        thread_id=thread_of(row),
        status=RunStatus(row["status"]),
        fork_of=row["fork_of"],
        first_checkpoint_id=row["first_id"],
        last_checkpoint_id=row["last_id"],
        error_type=row["error_type"],
        error_message=row["error_message"],
        started_at=moment(row["started_us"]),
        changed_at=moment(row["changed_us"]),
        ended_at=None if row["ended_us"] is None else moment(row["ended_us"]),
        run_key=row["run_key"],
        graph=row["graph"],
        definition_digest=row["definition_digest"],
        input_digest=row["input_digest"],
        made_by=row["made_by"],
        active_seconds=None if row["active_us"] is None else row["active_us"] / 1e6,
        parent_run_id=row["parent_id"],
        parent_attempt_id=row["parent_attempt"],
        thread_deleted=row["deleted_thread"] is not None,
    )


def at_least(least: int, value: object, name: str) -> int:
    """A whole number that is not below `least`, and fits into 64 bits.

    Raises:
        InvalidArgument: It is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= GREATEST:
        raise InvalidArgument(f"{name} is {value!r}; it must be a whole number, {least} or more")
    return value


def one_of(words: type[E], value: object, name: str) -> E | None:
    """One of an enumeration's words, or None.

    Raises:
        InvalidArgument: It is no such word.
    """
    if value is None:
        return None
    try:
        return words(value)  # type: ignore[arg-type]
    except ValueError:
        known = ", ".join(repr(str(word)) for word in words)
        raise InvalidArgument(f"{name} is {value!r}; it must be one of {known}") from None


def text_or_none(value: object, name: str) -> str | None:
    """Text that a database can be asked for, or None.

    Raises:
        InvalidArgument: It is no text, or not valid Unicode.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} is {value!r}; it must be text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{name} {value!r} is not valid Unicode: {error.reason}") from None
    return value
