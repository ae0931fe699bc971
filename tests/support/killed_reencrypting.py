"""What is killed while a database is encrypted, or its key is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph_ext import Encryption, LedgerSaver
from langgraph_ext.database import open_database
from langgraph_ext.saver import reencrypting
from tests.support import killed_retention
from tests.support.build import whole
from tests.support.ciphers import KEYS, NEWER
from tests.support.compare import facts
from tests.support.faults import Points, faulty, kill_myself

__all__ = ["make", "reencrypt", "states"]

NEW = Encryption({"2026": NEWER.keys["2026"]})


def make(folder: str, *, encrypted: bool) -> None:
    """A database with a bit of everything, plain or sealed with the older key."""
    path = Path(folder, "runs.db")
    Path(killed_retention.make(folder)).rename(path)
    if encrypted:
        reencrypting.encrypt_database(path, KEYS)


def reencrypt(folder: str, encrypted: bool, kind: str, at: int) -> list[str]:
    """Seal all of it with the newer key, or be killed at the given point; the points that were passed."""
    reencrypting._ROWS = reencrypting._FEW = 16
    points = Points(kill_myself, kind=kind, at=at)
    connection = faulty(points)

    def watched(url: Any, **more: Any) -> Any:
        return open_database(url, connection=connection, **more)

    reencrypting.open_database = watched  # type: ignore[assignment]
    reencrypting.encrypt_database(Path(folder, "runs.db"), NEWER if encrypted else NEW)
    return points.passed


def states(folder: str, encryption: Encryption | None) -> dict[str, Any]:
    """What every thread holds, and what verify says."""
    with LedgerSaver(Path(folder, "runs.db"), encryption=encryption) as saver:
        assert [] == saver.ledger.verify()
        return {name: [facts(each) for each in saver.list(whole(name))] for name in killed_retention.THREADS} | {
            "questions": [(each.interrupt_id, each.value) for each in saver.ledger.interrupts()]
        }
