"""Listings of attempts, and what a person says of one that was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger import admission, attempts
from langgraph_ext.ledger.attempts import Attempt
from langgraph_ext.ledger.records import AttemptRecord
from langgraph_ext.ledger.rows import moment, run_named, text_or_none
from langgraph_ext.ledger.visit_rows import iteration_of, numbered_in

__all__ = ["ask_attempts", "ask_to_authorize"]


def ask_attempts(run_id: str) -> Callable[[Tx], list[AttemptRecord]]:
    """The attempts of a run, in the order in which they started, ready to be read."""
    return partial(_attempts, run_id=text_or_none(run_id, "run_id") or "")


def ask_to_authorize(attempt_id: str, now_us: int) -> Callable[[Tx], bool]:
    """Let the next attempt of a visit act, ready to be committed."""
    return partial(admission.authorize, attempt_id=text_or_none(attempt_id, "attempt_id") or "", now_us=now_us)


def _attempts(tx: Tx, *, run_id: str) -> list[AttemptRecord]:
    run = run_named(tx, run_id)
    stands = numbered_in(tx, run["run"])
    return [
        _record(run["run_id"], attempt, stands.get((attempt.checkpoint_id, attempt.task_id)))
        for attempt in attempts.of_run(tx, run["run"])
    ]


def _record(run_id: str, attempt: Attempt, stands: Row | None) -> AttemptRecord:
    return AttemptRecord(
        attempt_id=attempt.attempt_id,
        run_id=run_id,
        thread_id=attempt.thread_id,
        checkpoint_id=attempt.checkpoint_id,
        task_id=attempt.task_id,
        node=attempt.node,
        node_path=attempt.node if stands is None else stands["node_path"],
        iteration_path=() if stands is None else iteration_of(stands["iteration_path"]),
        kind=attempt.kind,
        effect=attempt.effect,
        number=attempt.number,
        status=attempt.status,
        epoch=attempt.epoch,
        started_at=moment(attempt.started_us),
        ended_at=None if attempt.ended_us is None else moment(attempt.ended_us),
        authorized_at=None if attempt.authorized_us is None else moment(attempt.authorized_us),
    )
