"""Resuming: how answers on record get to the tasks that asked (rules L25–L27).

Whoever goes on with a run gives its tasks every answer that is on record and that they have not taken, under the id of
its question; so whoever does it twice, or after a crash, gives the same. What a `Command(resume=…)` of an attached
graph says is put on record first, as an answer to the question it is meant for:

    a dict of ids that questions of the thread have             those answers
    a dict with any other key that looks like such an id        refused: interrupt_not_found
    any other value, also None, {} and {"decisions": […]}       the answer to the one open question
        several are open, or none                               refused: answer_ambiguous, interrupt_not_pending
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import ConflictError, InvalidArgument
from langgraph_ext.ledger import answers
from langgraph_ext.ledger.answers import Answer
from langgraph_ext.ledger.encoded import Serde, value_of
from langgraph_ext.ledger.listing import with_nodes
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.rows import text_or_none

if TYPE_CHECKING:
    from langgraph.types import Command

__all__ = ["Given", "Stored", "answer", "ask_open", "ask_stored", "command_of", "given", "on_record", "refuse_another"]

_AN_ID = re.compile(r"[0-9a-f]{32}")

_MAY_WAIT_UNASKED = (RunStatus.RUNNING, RunStatus.IDLE)
"""Statuses of a run that may stand at a breakpoint: it is gone on with, and what the command says goes to nobody."""


class Given(NamedTuple):
    """What a command says, encoded."""

    whole: Answer | None
    """As the answer to one question; None if it can only be a map."""
    parts: Mapping[str, Answer]
    """As a map, if it can be one; empty otherwise."""


class Stored(NamedTuple):
    """An answer on record that its task has not taken."""

    row: Row
    """Its question's."""
    node: str | None
    """Who asked."""


def given(value: Any, serde: Serde | None) -> Given:
    """What a command's `resume` says, ready to be stored.

    Raises:
        InvalidArgument: It cannot be encoded, or is longer than 2 MiB.
    """
    keys = list(value) if isinstance(value, dict) else []
    parts: dict[str, Answer] = {}
    if keys and all(isinstance(key, str) and _AN_ID.fullmatch(key) for key in keys):
        parts = {key: answers.encode(part, serde, where=f"the answer to {key!r}") for key, part in value.items()}
        answers.within_bounds(parts.values())
        return Given(None, parts)
    whole = answers.encode(value, serde)
    answers.within_bounds([whole])
    return Given(whole, dict.fromkeys((key for key in keys if isinstance(key, str)), whole))


def ask_open(thread_id: str) -> Callable[[Tx], frozenset[str]]:
    """The ids of the questions that are open in a thread, ready to be read."""
    return partial(_open, thread_id=thread_id)


def _open(tx: Tx, *, thread_id: str) -> frozenset[str]:
    head = tx.maybe("run_at_head", thread_id=thread_id)
    return frozenset() if head is None else frozenset(row["interrupt_id"] for row in answers.untaken(tx, head["run"]))


def answer(
    tx: Tx,
    said: Given,
    *,
    thread_id: str,
    head: Row | None,
    seen: frozenset[str] | None = None,
    serde: Serde | None,
    now_us: int,
) -> None:
    """Put what a command says on record, before LangGraph reads it.

    Args:
        tx: The transaction in which its invocation begins.
        said: What it says.
        thread_id: Its thread.
        head: The run that it goes on with, if there is one.
        seen: The questions that were open when it came, if it may have waited for its thread: it answers no later one.
        serde: Decodes what was answered before.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        NotFound: It names a question that the thread does not ask (`interrupt_not_found`).
        ConflictError: `answer_conflict`, `answer_ambiguous` or `interrupt_not_pending`.
    """
    named = list(said.parts)
    known = [key for key in named if tx.all("interrupts_with_id", interrupt_id=key, thread_id=thread_id)]
    unknown = [key for key in named if key not in known and _AN_ID.fullmatch(key)]
    if unknown:
        raise answers.not_found(unknown, thread_id)
    is_open = head is not None and not RunStatus(head["status"]).ended
    waiting = answers.untaken(tx, head["run"]) if head is not None and is_open else []
    record = partial(answers.give, tx, thread_id=thread_id, by=None, serde=serde, now_us=now_us)
    if said.whole is None:
        record(said.parts)
        _refuse_if_past(named, waiting)
    elif waiting and seen is not None and not seen.issuperset(row["interrupt_id"] for row in waiting):
        raise _asked_since(waiting, thread_id)
    elif len(waiting) == 1:
        record({waiting[0]["interrupt_id"]: said.whole})
    elif waiting:
        raise _ambiguous(waiting, thread_id)
    elif seen or head is None or RunStatus(head["status"]) not in _MAY_WAIT_UNASKED:
        raise _nothing_asked(tx, head, thread_id)


def refuse_another(tx: Tx, said: Given, *, thread_id: str, root_id: str, serde: Serde | None) -> None:
    """At an older checkpoint, a command goes to LangGraph as it is; but an answer on record to what waits there counts.

    Raises:
        ConflictError: The command says something else (`answer_conflict`).
    """
    for asked in tx.all("interrupts_open_at", thread_id=thread_id, root_id=root_id):
        value = said.parts.get(asked["interrupt_id"], said.whole)
        if asked["answered_us"] is not None and value is not None:
            row = tx.one("interrupts_with_id", interrupt_id=asked["interrupt_id"], thread_id=thread_id)
            answers.is_news(row, value, serde)


def on_record(tx: Tx, run: int) -> list[Stored]:
    """The answers on record that the tasks of a run have not taken, oldest question first."""
    rows = [row for row in answers.untaken(tx, run) if row["answered_us"] is not None]
    return [Stored(asked.row, asked.node) for asked in with_nodes(tx, rows)]


def ask_stored(thread_id: str) -> Callable[[Tx], list[Stored]]:
    """The answers with which the run at the head of a thread can be resumed, ready to be read."""
    return partial(_stored, thread_id=text_or_none(thread_id, "thread_id") or "")


def _stored(tx: Tx, *, thread_id: str) -> list[Stored]:
    """They.

    Raises:
        ConflictError: There are none (`interrupt_not_pending`).
    """
    head = tx.maybe("run_at_head", thread_id=thread_id)
    found = [] if head is None or RunStatus(head["status"]).ended else on_record(tx, head["run"])
    if not found:
        raise ConflictError(
            f"thread {thread_id!r}: no answer is on record that its task has not taken; interrupts(thread_id=…, "
            "pending=True) lists the questions that wait for one: answer them first",
            code="interrupt_not_pending",
            details={"thread_id": thread_id},
        )
    return found


def values_of(found: Sequence[Stored], serde: Serde | None) -> dict[str, Any]:
    """The answers, by the id of their question.

    Raises:
        InvalidArgument: One is no JSON, and there is no serde to decode it with.
    """
    for row, _ in found:
        if row["answer_type"] != "json" and serde is None:
            raise InvalidArgument(
                f"the answer to {row['interrupt_id']!r} is stored as {row['answer_type']!r}, not as JSON; open the "
                "ledger with the serde of its saver"
            )
    return {row["interrupt_id"]: value_of(row["answer_type"], row["answer"], serde) for row, _ in found}


def command_of(found: Sequence[Stored], serde: Serde | None) -> Command[Any]:
    """The command that gives them to the tasks that asked."""
    from langgraph.types import Command  # noqa: PLC0415 - whoever only reads a ledger needs no LangGraph

    return Command(resume=values_of(found, serde))


def _refuse_if_past(named: Sequence[str], waiting: Sequence[Row]) -> None:
    """A map of answers that others took, or will, says nothing to a run that asks something else by now."""
    left = [row["interrupt_id"] for row in waiting]
    if left and not set(named) & set(left):
        raise ConflictError(
            f"interrupt {named[0]!r} is not open: its task has taken its answer, it was superseded, or it is another "
            f"run's. What is open is {', '.join(map(repr, left[:3]))}: answer it by its id",
            code="interrupt_not_pending",
            details={"interrupt_ids": list(named), "open": left},
        )


def _asked_since(waiting: Sequence[Row], thread_id: str) -> ConflictError:
    ids = [row["interrupt_id"] for row in waiting]
    return ConflictError(
        f"thread {thread_id!r}: this answer came before what is open now was asked ({', '.join(map(repr, ids[:3]))}), "
        "and waited for the thread; it is not taken for an answer to that. Look, and answer it by its id",
        code="interrupt_not_pending",
        details={"thread_id": thread_id, "open": ids},
    )


def _ambiguous(waiting: Sequence[Row], thread_id: str) -> ConflictError:
    ids = [row["interrupt_id"] for row in waiting]
    named = ", ".join(map(repr, ids[:3])) + (", …" if len(ids) > 3 else "")
    return ConflictError(
        f"thread {thread_id!r}: {len(ids)} questions are open ({named}); say which one is answered: "
        "Command(resume={interrupt_id: value})",
        code="answer_ambiguous",
        details={"thread_id": thread_id, "interrupt_ids": ids},
    )


def _nothing_asked(tx: Tx, head: Row | None, thread_id: str) -> ConflictError:
    run = "there is no run" if head is None else f"run {head['run_id']!r} is {head['status']}"
    last = None if head is None else tx.maybe("interrupt_answered_last", run=head["run"])
    told = "" if last is None else f" (the last one, {last['interrupt_id']!r}, has its answer, {answers.whose(last)})"
    return ConflictError(
        f"thread {thread_id!r}: {run}, and no question is open{told}; there is nothing to answer",
        code="interrupt_not_pending",
        details={"thread_id": thread_id} | ({} if last is None else {"answered": last["interrupt_id"]}),
    )
