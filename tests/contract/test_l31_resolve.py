"""L31: somebody who knows says what an effect in doubt came to, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_ext.database import Database
from langgraph_ext.errors import ConflictError, NotFound
from langgraph_ext.ledger import effects
from langgraph_ext.ledger.effects import Done, ToCall
from langgraph_ext.ledger.encoded import Encoded
from tests.support import attempts
from tests.support.attempts import NOW_US
from tests.support.effects import PAID, begin, begun, everything, frame, held, names, statuses, told

LATER = NOW_US + 1

ANSWERS = [PAID, None]
"""A receipt, or that it did not happen."""


@pytest.fixture
def database(database: Database) -> Database:
    """A database with one running attempt, a1, that has begun the effect e1."""
    database.transact(attempts.begin)
    database.transact(begun)
    return database


def refused(database: Database, path: Path, receipt: Encoded | None) -> str:
    """The code that resolving e1 so is refused with, and nothing is written."""
    before = everything(path)
    with pytest.raises(ConflictError) as found:
        database.transact(effects.resolve, "e1", receipt=receipt, now_us=LATER)
    assert before == everything(path)
    return found.value.code


@pytest.mark.parametrize("receipt", ANSWERS)
def test_l31_an_unknown_effect_is_resolved(database: Database, path: Path, receipt: Encoded | None) -> None:
    """With an event of its own, which says how, and not what the receipt is."""
    database.transact(effects.doubt, frame(), "e1", now_us=NOW_US)
    made = database.transact(effects.resolve, "e1", receipt=receipt, now_us=LATER)
    status = "committed" if receipt else "not_happened"

    assert (status, receipt) == (made.status, made.receipt)
    assert (status, LATER) == tuple(held(path)[0][name] for name in ("status", "ended_us"))
    assert ("effect.resolved", status) == (told(path)[-1][0], told(path)[-1][1]["outcome"])
    assert "paid" not in str(told(path))


@pytest.mark.parametrize("receipt", ANSWERS)
def test_l31_so_is_a_started_one_whose_attempt_is_over(database: Database, path: Path, receipt: Encoded | None) -> None:
    database.transact(attempts.force, "a1", "interrupted")
    database.transact(effects.resolve, "e1", receipt=receipt, now_us=LATER)

    assert ["committed" if receipt else "not_happened"] == statuses(path)


@pytest.mark.parametrize("receipt", ANSWERS)
def test_l31_the_next_attempt_finds_what_was_resolved(database: Database, receipt: Encoded | None) -> None:
    """The receipt, and does not call; or nothing, and begins it."""
    database.transact(attempts.force, "a1", "interrupted")
    database.transact(effects.resolve, "e1", receipt=receipt, now_us=LATER)
    database.transact(attempts.begin, "a2", epoch=2)
    found = database.transact(begin, "e2", by=frame("a2", epoch=2))

    assert isinstance(found, Done if receipt else ToCall)
    assert ("e1" if receipt else "e2", receipt) == (found.effect.effect_id, found.effect.receipt)


@pytest.mark.parametrize("receipt", ANSWERS)
def test_l31_the_same_again_changes_nothing(database: Database, path: Path, receipt: Encoded | None) -> None:
    database.transact(effects.doubt, frame(), "e1", now_us=NOW_US)
    first = database.transact(effects.resolve, "e1", receipt=receipt, now_us=LATER)
    before = everything(path)

    assert first == database.transact(effects.resolve, "e1", receipt=receipt, now_us=LATER + 1)
    assert before == everything(path)


@pytest.mark.parametrize(("first", "second"), [(PAID, Encoded("json", b"8")), (PAID, None), (None, PAID)])
def test_l31_other_content_is_a_conflict(
    database: Database, path: Path, first: Encoded | None, second: Encoded | None
) -> None:
    """The first word counts."""
    database.transact(effects.doubt, frame(), "e1", now_us=NOW_US)
    database.transact(effects.resolve, "e1", receipt=first, now_us=LATER)

    assert "effect_conflict" == refused(database, path, second)


@pytest.mark.parametrize("receipt", ANSWERS)
def test_l31_what_may_still_be_called_cannot_be_resolved(
    database: Database, path: Path, receipt: Encoded | None
) -> None:
    """Started by an attempt that runs, or retried by it: its answer may come."""
    assert "effect_conflict" == refused(database, path, receipt)
    database.transact(effects.doubt, frame(), "e1", now_us=NOW_US)
    database.transact(effects.again, frame(), "e1", now_us=NOW_US)
    assert "effect_conflict" == refused(database, path, receipt)


def test_l31_what_its_call_settled_cannot_be_resolved_otherwise(database: Database, path: Path) -> None:
    database.transact(effects.commit, frame(), "e1", receipt=PAID, now_us=NOW_US)

    assert "effect_conflict" == refused(database, path, None)


def test_l31_a_late_answer_does_not_overwrite_what_was_resolved(database: Database, path: Path) -> None:
    """The call raised, a person said that nothing was done; the attempt's second thoughts are refused."""
    database.transact(effects.doubt, frame(), "e1", now_us=NOW_US)
    database.transact(effects.resolve, "e1", receipt=None, now_us=LATER)
    with pytest.raises(ConflictError, match="effect_conflict"):
        database.transact(effects.commit, frame(), "e1", receipt=PAID, now_us=LATER)

    assert ["effect.started", "effect.unknown", "effect.resolved"] == names(path)


def test_l31_an_effect_that_is_not_there_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound, match="'e9'") as found:
        database.transact(effects.resolve, "e9", receipt=None, now_us=LATER)

    assert "effect_not_found" == found.value.code
