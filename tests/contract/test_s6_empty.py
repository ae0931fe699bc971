"""S6: who has opened an empty file without keys writes nothing more into it when somebody else has encrypted it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.database import LOCKED, open_database, sqlite
from langgraph_ext.errors import EncryptionError, StoreError
from langgraph_ext.saver import encrypt_database
from tests.support.build import cid, config
from tests.support.ciphers import KEYS
from tests.support.driver import Driver
from tests.support.faults import Child
from tests.support.sealed import MARK, bytes_of, everything, fill, write_in_the_plain

Forms = Callable[[Any], Driver]

FROM_OUTSIDE: dict[str, dict[str, Any]] = {
    "without keys": {"encryption": LOCKED},
    "with keys": {"encryption": KEYS, "keys": "either"},
}


@pytest.fixture
def encrypted(path: Path) -> Iterator[Callable[[], LedgerSaver]]:
    """Encrypts the empty file, and writes into it."""
    opened: list[LedgerSaver] = []

    def encrypt() -> LedgerSaver:
        saver = LedgerSaver(path, encryption=KEYS)
        opened.append(saver)
        fill(Driver(saver, "sync", None), ("sealed",))  # type: ignore[arg-type]
        return saver

    yield encrypt
    for saver in opened:
        saver.close()


def test_s6_who_was_there_before_the_keys_is_refused(
    path: Path, forms: Forms, encrypted: Callable[[], LedgerSaver]
) -> None:
    """By every way to write, and to read; nothing of it is stored."""
    with LedgerSaver(path) as plain:
        driver = forms(plain)
        assert driver.get_tuple(config("t")) is None
        sealed = encrypted()
        before = everything(sealed)
        for attempt in (
            lambda: driver.save(cid(0), {"a": MARK}, {"a": 1}),
            lambda: driver.put_writes(config("sealed", "", cid(2)), [("a", MARK)], "task"),
            lambda: driver.call("delete_thread", "sealed"),
            lambda: driver.get_tuple(config("sealed")),
            lambda: driver.list(None),
            plain.ledger.runs,
            lambda: plain.database.transact(lambda tx: None),
        ):
            with pytest.raises(EncryptionError, match=r"has been encrypted since.*'2025'.*open it anew") as refused:
                attempt()
            assert "encrypted" == refused.value.code
        assert before == everything(sealed)
        assert MARK.encode() not in bytes_of(path)


def test_s6_so_is_another_process(path: Path, encrypted: Callable[[], LedgerSaver]) -> None:
    child = Child(write_in_the_plain, str(path))
    assert "open" == child.told()
    sealed = encrypted()
    before = everything(sealed)
    child.say("go on")
    assert "encrypted" == child.wait().value()
    assert before == everything(sealed)
    assert MARK.encode() not in bytes_of(path)


@pytest.mark.parametrize("how", FROM_OUTSIDE)
def test_s6_so_is_who_looks_in_from_outside(path: Path, how: str, encrypted: Callable[[], LedgerSaver]) -> None:
    """He took it for a plain one."""
    with closing(open_database(path, **FROM_OUTSIDE[how])) as database:
        ledger = RunLedger(database)
        assert [] == ledger.runs()
        encrypted()
        with pytest.raises(EncryptionError, match="open it anew"):
            ledger.runs()


def test_s6_who_writes_first_has_it(path: Path, forms: Forms, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are refused then, also when all that was written has been deleted; and nobody looks for them any more."""
    looks: list[bool] = []
    real = sqlite.is_plain_for_good
    monkeypatch.setattr(sqlite, "is_plain_for_good", lambda tx, path: (looks.append(real(tx, path)), looks[-1])[1])
    with LedgerSaver(path) as plain:
        driver = forms(plain)
        fill(driver)
        assert [False, False, True] == looks  # when it was opened, by the first group, and by the second one
        with LedgerSaver(path, encryption=KEYS) as saver, pytest.raises(EncryptionError, match="is not encrypted"):
            saver.setup()
        with pytest.raises(StoreError, match="store_busy"):
            encrypt_database(path, KEYS)
        looks.clear()
        for thread in ("t", "u"):
            driver.call("delete_thread", thread)
        driver.call("sweep", events_older_than_seconds=0)
        with LedgerSaver(path, encryption=KEYS) as saver, pytest.raises(EncryptionError, match="is not encrypted"):
            saver.setup()
        fill(driver, ("v",))
        before = everything(plain)
        assert [] == looks
    with LedgerSaver(path) as plain:
        assert before == everything(plain)
    assert [True] == looks


def test_s6_nobody_else_can_encrypt_a_database_in_memory(forms: Forms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "is_plain_for_good", None)
    with LedgerSaver(":memory:") as saver:
        fill(forms(saver))
        assert everything(saver)
