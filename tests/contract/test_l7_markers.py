"""L7: what a marker holds, and how much of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_ext import canonical
from langgraph_ext.database import open_database
from langgraph_ext.ledger.texts import MOST_BYTES
from tests.support.attempts import HERE, NOW_US, begin, end, rows, settle


def test_l7_the_marker_holds_ids_outcome_and_digest_and_the_writes_stand_beside_it(
    tmp_path: Path,
) -> None:
    """As canonical JSON; writes are stored whole, however long."""
    writes = b"x" * 5_000_000
    database = open_database(tmp_path / "runs.db")
    database.transact(begin)
    database.transact(settle, end(writes=writes), now_us=NOW_US)
    database.close()
    [row] = rows(tmp_path / "runs.db")["attempt"]
    ids = {"thread_id": "t", "checkpoint_id": HERE, "task_id": "task", "ordinal": 0, "attempt_id": "a1", "epoch": 1}
    content = {"format": 1, "outcome": "succeeded", "writes": canonical.digest(writes), "error": None, "notes": None}

    assert (canonical.encode(ids | content), writes) == row[13:15]
    assert canonical.digest(row[13]) == row[10]


@pytest.mark.parametrize("part", ["error", "notes"])
@pytest.mark.parametrize("letter", ["x", "é", "€", "🦜"])
def test_l7_a_long_error_is_cut_visibly_and_never_in_a_character(part: str, letter: str) -> None:
    """It keeps its beginning, says how much was cut, and stays within 64 KiB of UTF-8."""
    text = "." + letter * 70_000
    cut = canonical.decode(end(**{part: text}).marker)[part]
    kept = cut.partition("…")[0]

    assert text.startswith(kept)
    assert f"… [{len(text.encode()) - len(kept.encode())} of {len(text.encode())} bytes cut]" == cut[len(kept) :]
    assert MOST_BYTES - 8 <= len(cut.encode()) <= MOST_BYTES


@pytest.mark.parametrize("text", ["", "é" * (MOST_BYTES // 2)])
def test_l7_a_short_error_is_kept_as_it_is(text: str) -> None:
    assert text == canonical.decode(end(error=text).marker)["error"]


def test_l7_half_a_character_in_an_error_is_spelt_out() -> None:
    """File names may hold such; an error about one is no second error."""
    assert r"no file caf\udce9" == canonical.decode(end(error="no file caf\udce9").marker)["error"]
