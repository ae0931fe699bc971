"""S6: a process that is killed while much is said leaves nothing of it in the file, nor in the log beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.faults import KINDS, every, full, run
from tests.support.sealed import MARK
from tests.support.sealed_killed import talk, told


@pytest.mark.parametrize("kind", KINDS)
def test_s6_of_a_killed_run_nothing_can_be_read(tmp_path: Path, kind: str) -> None:
    """One tool's call, an agent, their events in the stream, an approval, and limits that a person raises."""
    dry = tmp_path / "dry"
    dry.mkdir()
    passed, streamed = run(talk, str(dry), kind, 0).value()
    assert {"paying", "looking"} <= {key for mode, part in streamed if mode == "custom" for key in part}
    assert told(str(dry)).count(MARK) > 20
    assert sum("__interrupt__" in part for mode, part in streamed if mode == "updates") >= 3
    count = passed.count(kind) * 3 // 4  # how many commits there are differs by a few, as some go together
    assert count > 20
    for at in every(count, sample=count if full() else 3):
        there = tmp_path / str(at)
        there.mkdir()
        assert run(talk, str(there), kind, at).killed, f"{kind} {at} was not reached"
        found = {each.name: each.read_bytes() for each in there.iterdir()}
        assert "runs.db-wal" in found or at < 10
        for name, data in found.items():
            for said in (MARK.encode(), MARK.encode().hex().encode(), MARK.lower().encode()):
                assert said not in data, f"{kind} {at}: {name}"
        told(str(there))
