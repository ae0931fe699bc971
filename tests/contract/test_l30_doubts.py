"""L30: a started effect is never forgotten: lost with its process, or raised, it is in doubt until somebody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_ext.database import Database
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import effects
from langgraph_ext.ledger.attempts import interrupt_left
from langgraph_ext.ledger.effects import InDoubt
from langgraph_ext.ledger.frames import FrameKey
from tests.support import attempts
from tests.support.attempts import NOW_US
from tests.support.effects import PAID, VISIT, begin, begun, everything, frame, held, names, statuses, told

LATER = NOW_US + 1


@pytest.fixture
def database(database: Database) -> Database:
    """A database with one running attempt, a1, that has begun the effect e1."""
    database.transact(attempts.begin)
    database.transact(begun)
    return database


def admitted(database: Database, attempt: str = "a2", *, epoch: int = 2) -> FrameKey:
    """What an admission does when the process of the attempt before is gone."""
    left = database.transact(interrupt_left, "t", epoch=epoch, now_us=LATER)
    database.transact(effects.doubt_left, left, now_us=LATER)
    database.transact(attempts.begin, attempt, epoch=epoch)
    return frame(attempt, epoch=epoch)


def ids(found: list[effects.Held]) -> list[str]:
    return [each.effect_id for each in found]


def test_l30_what_a_lost_process_left_started_is_unknown(database: Database, path: Path) -> None:
    """The admission after it says so, once, with an event; other attempts' effects are left alone."""
    database.transact(attempts.begin, "b1", task="other")
    database.transact(begun, "e2", by=frame("b1"), key="other")
    database.transact(attempts.force, "a1", "interrupted")

    assert ["e1"] == ids(database.transact(effects.doubt_left, ["a1"], now_us=LATER))
    assert [] == database.transact(effects.doubt_left, ["a1"], now_us=LATER)
    assert (["unknown", "started"], ["effect.started", "effect.started", "effect.unknown"]) == (
        statuses(path),
        names(path),
    )
    assert "owner_lost" == told(path)[-1][1]["reason"]


def test_l30_what_was_settled_is_not_put_in_doubt(database: Database, path: Path) -> None:
    database.transact(effects.commit, frame(), "e1", receipt=PAID, now_us=NOW_US)
    admitted(database)

    assert ["committed"] == statuses(path)


def test_l30_a_call_that_raises_leaves_it_unknown(database: Database, path: Path) -> None:
    """Whatever it raised: the request may have arrived."""
    for _ in range(2):
        database.transact(effects.doubt, frame(), "e1", now_us=LATER)

    assert (["unknown"], ["effect.started", "effect.unknown"]) == (statuses(path), names(path))
    assert "raised" == told(path)[-1][1]["reason"]


def test_l30_the_next_attempt_is_told_that_it_is_in_doubt(database: Database, path: Path) -> None:
    """Which one, and by whom it was begun; it is not begun again."""
    by = admitted(database)
    found = database.transact(begin, "e2", by=by)

    assert isinstance(found, InDoubt)
    assert ("e1", "unknown", "a1", False) == (
        found.effect.effect_id,
        found.effect.status,
        found.effect.attempt_id,
        found.live,
    )
    assert found == database.transact(begin, "e2", by=by)
    assert 1 == len(held(path))


def test_l30_a_started_effect_of_an_attempt_that_ended_is_in_doubt_as_well(database: Database) -> None:
    """Also where nobody has marked it yet: its body was cancelled in the middle of the call."""
    database.transact(attempts.force, "a1", "cancelled")
    database.transact(attempts.begin, "a2")
    found = database.transact(begin, "e2", by=frame("a2"))

    assert isinstance(found, InDoubt)
    assert ("started", False) == (found.effect.status, found.live)
    assert ["e1"] == ids(database.read(effects.in_doubt, visit=VISIT))


# -- retry: the same key again


def test_l30_a_retry_keeps_the_key_and_is_counted(database: Database, path: Path) -> None:
    """It is the new attempt's, stays unknown until its call answers, and an event says who had called before."""
    before = held(path)[0]
    by = admitted(database)
    taken = database.transact(effects.again, by, "e1", now_us=LATER)
    after = held(path)[0]

    assert ("unknown", 2, True, "a2", 2) == (taken.status, taken.tries, taken.calling, taken.attempt_id, taken.epoch)
    assert (before["key"], before["started_us"]) == (after["key"], after["started_us"])
    assert ("effect.retried", "a2", "a1") == (
        told(path)[-1][0],
        *(told(path)[-1][1][it] for it in ("attempt_id", "before")),
    )
    database.transact(effects.commit, by, "e1", receipt=PAID, now_us=LATER)
    assert ["effect.started", "effect.unknown", "effect.retried", "effect.committed"] == names(path)


def test_l30_the_same_retry_again_is_no_other(database: Database, path: Path) -> None:
    by = admitted(database)
    first = database.transact(effects.again, by, "e1", now_us=LATER)
    before = everything(path)

    assert first == database.transact(effects.again, by, "e1", now_us=LATER + 1)
    assert before == everything(path)


def test_l30_a_started_one_becomes_unknown_before_it_is_retried(database: Database, path: Path) -> None:
    """Every step is on record, also where no admission has made it."""
    database.transact(attempts.force, "a1", "failed")
    database.transact(attempts.begin, "a2")
    database.transact(effects.again, frame("a2"), "e1", now_us=LATER)

    assert ["effect.started", "effect.unknown", "effect.retried"] == names(path)


@pytest.mark.parametrize("retried", [False, True])
def test_l30_a_call_that_may_still_run_is_not_repeated(database: Database, path: Path, retried: bool) -> None:
    """Two runs with one business key, both told to retry: one calls, the other is refused until that one has ended."""
    database.transact(begun, "e2", name="mail", key="mail 7")
    if retried:
        database.transact(effects.doubt, frame(), "e2", now_us=LATER)
        database.transact(effects.again, frame(), "e2", now_us=LATER)
    database.transact(attempts.begin, "b1", thread="u", run=8)
    other = frame("b1", run=8)
    found = database.transact(begin, "e3", by=other, name="mail", key="mail 7")
    before = everything(path)

    assert isinstance(found, InDoubt)
    assert found.live
    for act in (effects.again, effects.not_happened):
        with pytest.raises(ConflictError, match="effect_conflict"):
            database.transact(act, other, "e2", now_us=LATER)
    assert before == everything(path)
    database.transact(attempts.force, "a1", "interrupted")
    assert "b1" == database.transact(effects.again, other, "e2", now_us=LATER).attempt_id


def test_l30_a_retry_that_raises_is_in_doubt_again(database: Database, path: Path) -> None:
    """And one that was lost is, at the next admission: each time with an event."""
    by = admitted(database)
    database.transact(effects.again, by, "e1", now_us=LATER)
    database.transact(effects.doubt, by, "e1", now_us=LATER)
    by = admitted(database, "a3", epoch=3)
    database.transact(effects.again, by, "e1", now_us=LATER)
    admitted(database, "a4", epoch=4)

    assert ["unknown"] == statuses(path)
    assert (3, None) == tuple(held(path)[0][name] for name in ("tries", "calling_us"))
    assert ["started", *["unknown", "retried"] * 2, "unknown"] == [name.removeprefix("effect.") for name in names(path)]


# -- probe


@pytest.mark.parametrize("happened", [True, False])
def test_l30_a_probe_may_settle_it_for_the_attempt_before(database: Database, path: Path, happened: bool) -> None:
    """The effect stays the attempt's that called; the event names the one that found out."""
    by = admitted(database)
    if happened:
        database.transact(effects.commit, by, "e1", receipt=PAID, now_us=LATER)
    else:
        database.transact(effects.not_happened, by, "e1", now_us=LATER)
    status = "committed" if happened else "not_happened"

    assert (status, "a1") == tuple(held(path)[0][name] for name in ("status", "attempt_id"))
    assert (f"effect.{status}", "a2") == (told(path)[-1][0], told(path)[-1][1]["attempt_id"])


# -- who is in doubt


def test_l30_what_is_in_doubt_is_found_by_visit_and_by_run(database: Database) -> None:
    """Not what may still be running, and not what is settled; the oldest first."""
    for number, name in ((2, "mail"), (3, "ship"), (4, "bill")):
        database.transact(begun, f"e{number}", name=name, now_us=NOW_US - number)
    database.transact(effects.doubt, frame(), "e2", now_us=LATER)
    database.transact(effects.commit, frame(), "e3", receipt=PAID, now_us=LATER)

    assert ["e2"] == ids(database.read(effects.in_doubt, visit=VISIT)) == ids(database.read(effects.in_doubt, run=7))
    database.transact(attempts.force, "a1", "interrupted")
    assert ["e4", "e2", "e1"] == ids(database.read(effects.in_doubt, visit=VISIT))
    assert ["e4", "e2", "e1"] == ids(database.read(effects.in_doubt, run=7))
    assert [] == database.read(effects.in_doubt, visit=VISIT._replace(ordinal=1))
    assert [] == database.read(effects.in_doubt, run=8)


def test_l30_in_another_go_at_an_attempt_the_old_call_is_in_doubt(database: Database) -> None:
    """The attempt runs again, under another epoch: nobody waits for what its first process began."""
    database.transact(attempts.settle, attempts.end("paused"), now_us=NOW_US)
    database.transact(attempts.force, "a1", "running", epoch=2)

    assert ["e1"] == ids(database.read(effects.in_doubt, visit=VISIT))


def test_l30_nor_is_it_live_there(database: Database) -> None:
    """The body asks for it in its second go, and may call again."""
    database.transact(attempts.force, "a1", "running", epoch=2)
    found = database.transact(begin, "e2", by=frame(epoch=2))

    assert isinstance(found, InDoubt)
    assert not found.live
    assert 2 == database.transact(effects.again, frame(epoch=2), "e1", now_us=LATER).epoch


def test_l30_another_attempts_call_is_not_put_in_doubt(database: Database, path: Path) -> None:
    """Only who calls can say that its call raised."""
    database.transact(attempts.begin, "b1", task="other")
    before = everything(path)
    with pytest.raises(ConflictError, match="effect_conflict"):
        database.transact(effects.doubt, frame("b1"), "e1", now_us=LATER)

    assert before == everything(path)
