"""Leases that attempts take by themselves, in several processes: renewed while a body runs, and no longer."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from langgraph_ext import RunLedger
from langgraph_ext.testing import EffectLog
from tests.support import faults, own_lease
from tests.support.own_lease import TTL_SECONDS


@pytest.fixture
def holder(tmp_path: Path, form: str) -> Iterator[faults.Child]:
    """A process whose body has begun, and waits."""
    child = faults.Child(own_lease.hold, str(tmp_path), form)
    assert child.told() == "begun"
    yield child
    with suppress(ValueError):  # the test has waited for its end
        child.end()


def ends(folder: Path) -> tuple[list[tuple[int, str]], dict[str, int]]:
    """Number and status of each attempt, and what was done outside."""
    with RunLedger(folder / "runs.db") as ledger:
        (run,) = ledger.runs()
        assert [] == ledger.verify()
        found = [(each.number, str(each.status)) for each in ledger.attempts(run.run_id)]
    return found, EffectLog(folder / "effects.log").counts()


def test_l14_a_body_keeps_its_thread_longer_than_one_ttl(tmp_path: Path, form: str, holder: faults.Child) -> None:
    """Its lease is renewed while it runs, from a thread of its own: a blocked event loop does not lose it."""
    until = time.monotonic() + 3 * TTL_SECONDS
    while time.monotonic() < until:
        assert "thread_busy" == faults.run(own_lease.take, str(tmp_path), form).value()
    holder.say("go on")

    assert "done" == holder.wait().value()
    assert ([(1, "succeeded")], {"stale": 1}) == ends(tmp_path)


def test_l14_a_killed_bodys_thread_is_taken_over_at_once(tmp_path: Path, form: str, holder: faults.Child) -> None:
    holder.signal(signal.SIGKILL)
    assert holder.wait().killed

    assert "done" == faults.run(own_lease.take, str(tmp_path), form).value()
    assert ([(1, "interrupted"), (2, "succeeded")], {"fresh": 1}) == ends(tmp_path)


def test_l14_l13_a_stopped_body_is_taken_over_when_its_lease_ends_and_writes_nothing_more(
    tmp_path: Path, form: str, holder: faults.Child
) -> None:
    """Woken up, it neither acts nor stores."""
    holder.signal(signal.SIGSTOP)
    until = time.monotonic() + 20
    while faults.run(own_lease.take, str(tmp_path), form).value() == "thread_busy":
        assert time.monotonic() < until
    holder.signal(signal.SIGCONT)
    holder.say("go on")

    assert holder.wait().value() in ("attempt_mismatch", "lease_lost")
    assert ([(1, "interrupted"), (2, "succeeded")], {"fresh": 1}) == ends(tmp_path)
