"""verify(): each thing that should not be so, made so by a bad row; and nothing found where all is sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext.ledger import verify
from tests.support.reader import Reader
from tests.support.rows import PULL, Rows


def sound(rows: Rows) -> None:
    """Runs of every kind, with questions and attempts, all as they should be."""
    ends = {"running": None, "paused": "run.paused", "idle": "run.stopped", "failed": "run.failed"}
    ends |= {"succeeded": "run.succeeded", "cancelled": "run.cancelled"}
    for number, (status, event) in enumerate(ends.items(), start=10):
        rows.begun(number, first=number, status=status)
        if event:
            rows.event(event, number, id=number)
        rows.call(number, f"task {number}", "node", "failed")
        rows.call(number, f"task {number}", "node")
        rows.interrupt(f"old {number}", number, id=number, status="answered")
        rows.attempt(f"attempt {number}", number, task_id=f"task {number}")
        rows.effect(f"effect {number}", number, id=number, attempt_id=f"attempt {number}", task_id=f"task {number}")
        rows.event("effect.started", number, id=number, effect_id=f"effect {number}")
        rows.event("effect.committed", number, id=number, effect_id=f"effect {number}")
    rows.interrupt("open", 11, id=11)
    rows.nested(50, ns="s", root=10, inside="task 10", above=("", 10))
    rows.call(50, "inner", ns="s")
    rows.event("thread.pruned", None)


def test_a_sound_ledger_has_no_findings(rows: Rows, reader: Reader) -> None:
    sound(rows)

    assert [] == reader.verify()
    assert [] == [found for number in range(10, 16) for found in reader.verify(f"run {number}")]


def test_an_empty_ledger_is_sound(reader: Reader) -> None:
    assert [] == reader.verify()


def gone_uncounted(rows: Rows) -> None:
    rows.run(gone_upto=7_000_000)


def left_open(rows: Rows) -> None:
    rows.begun(deleted_thread="old", thread="kept:1")


def two_namespaces(rows: Rows) -> None:
    rows.begun()
    rows.call(1, "task", "node")
    rows.call(1, "task", "node", ns="elsewhere")


def two_paths(rows: Rows) -> None:
    rows.begun()
    rows.call(1, "task", "node")
    rows.call(1, "task", "another")


def no_beginning(rows: Rows) -> None:
    rows.run()
    rows.put(1, run=1)


def two_beginnings(rows: Rows) -> None:
    rows.begun()
    rows.event("run.started")


def two_successes(rows: Rows) -> None:
    rows.begun(status="succeeded")
    rows.event("run.succeeded")
    rows.event("run.succeeded")


def another_status(rows: Rows) -> None:
    rows.begun(status="succeeded")
    rows.event("run.failed")


def never_resumed(rows: Rows) -> None:
    rows.begun()
    rows.event("run.paused")


def open_at_the_end(rows: Rows) -> None:
    rows.begun(status="cancelled")
    rows.event("run.cancelled")
    rows.interrupt("q")


def paused_for_nothing(rows: Rows) -> None:
    rows.begun(status="paused")
    rows.event("run.paused")
    rows.interrupt("q", status="answered")


def another_marker(rows: Rows) -> None:
    rows.begun()
    rows.attempt("a", marker=b'{"outcome":"failed"}')


def another_digest(rows: Rows) -> None:
    rows.begun()
    rows.attempt("a", digest="sha256:" + "0" * 64)


def other_writes(rows: Rows) -> None:
    rows.begun()
    rows.attempt("a")
    rows.connection.execute("UPDATE attempt SET writes = x'ff' WHERE attempt_id = 'a'")


def effect_of_no_attempt(rows: Rows) -> None:
    rows.begun()
    rows.effect("e")
    rows.event("effect.started", effect_id="e")
    rows.event("effect.committed", effect_id="e")


def effect_that_was_not_begun(rows: Rows) -> None:
    rows.begun()
    rows.attempt("a")
    rows.effect("e")


def effect_whose_end_was_not_told(rows: Rows) -> None:
    effect_that_was_not_begun(rows)
    rows.event("effect.started", effect_id="e")


def effect_that_was_resolved_otherwise(rows: Rows) -> None:
    effect_whose_end_was_not_told(rows)
    rows.event("effect.unknown", effect_id="e")
    rows.event("effect.resolved", effect_id="e", outcome="not_happened")


def two_attempts_succeeded(rows: Rows) -> None:
    rows.begun()
    rows.attempt("a")
    rows.attempt("b", number=2)


OF_A_RUN: dict[str, tuple[Callable[[Rows], None], str]] = {
    "a task in two namespaces": (two_namespaces, "task_identity"),
    "a task under two paths": (two_paths, "task_identity"),
    "a run that never began": (no_beginning, "run_not_started"),
    "a run that began twice": (two_beginnings, "run_started_twice"),
    "a run that succeeded twice": (two_successes, "run_succeeded_twice"),
    "a status that the last event contradicts": (another_status, "run_status"),
    "events that are gone, and nobody says how many": (gone_uncounted, "run_events_gone"),
    "an open run whose thread was deleted": (left_open, "run_left"),
    "a run that was paused and is said to run": (never_resumed, "run_status"),
    "a question that is open at the end": (open_at_the_end, "interrupt_open"),
    "a run that waits for nothing": (paused_for_nothing, "interrupt_missing"),
    "a marker that was changed": (another_marker, "attempt_marker"),
    "a digest that was changed": (another_digest, "attempt_marker"),
    "writes that were changed": (other_writes, "attempt_writes"),
    "two successful attempts": (two_attempts_succeeded, "attempt_succeeded_twice"),
    "an effect without its attempt": (effect_of_no_attempt, "effect_attempt"),
    "an effect that was never begun": (effect_that_was_not_begun, "effect_status"),
    "an effect committed without an event": (effect_whose_end_was_not_told, "effect_status"),
    "an effect that was resolved otherwise": (effect_that_was_resolved_otherwise, "effect_status"),
}


@pytest.mark.parametrize("case", OF_A_RUN)
def test_what_is_wrong_with_a_run_is_found(rows: Rows, reader: Reader, case: str) -> None:
    """By looking at everything, and by looking at that run; not by looking at another."""
    spoil, code = OF_A_RUN[case]
    sound(rows)
    spoil(rows)

    assert [(code, "run 1")] == [(found.code, found.run_id) for found in reader.verify()]
    assert reader.verify() == reader.verify("run 1")
    assert [] == reader.verify("run 10")


OF_NO_RUN: dict[str, tuple[Callable[[Rows], Any], str]] = {
    "a checkpoint of no run": (lambda rows: rows.put(1, run=99), "run_missing"),
    "an event of no run": (lambda rows: rows.event("run.started", 99), "run_missing"),
    "a question of no run": (lambda rows: rows.interrupt("q", 99), "interrupt_orphan"),
    "visits of no run": (lambda rows: rows.visit("a", 99), "visit_orphan"),
    "an attempt of no run": (lambda rows: rows.attempt("a", 99), "attempt_orphan"),
    "an effect of no run": (lambda rows: rows.effect("e", 99), "effect_orphan"),
}


@pytest.mark.parametrize("case", OF_NO_RUN)
def test_what_belongs_to_no_run_is_found(rows: Rows, reader: Reader, case: str) -> None:
    spoil, code = OF_NO_RUN[case]
    sound(rows)
    spoil(rows)

    assert [(code, None)] == [(found.code, found.run_id) for found in reader.verify()]


def test_findings_are_found_beyond_the_first_page(rows: Rows, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is read in pages, so that a large file needs little memory."""
    for name in ("_RUNS", "_ROWS", "_BLOBS"):
        monkeypatch.setattr(verify, name, 2)
    sound(rows)
    rows.put(90, run=99, thread="x")
    rows.put(91, run=99, thread="x")
    rows.put(92, run=98, thread="z")
    for name in "abcde":
        rows.interrupt(f"q {name}", 99)
        rows.attempt(f"z {name}", 99, task_id=name)
        rows.effect(f"z {name}", 99)
        rows.visit(name, 90 + ord(name) % 5)
    rows.run(50)
    rows.call(92, "task", "node", thread="z")
    rows.call(92, "task", PULL + "other", thread="z")
    found = [each.code for each in reader.verify()]

    assert 2 == found.count("run_missing")
    assert 5 == found.count("interrupt_orphan")
    assert 5 == found.count("attempt_orphan")
    assert 5 == found.count("effect_orphan")
    assert 5 == found.count("visit_orphan")
    assert 1 == found.count("run_not_started")
    assert 1 == found.count("task_identity")


def test_a_finding_says_what_and_where(rows: Rows, reader: Reader) -> None:
    two_paths(rows)
    [found] = reader.verify()

    for part in ("'task'", "'t'", "node", "another"):
        assert part in found.message
