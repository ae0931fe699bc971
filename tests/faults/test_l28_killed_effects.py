"""L28, L30: a process killed at any point around an effect leaves it started, settled, or not begun, and says which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.database import Database, open_database
from langgraph_ext.ledger import effects
from langgraph_ext.ledger.attempts import interrupt_left
from langgraph_ext.ledger.effects import Done, InDoubt, ToCall
from tests.support import attempts
from tests.support.attempts import NOW_US
from tests.support.effects import PAID, STEPS, begin, effects_until_killed, everything, frame, held, told
from tests.support.faults import KINDS, every, run


def opened(path: Path) -> Database:
    """A database with one running attempt, a1."""
    made = open_database(path)
    made.transact(attempts.begin)
    return made


@pytest.fixture
def ends(tmp_path: Path) -> list[Any]:
    """Everything that is stored after none of the steps, after the first, after the second, …"""
    path = tmp_path / "whole.db"
    database = opened(path)
    found = [everything(path)]
    for step in STEPS:
        database.transact(step)
        found.append(everything(path))
    database.close()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_l28_a_process_killed_at_any_point_leaves_whole_transactions(
    tmp_path: Path, ends: list[Any], kind: str
) -> None:
    """SIGKILL before a statement, before a commit, after one: what is stored is what some number of whole transactions
    leave, never a status or a receipt without its event. The next admission forgets none of it."""
    opened(tmp_path / "dry.db").close()
    passed = run(effects_until_killed, str(tmp_path / "dry.db"), kind, 0).value()
    assert len(STEPS) == passed.count("before") == passed.count("after")
    for at in every(passed.count(kind), sample=9):
        path = tmp_path / f"{at}.db"
        opened(path).close()
        assert run(effects_until_killed, str(path), kind, at).killed
        found = everything(path)
        assert found in ends, f"half of a transaction is left at {kind} {at}"
        if kind != "between":
            assert ends.index(found) == (at if kind == "after" else at - 1)
        assert [row for row in held(path) if (row["receipt"] is None) is (row["status"] == "committed")] == []
        go_on(path)


def go_on(path: Path) -> None:
    """Admit the next attempt, which asks for all three effects: none is called that may have happened."""
    before = {row["name"]: row["status"] for row in held(path)}
    database = open_database(path)
    left = database.transact(interrupt_left, "t", epoch=2, now_us=NOW_US)
    database.transact(effects.doubt_left, left, now_us=NOW_US)
    database.transact(attempts.begin, "a2", epoch=2)
    for name in ("charge", "mail", "ship"):
        found = database.transact(begin, f"new {name}", by=frame("a2", epoch=2), name=name)
        assert ANSWERS[before.get(name, "not_happened")] is type(found)
        assert not isinstance(found, InDoubt) or not found.live
        assert not isinstance(found, Done) or found.effect.receipt == PAID
    database.close()
    assert "started" not in {row["status"] for row in held(path) if row["attempt_id"] == "a1"}
    last = {details["effect_id"]: effects.status_after(name, details) for name, details in told(path)}
    assert last == {row["effect_id"]: row["status"] for row in held(path)}


ANSWERS = {"not_happened": ToCall, "started": InDoubt, "unknown": InDoubt, "committed": Done}
