"""Interrupts: the questions that tasks ask, recorded with the write that asks them (rule L24).

State machine:

    pending ──▶ answered ──▶ closed    an answer is on record (answers.py); its task has taken it
       │  └─────────────────────▲      its task took one that nobody put on record, or its run went on behind it
       └──────▶ superseded ◀── answered, not taken    its run ended, new input came, or update_state took it away

The first answer counts, whoever gives it. A question is open until it is closed or superseded, and its run
waits as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.records import InterruptStatus
from langgraph_ext.ledger.task_paths import is_within

__all__ = ["Place", "Question", "answer_up_to", "ask", "close_at", "close_of_run", "close_passed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, as its task asks it."""

    interrupt_id: str
    ordinal: int
    """Which question of its task, from 0."""
    kind: str | None
    value_type: str
    """`"json"`, or the serde's tag."""
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The task that asks, and when."""

    run: int
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    root_id: str
    """The root checkpoint that is being executed."""
    around: tuple[tuple[str, str], ...]
    """Namespace and checkpoint of each subgraph that encloses the task, its own included."""
    task_id: str
    task_path: str
    now_us: int


def ask(tx: Tx, place: Place, questions: Iterable[Question]) -> None:
    """Record questions; one that is known adds nothing (a subgraph's is asked again by the graph around it).

    LangGraph names a question by its number in its task. A task that runs again may ask something else under that name:
    as long as nobody has answered, that is what is shown from then on, and an event says so.
    """
    for question in questions:
        what = {"kind": question.kind, "value_type": question.value_type, "value": question.value}
        asked = tx.run(
            "interrupt_insert",
            thread_id=place.thread_id,
            interrupt_id=question.interrupt_id,
            run=place.run,
            checkpoint_ns=place.checkpoint_ns,
            checkpoint_id=place.checkpoint_id,
            root_id=place.root_id,
            task_id=place.task_id,
            task_path=place.task_path,
            ordinal=question.ordinal,
            **what,
            now_us=place.now_us,
        )
        known = {"thread_id": place.thread_id, "interrupt_id": question.interrupt_id}
        otherwise = (
            not asked and _asks_otherwise(tx, known, question) and tx.run("interrupt_ask_otherwise", **known, **what)
        )
        if asked or (otherwise and question.value_type == "json"):  # a serde may encode the same otherwise
            details = {"interrupt_id": question.interrupt_id, "task_id": place.task_id}
            append_event(
                tx,
                name="interrupt.requested",
                run=place.run,
                thread_id=place.thread_id,
                checkpoint_ns=place.checkpoint_ns,
                checkpoint_id=place.checkpoint_id,
                details={**details, "kind": question.kind} if question.kind else details,
                stored_us=place.now_us,
            )


def _asks_otherwise(tx: Tx, known: Mapping[str, object], question: Question) -> bool:
    """Whether a question that is known is not what its task asks now."""
    row = tx.one("interrupt_asked", **known)
    return (row["value_type"], row["value"]) != (question.value_type, question.value)


def answer_up_to(tx: Tx, place: Place, count: int) -> None:
    """A task says that it was given `count` answers: the questions before are answered."""
    where = {"run": place.run, "task_id": place.task_id, "ordinal": count}
    _close(tx, place.thread_id, tx.all("interrupts_of_task", **where), InterruptStatus.ANSWERED, place.now_us)


def close_at(tx: Tx, thread_id: str, root_id: str, status: InterruptStatus, *, now_us: int) -> None:
    """Close the open questions asked while a root checkpoint was executed, in its subgraphs too."""
    _close(tx, thread_id, tx.all("interrupts_open_at", thread_id=thread_id, root_id=root_id), status, now_us)


def close_passed(tx: Tx, place: Place) -> None:
    """A subgraph is at another checkpoint; without an answer, if it was begun anew: what it asked before is void.

    So is what was asked in the subgraphs below its earlier checkpoints: those tasks are no more.
    """
    found = tx.all("interrupts_open_at", thread_id=place.thread_id, root_id=place.root_id)
    passed = [each for each in found if any(_is_before(each, *around) for around in place.around)]
    _close(tx, place.thread_id, passed, InterruptStatus.SUPERSEDED, place.now_us)


def _is_before(question: Row, checkpoint_ns: str, checkpoint_id: str) -> bool:
    """Whether it was asked in a subgraph, or below it, before that was at a checkpoint."""
    return is_within(question["checkpoint_ns"], checkpoint_ns) and question["checkpoint_id"] < checkpoint_id


def close_of_run(tx: Tx, thread_id: str, run: int, status: InterruptStatus, *, now_us: int) -> None:
    """Close the open questions of a run."""
    _close(tx, thread_id, tx.all("interrupts_open", run=run), status, now_us)


def _close(tx: Tx, thread_id: str, questions: Iterable[Row], status: InterruptStatus, now_us: int) -> None:
    for question in questions:
        where = {"thread_id": thread_id, "interrupt_id": question["interrupt_id"]}
        tx.run("interrupt_close", **where, status=status, now_us=now_us)
        is_taken = status is InterruptStatus.ANSWERED and question["answered_us"] is not None
        append_event(
            tx,
            name="interrupt.taken" if is_taken else f"interrupt.{status}",
            run=question["run"],
            thread_id=thread_id,
            checkpoint_ns=question["checkpoint_ns"],
            checkpoint_id=question["checkpoint_id"],
            details={"interrupt_id": question["interrupt_id"]},
            stored_us=now_us,
        )
