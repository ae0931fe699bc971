"""S6: the key is changed while savers of other processes write: everything is read afterwards, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_ext import Encryption, LedgerSaver
from langgraph_ext.errors import EncryptionError
from tests.support.ciphers import NEWER, OLDER
from tests.support.driver import Driver
from tests.support.faults import Child, full
from tests.support.sealed import MARK, bytes_of, everything, fill
from tests.support.sealed_beside import expected, held, work

ROUNDS = 30 if full() else 6


@pytest.mark.parametrize("currents", [("2026", "2026"), ("2026", "2025")], ids=["both know it", "one does not"])
def test_s6_who_writes_while_the_key_is_changed_loses_nothing(tmp_path: Path, currents: tuple[str, str]) -> None:
    """If one of them goes on with the older key it may be told; when they have stopped, it is done."""
    path = tmp_path / "runs.db"
    with LedgerSaver(path, encryption=OLDER) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
        before = everything(saver)[:12]
    children = [Child(work, str(path), name, key, ROUNDS) for name, key in zip("ab", currents, strict=True)]
    with LedgerSaver(path, encryption=NEWER) as saver:
        for child in children:
            assert "going" == child.told()
        passes = 0
        told: list[str] = []
        while not all(child.has_spoken(0) for child in children):
            told += reencrypt(saver)
            passes += 1
        for child in children:
            child.wait().value()
        assert passes
        assert set(told) <= ({"key_in_use"} if "2025" in currents else set())
        saver.reencrypt()
    with LedgerSaver(path, encryption=Encryption({"2026": NEWER.keys["2026"]})) as saver:
        for name in "ab":
            assert expected(ROUNDS, name) == held(saver, name)
        assert before == [each for each in everything(saver) if each[0]["configurable"]["thread_id"] in "tu"][:12]
        assert [] == saver.ledger.verify()
        assert MARK.encode() not in bytes_of(path)


def reencrypt(saver: LedgerSaver) -> list[str]:
    """What it is refused with."""
    try:
        saver.reencrypt()
    except EncryptionError as error:
        return [error.code]
    return []
