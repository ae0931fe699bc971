"""Effects, as a wrapper of nodes would begin and settle them, and what the database holds of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Tx, open_database
from langgraph_ext.ledger import effects
from langgraph_ext.ledger.effect_keys import Key, derived_key
from langgraph_ext.ledger.effect_rows import Held
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.settlement import PartKey
from tests.support.attempts import HERE, NOW_US
from tests.support.faults import Points, faulty, kill_myself

VISIT = PartKey("t", HERE, "task", 0)

PAID = Encoded("json", b'{"paid":7}')


def digest(payload: Any = "payload") -> str:
    """Of what a call is given."""
    return canonical.digest(canonical.encode(payload))


def frame(attempt: str = "a1", *, run: int = 7, epoch: int = 1) -> FrameKey:
    """What the body of an attempt holds."""
    return FrameKey(attempt_id=attempt, run=run, epoch=epoch, node_path="pay", iteration_path=(2, 1))


def begin(
    tx: Tx,
    effect: str = "e1",
    *,
    by: FrameKey | None = None,
    name: str = "charge",
    part: str | None = None,
    **more: Any,
) -> effects.Begun:
    """Begin an effect of the attempt a1, or of another frame; `key` is the caller's own."""
    given = more.pop("key", None)
    key = Key(derived_key("run 7", VISIT, name, part), business=False) if given is None else Key(given, business=True)
    rest = {"payload_digest": digest(), "compensate": None, "now_us": NOW_US, **more}
    return effects.begin(tx, by or frame(), effect_id=effect, name=name, part=part, key=key, **rest)


def begun(tx: Tx, effect: str = "e1", **more: Any) -> Held:
    """An effect that is to be called now."""
    made = begin(tx, effect, **more)
    assert isinstance(made, effects.ToCall)
    return made.effect


def held(path: Path) -> list[dict[str, Any]]:
    """Every effect, by id, as another program sees it."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    found = [dict(row) for row in connection.execute("SELECT * FROM effect ORDER BY effect_id")]
    connection.close()
    return found


def statuses(path: Path) -> list[str]:
    """Where each effect stands, by id."""
    return [row["status"] for row in held(path)]


def told(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Name and details of every event of an effect, oldest first."""
    connection = sqlite3.connect(path)
    found = connection.execute(
        "SELECT event, details FROM checkpoint_log WHERE event LIKE 'effect.%' ORDER BY seq"
    ).fetchall()
    connection.close()
    return [(name, canonical.decode(details)) for name, details in found]


def names(path: Path) -> list[str]:
    """The names of those events."""
    return [name for name, _ in told(path)]


def everything(path: Path) -> list[Any]:
    """All rows that an effect's transaction could touch."""
    connection = sqlite3.connect(path)
    found = [
        connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
        for name in ("effect", "effect_use", "attempt", "checkpoint_log")
    ]
    connection.close()
    return found


# -- in another process


STEPS: list[Callable[[Tx], Any]] = [
    lambda tx: begin(tx, "e1"),
    lambda tx: effects.commit(tx, frame(), "e1", receipt=PAID, now_us=NOW_US),
    lambda tx: begin(tx, "e2", name="mail"),
    lambda tx: effects.doubt(tx, frame(), "e2", now_us=NOW_US),
    lambda tx: effects.again(tx, frame(), "e2", now_us=NOW_US),
    lambda tx: effects.not_happened(tx, frame(), "e2", now_us=NOW_US),
    lambda tx: begin(tx, "e3", name="ship"),
    lambda tx: effects.doubt_left(tx, ["a1"], now_us=NOW_US),
    lambda tx: effects.resolve(tx, "e3", receipt=PAID, now_us=NOW_US),
]
"""Transactions, as a wrapper, an admission and a person make them: an effect that is committed, one that is in doubt,
retried and found not to have happened, one that is left in doubt and resolved."""


def effects_until_killed(path: str, kind: str, at: int) -> list[str]:
    """In another process: every step, or be killed at a point; the points passed if there was none."""
    points = Points(kill_myself, kind=kind, at=at, armed=False)
    database = open_database(path, connection=faulty(points))
    database.open()
    points.arm()
    for step in STEPS:
        database.transact(step)
    database.close()
    return points.passed
