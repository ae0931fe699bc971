"""S7: what was acknowledged survives SIGKILL at any moment, under any load."""

from __future__ import annotations

import random
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.faults import children
from tests.faults.children import WRITERS, noted
from tests.support.faults import Child, full, run

ROUNDS = 60 if full() else 6


def acknowledged(folder: Path) -> int:
    return sum(len(noted(f"{folder}/acks-{writer}")) for writer in range(WRITERS))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_s7_what_was_acknowledged_survives_a_kill_under_load(tmp_path: Path, seed: int) -> None:
    """Four threads and two loops write as fast as they can; the process is killed at some moment. Every put and every
    put_writes that had returned is there, whole, and SQLite finds no fault in the file."""
    writing = Child(children.write_until_killed, str(tmp_path), seed)
    enough = random.Random(seed).randrange(20, 1_500)
    while acknowledged(tmp_path) < enough:
        assert not writing.has_spoken(0.001), "the writers ended by themselves"
    writing.signal(signal.SIGKILL)
    assert writing.wait().killed

    assert {"lost": [], "halves": []} == run(children.read_acknowledged, str(tmp_path)).value()
    connection = sqlite3.connect(tmp_path / "runs.db")
    assert [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
