"""L29: the key of an effect: another visit is another key; what the caller names is done once, wherever it is asked."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext.database import Database
from langgraph_ext.errors import ConflictError, InvalidArgument
from langgraph_ext.ledger import effects
from langgraph_ext.ledger.effect_keys import Key, base_key, derived_key, key_for
from langgraph_ext.ledger.effects import Done, InDoubt, ToCall
from langgraph_ext.ledger.settlement import PartKey
from tests.support import attempts
from tests.support.attempts import NOW_US
from tests.support.effects import PAID, begin, begun, digest, everything, frame, held

VISIT = PartKey("t", "1f0", "task", 0)


@pytest.fixture
def database(database: Database) -> Database:
    """A database with two running attempts: a1 of run 7, and a2 of another thread and run."""
    database.transact(attempts.begin)
    database.transact(attempts.begin, "a2", thread="u", run=8)
    return database


def test_l29_a_derived_key_is_the_digest_of_run_visit_name_and_part() -> None:
    """Canonical JSON, spelt out here once: what was stored by one version is found by the next."""
    text = b'["run 7",["t","1f0","task",0],"charge",null]'

    assert "sha256:" + hashlib.sha256(text).hexdigest() == derived_key("run 7", VISIT, "charge", None)


OTHERS: dict[str, tuple[Any, ...]] = {
    "another run": ("run 8", VISIT, "charge", None),
    "another checkpoint: another round of a loop": ("run 7", VISIT._replace(checkpoint_id="1f1"), "charge", None),
    "another task: another Send": ("run 7", VISIT._replace(task_id="other"), "charge", None),
    "another thread": ("run 7", VISIT._replace(thread_id="u"), "charge", None),
    "another part of the task": ("run 7", VISIT._replace(ordinal=1), "charge", None),
    "another name": ("run 7", VISIT, "refund", None),
    "another part of the name": ("run 7", VISIT, "charge", "1"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_l29_another_visit_name_or_part_is_another_key(other: str) -> None:
    assert derived_key("run 7", VISIT, "charge", None) != derived_key(*OTHERS[other])


def test_l29_a_base_key_acts_once_a_round() -> None:
    """It is combined with the iteration path, and with name and part; the run and the visit are not in it."""
    keys = {base_key("order 7", (1,), "charge", None), base_key("order 7", (2,), "charge", None)}
    keys |= {base_key("order 7", (1, 1), "charge", None), base_key("order 8", (1,), "charge", None)}
    keys |= {base_key("order 7", (1,), "ship", None), base_key("order 7", (1,), "charge", "1")}
    text = b'["order 7",[2,1],"charge",null]'

    assert 6 == len(keys)
    assert "sha256:" + hashlib.sha256(text).hexdigest() == base_key("order 7", (2, 1), "charge", None)


def test_l29_a_callers_own_key_is_taken_as_it_is() -> None:
    asked: Any = ("run 7", VISIT, "charge", None)

    assert Key("order 7", business=True) == key_for(*asked, iteration_path=(1,), key="order 7")
    assert Key(base_key("order 7", (1,), "charge", None), business=True) == key_for(
        *asked, iteration_path=(1,), base="order 7"
    )
    assert Key(derived_key(*asked), business=False) == key_for(*asked, iteration_path=(1,))


@pytest.mark.parametrize(
    ("name", "part", "given"),
    [
        ("charge", None, {"key": "k", "base": "b"}),
        ("charge", None, {"key": ""}),
        ("charge", None, {"base": 7}),
        ("", None, {}),
        (None, None, {}),
        ("charge", "", {}),
        ("charge", "\ud800", {}),
    ],
)
def test_l29_what_names_no_action_is_refused(name: Any, part: Any, given: Any) -> None:
    with pytest.raises(InvalidArgument):
        key_for("run 7", VISIT, name, part, iteration_path=(1,), **given)


def test_l29_the_same_business_key_from_another_run_gets_the_first_receipt(database: Database, path: Path) -> None:
    """Unique over the ledger: the second run does not call."""
    database.transact(begun, key="order 7")
    database.transact(effects.commit, frame(), "e1", receipt=PAID, now_us=NOW_US)
    found = database.transact(begin, "e2", by=frame("a2", run=8), key="order 7")

    assert isinstance(found, Done)
    assert ("e1", PAID) == (found.effect.effect_id, found.effect.receipt)
    assert [("e1", 1)] == [(row["effect_id"], row["business"]) for row in held(path)]


def test_l29_two_runs_at_once_with_one_key_call_once(database: Database) -> None:
    """The second one is told that the first may still be calling: there is nothing to do but wait."""
    database.transact(begun, key="order 7")
    found = database.transact(begin, "e2", by=frame("a2", run=8), key="order 7")

    assert isinstance(found, InDoubt)
    assert ("e1", "a1", True) == (found.effect.effect_id, found.effect.attempt_id, found.live)


@pytest.mark.parametrize("other", [{"payload_digest": digest("another")}, {"name": "refund"}])
@pytest.mark.parametrize("run", [7, 8])
def test_l29_the_same_key_for_something_else_is_a_conflict(
    database: Database, path: Path, other: dict[str, Any], run: int
) -> None:
    """A key names one action. Nobody is given the receipt of another one, and nothing is written."""
    database.transact(begun, key="order 7")
    before = everything(path)
    by = frame("a1" if run == 7 else "a2", run=run)
    with pytest.raises(ConflictError) as found:
        database.transact(begin, "e2", by=by, key="order 7", part="2", **other)

    assert ("idempotency_conflict", "e1") == (found.value.code, found.value.details["effect_id"])
    assert before == everything(path)
    assert "order 7" not in str(found.value)


def test_l29_another_payload_in_the_next_attempt_is_a_conflict(database: Database) -> None:
    """A body that asks for something else on replay is not answered with what it asked for first."""
    database.transact(begun)
    database.transact(effects.commit, frame(), "e1", receipt=PAID, now_us=NOW_US)
    database.transact(attempts.force, "a1", "interrupted")
    database.transact(attempts.begin, "a3", epoch=2)
    with pytest.raises(ConflictError, match="idempotency_conflict"):
        database.transact(begin, "e2", by=frame("a3", epoch=2), payload_digest=digest("another"))


def test_l29_a_key_whose_effect_did_not_happen_is_free(database: Database, path: Path) -> None:
    """It begins anew as another effect, in any run; what was tried first stays on record."""
    database.transact(begun, key="order 7")
    database.transact(effects.not_happened, frame(), "e1", now_us=NOW_US)
    found = database.transact(begin, "e2", by=frame("a2", run=8), key="order 7", payload_digest=digest("another"))

    assert isinstance(found, ToCall)
    assert [("e1", "not_happened", 7), ("e2", "started", 8)] == [
        (row["effect_id"], row["status"], row["run"]) for row in held(path)
    ]
