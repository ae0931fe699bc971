"""Processes that are killed inside a durable body, and what the next one makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_ext import RunLedger
from tests.support import faults, killed_parts
from tests.support.killed_durable import authorize, ran, run


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_l19_l23_a_killed_attempt_is_given_up_and_followed_by_the_next(
    tmp_path: Path, form: str, durability: str
) -> None:
    """Of the same visit: admission had waited until the checkpoint was stored, so the task keeps its identity."""
    folder = str(tmp_path)
    assert faults.run(run, folder, form, durability, "none", False).killed
    code, attempts = faults.run(run, folder, form, durability, "none", True).value()

    assert ("done", ["a", "b", "b", "c"]) == (code, [name.partition(":")[0] for name in ran(folder)])
    assert [("a", 1, "succeeded"), ("b", 1, "interrupted"), ("b", 2, "succeeded"), ("c", 1, "succeeded")] == attempts
    assert 1 == len({name for name in ran(folder) if name.startswith("b:")})


@pytest.mark.parametrize("form", ["sync", "async"])
def test_l20_an_opaque_body_that_was_killed_stops_the_run_until_somebody_authorizes_it(
    tmp_path: Path, form: str
) -> None:
    """Refused as often as it is tried; the attempt is on record as interrupted; authorized, it runs once more."""
    folder = str(tmp_path)
    assert faults.run(run, folder, form, "sync", "opaque", False).killed
    for _ in range(2):
        code, attempts = faults.run(run, folder, form, "sync", "opaque", True).value()
        assert ("recovery_required", [("a", 1, "succeeded"), ("b", 1, "interrupted")]) == (code, attempts)
    authorize(folder)
    code, attempts = faults.run(run, folder, form, "sync", "opaque", True).value()

    assert ("done", ["a", "b", "b", "c"]) == (code, [name.partition(":")[0] for name in ran(folder)])
    assert ("b", 2, "succeeded") in attempts


@pytest.mark.parametrize("attached", [True, False])
def test_l31_what_a_killed_process_left_is_in_doubt_at_once_and_may_be_resolved(tmp_path: Path, attached: bool) -> None:
    """Nobody has to invoke first: its owner is known to be gone. The next attempt is given what was found out."""
    folder = str(tmp_path)
    assert faults.run(run, folder, "sync", "sync", "write", False, attached).killed
    with RunLedger(tmp_path / "runs.db") as ledger:
        (effect,) = ledger.effects()
        resolved = ledger.resolve_effect(effect.effect_id, receipt="found")
        attempts = [(each.node, str(each.status)) for each in ledger.attempts(effect.run_id)]
        assert [] == ledger.verify()

    assert (True, "started") == (effect.in_doubt, effect.status)
    assert (False, "committed") == (resolved.in_doubt, resolved.status)
    assert [("a", "succeeded"), ("b", "interrupted")] == attempts
    code, _ = faults.run(run, folder, "sync", "sync", "write", True, attached).value()
    assert ("done", 1) == (code, ran(folder).count("paid"))


def test_l20_authorized_the_next_attempt_calls_what_is_in_doubt_once_more(tmp_path: Path) -> None:
    """With the same key; and nobody else does."""
    folder = str(tmp_path)
    assert faults.run(run, folder, "sync", "sync", "write", False).killed
    assert "recovery_required" == faults.run(run, folder, "sync", "sync", "write", True).value()[0]
    authorize(folder)
    code, _ = faults.run(run, folder, "sync", "sync", "write", True).value()

    assert ("done", 2) == (code, ran(folder).count("paid"))
    with RunLedger(tmp_path / "runs.db") as ledger:
        (effect,) = ledger.effects()
    assert ("committed", 2) == (effect.status, effect.tries)


@pytest.mark.parametrize("attached", [True, False])
def test_l18_a_run_whose_process_was_killed_is_cancelled_at_once(tmp_path: Path, attached: bool) -> None:
    """Its attempt is interrupted, its effect in doubt; nobody goes on with it."""
    folder = str(tmp_path)
    assert faults.run(run, folder, "sync", "sync", "write", False, attached).killed
    with RunLedger(tmp_path / "runs.db") as ledger:
        run_id = ledger.runs()[0].run_id
        cancelled = ledger.cancel(run_id)
        (effect,) = ledger.effects()

    assert ("cancelled", "unknown") == (cancelled.status, effect.status)
    code, _ = faults.run(run, folder, "sync", "sync", "write", True, attached).value()
    assert ("cancelled", 1) == (code, ran(folder).count("paid"))


@pytest.mark.parametrize("form", ["sync", "async"])
def test_l29_after_a_crash_no_tool_call_is_given_what_its_neighbour_did(tmp_path: Path, form: str) -> None:
    """One had paid when the process died; in the next it comes last. Each pays once, and is told of its own payment."""
    folder = str(tmp_path)
    assert faults.run(killed_parts.run, folder, form, "a", False).killed
    told, paid = faults.run(killed_parts.run, folder, form, "b", True).value()

    assert {"call a": "paid a", "call b": "paid b"} == told
    assert ["a", "b"] == paid
