"""Answers: what questions are answered, on record before any task takes it (rules L25, L26).

State machine of an answer:

    give ──▶ on record ──▶ taken           by the task that asked, whenever its run is gone on with
                 └──────▶ never taken      the question was superseded first

The first one counts: the same again changes nothing, another one is refused and told so. All answers of one call are
one transaction, and nothing of it is stored if one of them is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import ConflictError, InvalidArgument, NotFound
from langgraph_ext.ledger.encoded import Serde, value_of
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.listing import Asked, with_nodes
from langgraph_ext.ledger.records import InterruptStatus
from langgraph_ext.ledger.rows import moment, text_or_none

__all__ = ["MOST_BYTES", "Answer", "ask_to_answer", "encode", "give", "is_news", "untaken"]

MOST_BYTES = 2 * 1024 * 1024
"""Of all answers of one call together, encoded."""

_READABLE = ("json", "msgpack", "null", "bytes", "bytearray")
"""Type tags of payloads that anybody can read. What stands under another may be encrypted; so must its answer be."""


class Answer(NamedTuple):
    """A value in every form in which it may be stored."""

    value: Any
    json: bytes | None
    """None if it is no JSON, or not to be read by everybody."""
    encoded: tuple[str, bytes] | None
    """As the serde has it; None without one."""

    @property
    def size(self) -> int:
        """In bytes."""
        return max(len(self.json or b""), len(self.encoded[1]) if self.encoded else 0)


def encode(value: Any, serde: Serde | None, *, where: str = "answer") -> Answer:
    """A value, ready to be stored: as JSON, which anybody can read, if that gives it back; else as the serde has it.

    Raises:
        InvalidArgument: It is no JSON, and the serde, if there is one that encodes, cannot encode it.
    """
    dumps = getattr(serde, "dumps_typed", None)
    json, why = None, f"{where} would not come back from JSON as it is"
    try:
        data = canonical.encode_plain(value, where=where)
        json = data if _comes_back(value) else None
    except TypeError as error:
        why = str(error)
    if dumps is None and json is None:
        raise InvalidArgument(f"{why}; give the answer as JSON, or a ledger a serde that encodes it")
    if dumps is not None and json is not None and dumps(None)[0] in _READABLE:
        dumps = None
    elif dumps is not None:
        json = None
    try:
        return Answer(value, json, None if dumps is None else dumps(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"{where} is neither JSON nor anything that the serde encodes: {error}") from error


def _comes_back(value: Any) -> bool:
    """Whether JSON gives back the very same: no tuples, no subclasses."""
    if type(value) is dict:
        return all(type(key) is str and _comes_back(part) for key, part in value.items())
    if type(value) is list:
        return all(map(_comes_back, value))
    return value is None or type(value) in (bool, int, float, str)


def ask_to_answer(
    answers: Mapping[str, Any], *, thread_id: str | None, by: str | None, serde: Serde | None, now_us: int
) -> Callable[[Tx], list[Asked]]:
    """Answers to questions, checked and encoded, ready to be stored; gives back the questions.

    Raises:
        InvalidArgument: There are none, one cannot be encoded, or they are longer than 2 MiB together.
    """
    if not answers or not hasattr(answers, "items"):
        raise InvalidArgument("answer takes {interrupt_id: value}, one or more of them; interrupts() lists the ids")
    named = {text_or_none(key, "an interrupt id") or "": value for key, value in answers.items()}
    given = {key: encode(value, serde, where=f"the answer to {key!r}") for key, value in named.items()}
    within_bounds(given.values())
    thread_id = text_or_none(thread_id, "thread_id")
    return partial(_answer, given=given, thread_id=thread_id, by=text_or_none(by, "by"), serde=serde, now_us=now_us)


def within_bounds(answers: Any) -> None:
    """Refuse what is too long to be kept.

    Raises:
        InvalidArgument: It is.
    """
    size = sum(answer.size for answer in answers)
    if size > MOST_BYTES:
        raise InvalidArgument(
            f"the answers are {size} bytes long, and {MOST_BYTES} together is the most; keep what is longer elsewhere, "
            "and answer with its name"
        )


def _answer(
    tx: Tx, *, given: Mapping[str, Answer], thread_id: str | None, by: str | None, serde: Serde | None, now_us: int
) -> list[Asked]:
    rows = give(tx, given, thread_id=thread_id, by=by, serde=serde, now_us=now_us)
    again = [tx.one("interrupts_with_id", interrupt_id=row["interrupt_id"], thread_id=row["thread_id"]) for row in rows]
    return with_nodes(tx, again)


def give(
    tx: Tx, given: Mapping[str, Answer], *, thread_id: str | None, by: str | None, serde: Serde | None, now_us: int
) -> list[Row]:
    """Put answers on record, all of them or none; returns their questions, as they were.

    Args:
        tx: The open transaction.
        given: By the id of the question.
        thread_id: The thread that asks; None: whichever does.
        by: Who answers.
        serde: Decodes what was answered before, to compare.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        NotFound: A question is not known (`interrupt_not_found`).
        ConflictError: One was answered otherwise (`answer_conflict`), or is open no more (`interrupt_not_pending`).
        InvalidArgument: Several threads ask one, or an answer may not be stored as it is encoded.
    """
    rows = _questions(tx, given, thread_id)
    news = [row for row in rows if is_news(row, given[row["interrupt_id"]], serde)]
    for row in news:
        answer_type, answer = _as_stored(row, given[row["interrupt_id"]])
        where = {"thread_id": row["thread_id"], "interrupt_id": row["interrupt_id"]}
        stored = tx.run("interrupt_answer", **where, answer_type=answer_type, answer=answer, by=by, now_us=now_us)
        assert stored == 1, "nobody else writes in this transaction"
        append_event(
            tx,
            name="interrupt.answered",
            run=row["run"],
            thread_id=row["thread_id"],
            checkpoint_ns=row["checkpoint_ns"],
            checkpoint_id=row["checkpoint_id"],
            details={"interrupt_id": row["interrupt_id"]} | ({} if by is None else {"by": by}),
            stored_us=now_us,
        )
    return rows


def untaken(tx: Tx, run: int) -> list[Row]:
    """The open questions of a run, oldest first, with the answers to them that are on record."""
    return tx.all("interrupts_untaken", run=run)


def _questions(tx: Tx, ids: Mapping[str, Answer], thread_id: str | None) -> list[Row]:
    found = {key: tx.all("interrupts_with_id", interrupt_id=key, thread_id=thread_id) for key in ids}
    if unknown := [key for key, rows in found.items() if not rows]:
        raise not_found(unknown, thread_id)
    return [_only(key, rows) for key, rows in found.items()]


def not_found(ids: list[str], thread_id: str | None) -> NotFound:
    """The error that says that nobody asks so."""
    where = "this ledger" if thread_id is None else f"thread {thread_id!r}"
    named = ", ".join(map(repr, ids[:3])) + (", …" if len(ids) > 3 else "")
    return NotFound(
        f"interrupt {named} is not in {where}; interrupts() lists those that are",
        code="interrupt_not_found",
        details={"interrupt_ids": ids, "thread_id": thread_id},
    )


def _only(interrupt_id: str, rows: list[Row]) -> Row:
    """Of the threads that ask under one id, which a copied one does, the one in which it is open."""
    if len(rows) > 1:
        rows = [row for row in rows if row["status"] == InterruptStatus.PENDING] or rows
    if len(rows) > 1:
        threads = ", ".join(repr(row["thread_id"]) for row in rows)
        raise InvalidArgument(f"interrupt {interrupt_id!r} is one of several threads ({threads}); name one: thread_id=")
    return rows[0]


def is_news(row: Row, answer: Answer, serde: Serde | None) -> bool:
    """Whether an answer is to be stored; not if it is on record already.

    Raises:
        ConflictError: Another one is, or the question waits for none.
    """
    if row["answered_us"] is not None:
        if _is_same(row, answer, serde):
            return False
        raise _conflict(row)
    if row["status"] == InterruptStatus.PENDING:
        return True
    why = "its task was given an answer" if row["status"] == InterruptStatus.ANSWERED else "it was superseded"
    raise ConflictError(
        f"interrupt {row['interrupt_id']!r} of run {row['run_id']!r} waits for no answer any more: {why}; "
        "interrupts(pending=True) lists those that do",
        code="interrupt_not_pending",
        details={"interrupt_id": row["interrupt_id"], "status": row["status"]},
    )


def _conflict(row: Row) -> ConflictError:
    return ConflictError(
        f"interrupt {row['interrupt_id']!r} has another answer, {whose(row)}, and the first one counts; "
        f"interrupts(run_id={row['run_id']!r}) shows it",
        code="answer_conflict",
        details={
            "interrupt_id": row["interrupt_id"],
            "answered_by": row["answered_by"],
            "answered_us": row["answered_us"],
        },
    )


def whose(row: Row) -> str:
    """Who gave an answer on record, and when."""
    by = "" if row["answered_by"] is None else f" by {row['answered_by']!r}"
    return f"given{by} at {moment(row['answered_us']).isoformat()}"


def _is_same(row: Row, answer: Answer, serde: Serde | None) -> bool:
    """Whether a value is the one on record. Encrypted, the same value has other bytes each time."""
    kind, data = row["answer_type"], row["answer"]
    if answer.encoded == (kind, data):
        return True
    if kind == "json":
        return answer.json is not None and canonical.encode(canonical.decode(data)) == canonical.encode(answer.value)
    if serde is None or answer.encoded is None or answer.encoded[0] != kind:
        return False
    before = value_of(kind, data, serde)
    return type(before) is type(answer.value) and (before == answer.value) is True


def _as_stored(row: Row, answer: Answer) -> tuple[str, bytes]:
    if answer.json is not None and row["value_type"] in _READABLE:
        return "json", answer.json
    if answer.encoded is None:
        raise InvalidArgument(
            f"interrupt {row['interrupt_id']!r} is stored as {row['value_type']!r}, which not everybody may read; so "
            "must its answer be: open the ledger with the serde of its saver"
        )
    return answer.encoded
