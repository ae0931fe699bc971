"""S6: keys: which ones open a database, how they are changed, and how a plain one is encrypted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import Encryption, LedgerSaver, RunLedger
from langgraph_ext.database import LOCKED, open_database
from langgraph_ext.errors import EncryptionError, InvalidArgument, StoreError
from langgraph_ext.saver import encrypt_database
from tests.support.apps import CONFIG, asks, line
from tests.support.build import cid, config
from tests.support.ciphers import CONVENTIONS, KEYS, NEWER, OLDER, Box
from tests.support.driver import Driver
from tests.support.sealed import MARK, bytes_of, everything, fill, letters

Forms = Callable[[Any], Driver]


@pytest.fixture(params=CONVENTIONS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Each way of saying that a saver encrypts."""
    return CONVENTIONS[request.param]


# -- which ones open it


def test_s6_an_encrypted_database_is_refused_without_keys(path: Path, options: dict[str, Any]) -> None:
    """By the saver, the ledger and the engine's door; and a plain one is refused with keys."""
    with LedgerSaver(path, **options) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
    for opened in (LedgerSaver(path), RunLedger(path)):
        with opened, pytest.raises(EncryptionError, match="is encrypted") as refused:
            opened.database.read(lambda tx: None)
        assert "encrypted" == refused.value.code
    plain = path.with_name("plain.db")
    with LedgerSaver(plain) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
    with LedgerSaver(plain, **options) as saver, pytest.raises(EncryptionError, match="reencrypt") as refused:
        saver.get_tuple(config("t"))
    assert "not_encrypted" == refused.value.code
    assert MARK.encode() in bytes_of(plain)


def test_s6_another_key_of_the_same_name_is_refused_before_anything_is_written(path: Path) -> None:
    with LedgerSaver(path, encryption=KEYS) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
    before = path.read_bytes()
    wrong = [
        ({"2025": b"x" * 32}, "another key '2025'", "key_wrong"),
        ({"1": b"x" * 32}, "none of these", "key_missing"),
    ]
    for keys, says, code in wrong:
        saver = LedgerSaver(path, encryption=Encryption(keys))
        with saver, pytest.raises(EncryptionError, match=says) as refused:
            saver.setup()
        assert code == refused.value.code
    with LedgerSaver(path, encryption=Box()) as saver, pytest.raises(EncryptionError, match="key_missing"):
        saver.setup()
    assert before == path.read_bytes()


def test_s6_old_keys_read_and_the_current_one_writes(path: Path, forms: Forms) -> None:
    """A value that only a key opens that is not given is refused by name; all others are read."""
    with LedgerSaver(path, encryption=KEYS) as saver:
        fill(forms(saver), ("t",))
    with LedgerSaver(path, encryption=NEWER) as saver:
        fill(forms(saver), ("u",))
        assert 12 == len(forms(saver).list(None))
    only_new = Encryption({"2026": NEWER.keys["2026"]})
    with LedgerSaver(path, encryption=only_new) as saver:
        driver = forms(saver)
        assert driver.get_tuple(config("u")) is not None
        with pytest.raises(EncryptionError) as refused:
            driver.get_tuple(config("t"))
    assert ("key_missing", "t") == (refused.value.code, refused.value.details["thread_id"])


def test_s6_reencrypt_walks_the_rest_and_the_old_key_may_go(path: Path, options: dict[str, Any], forms: Forms) -> None:
    """From any cipher to any key; all reads as before, and so it does when it has grown."""
    with LedgerSaver(path, **options) as saver:
        fill(forms(saver))
        before = everything(saver)
    cipher = options.get("encryption") or options["serde"].cipher
    both = NEWER if cipher is KEYS else Encryption({"2026": NEWER.keys["2026"]}, formerly=cipher)
    told: list[int] = []
    with LedgerSaver(path, encryption=both) as saver:
        driver = forms(saver)
        first = driver.call("reencrypt", on_progress=told.append)
        again = driver.call("reencrypt")
        assert first.changed > 30
        assert (0, first.rows // 2) == (again.changed, again.rows)
        assert told == sorted(told)
        assert told[-1] == first.rows
        assert before == everything(saver)
    with LedgerSaver(path, encryption=Encryption({"2026": NEWER.keys["2026"]})) as saver:
        assert before == everything(saver)
        forms(saver).save(cid(3), {"long": letters(60)}, {"long": 9}, parent=cid(2))
        assert {"long": letters(60)} == saver.get_tuple(config("t")).checkpoint["channel_values"]  # type: ignore[union-attr]


def test_s6_a_plain_database_is_encrypted_and_nothing_plain_is_left(path: Path, options: dict[str, Any]) -> None:
    """Not in the file, nor in its log; while that goes on, nobody else opens it."""
    cipher = options.get("encryption") or options["serde"].cipher
    with LedgerSaver(path) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
        before = everything(saver)
        fill(Driver(saver, "sync", None), ("gone",), steps=30)  # type: ignore[arg-type]
        saver.delete_thread("gone")  # its pages are free, and hold what they held
    assert MARK.encode() in bytes_of(path)
    half = open_database(path, encryption=cipher, keys="converts")
    half.open()
    half.close()
    with LedgerSaver(path, encryption=cipher) as saver, pytest.raises(EncryptionError) as refused:
        saver.setup()
    assert "reencrypt_unfinished" == refused.value.code
    with LedgerSaver(path) as saver, pytest.raises(EncryptionError, match="encrypted"):
        saver.setup()

    done = encrypt_database(path, cipher)

    assert done.changed > 30
    assert MARK.encode() not in bytes_of(path)
    with LedgerSaver(path, encryption=cipher) as saver:
        assert before == everything(saver)
        assert [] == saver.ledger.verify()
    assert 0 == encrypt_database(path, cipher).changed


def test_s6_nothing_plain_is_left_of_a_short_edit(path: Path, options: dict[str, Any], forms: Forms) -> None:
    """A plain database keeps a few bytes of it beside the rest."""
    cipher = options.get("encryption") or options["serde"].cipher
    held = [f"{n} " * 40 for n in range(200)]
    with LedgerSaver(path) as saver:
        driver = forms(saver)
        driver.save(cid(0), {"long": held}, {"long": 1})
        held[100] = held[100][:20] + MARK + held[100][20:]
        driver.save(cid(1), {"long": held}, {"long": 2}, parent=cid(0))
        driver.save(cid(2), {"long": held}, {"long": 2}, parent=cid(1), new={})
        driver.put_writes(config("t", "", cid(2)), [("long", [*held[:50], MARK, *held[50:]])], "task")
        before = everything(saver)
        assert MARK.encode().hex().encode() in bytes_of(path)
    encrypt_database(path, cipher)
    assert MARK.encode() not in bytes_of(path)
    assert MARK.encode().hex().encode() not in bytes_of(path)
    with LedgerSaver(path, **options) as saver:
        assert before == everything(saver)
        forms(saver).save(cid(3), {"long": [*held, "more"]}, {"long": 3}, parent=cid(2))
        saver.prune(["t"])
        assert [*held, "more"] == saver.get_tuple(config("t")).checkpoint["channel_values"]["long"]  # type: ignore[union-attr]


def test_s6_a_database_that_somebody_has_open_is_not_encrypted(path: Path, forms: Forms) -> None:
    """He would go on writing in the plain; and while somebody reads, the log keeps what is plain."""
    with LedgerSaver(path) as saver:
        fill(forms(saver))
        before = everything(saver)
        with pytest.raises(StoreError) as refused:
            encrypt_database(path, KEYS)
        assert "store_busy" == refused.value.code
        assert before == everything(saver)
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM checkpoint_log").fetchone()[0]
        with pytest.raises(StoreError):
            encrypt_database(path, KEYS)
    with LedgerSaver(path) as saver:
        assert before == everything(saver)
    assert encrypt_database(path, KEYS).changed


def test_s6_what_is_plain_may_begin_as_if_it_were_sealed(path: Path) -> None:
    """Such as the id of a person, which is base64 by chance."""
    person = "5a" * 16
    with LedgerSaver(path) as saver:
        app = line(saver, asks=asks("well?"))
        app.invoke({"log": []}, CONFIG)
        (question,) = saver.ledger.interrupts(pending=True)
        saver.ledger.answer({question.interrupt_id: "yes"}, by=person)
    assert encrypt_database(path, KEYS).changed
    with RunLedger(path, encryption=KEYS) as ledger:
        assert [person] == [each.answered_by for each in ledger.interrupts()]


def test_s6_who_goes_on_with_encrypting_needs_all_of_its_keys(path: Path) -> None:
    """By them it is known what is still plain."""
    with LedgerSaver(path) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
    for keys in (KEYS, NEWER):
        half = open_database(path, encryption=keys, keys="converts")
        half.open()
        half.close()
    with pytest.raises(EncryptionError, match="not all of these") as refused:
        encrypt_database(path, KEYS)
    assert "key_missing" == refused.value.code
    assert encrypt_database(path, NEWER).changed


def test_s6_who_has_no_key_may_look_and_changes_nothing(path: Path) -> None:
    """Ids, states and counts; payloads are said to be encrypted."""
    with LedgerSaver(path, encryption=KEYS) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
    with RunLedger(path, encryption=LOCKED) as ledger:
        assert [] == ledger.runs(status="failed")
        with pytest.raises(EncryptionError, match="only be looked at") as refused:
            ledger.database.transact(lambda tx: None)
    assert "encrypted" == refused.value.code


def test_s6_a_saver_needs_keys(path: Path) -> None:
    """Without, it would take what it cannot open for what is broken."""
    with pytest.raises(InvalidArgument, match="LOCKED"):
        LedgerSaver(path, encryption=LOCKED)  # type: ignore[arg-type]
    assert not path.exists()


def test_s6_one_of_the_ways_to_say_it_is_enough(path: Path) -> None:
    with pytest.raises(InvalidArgument, match="one of the two"):
        LedgerSaver(path, encryption=KEYS, serde=CONVENTIONS["langgraph"]["serde"])
    for wrong in ("key", 7, b"k" * 32, Box):
        with pytest.raises(InvalidArgument, match="Encryption"):
            LedgerSaver(path, encryption=wrong)  # type: ignore[arg-type]
    database = open_database(path)
    with pytest.raises(InvalidArgument, match="open_database"):
        LedgerSaver(database, encryption=KEYS)
    assert not path.exists()


# -- changing them

NEWEST = Encryption({**NEWER.keys, "2027": b"7" * 32}, "2027")


def marked(path: Path) -> list[str]:
    """The keys that a database names, the newest last."""
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM encryption_key ORDER BY added_us, name")]


def test_s6_reencrypt_ends_when_others_go_on_with_an_older_key(path: Path, forms: Forms) -> None:
    """It says who has to be told; what it has sealed stays, and when they have been told it is done."""
    with LedgerSaver(path, encryption=OLDER) as old, LedgerSaver(path, encryption=NEWER) as new:
        fill(Driver(old, "sync", None))  # type: ignore[arg-type]
        written: list[int] = []

        def go_on(seen: int) -> None:
            written.append(seen)
            old.put_writes(config("t", "", cid(2)), [("a", f"{MARK} {seen}")], f"task {len(written)}")

        with pytest.raises(EncryptionError, match=r"with '2026', and others .* \('2025'\); make") as told:
            forms(new).call("reencrypt", on_progress=go_on)
        assert "key_in_use" == told.value.code
        assert {"current": "2026", "keys": ["2025"], "changed": told.value.details["changed"]} == told.value.details
        assert told.value.details["changed"] > 30  # type: ignore[operator]
        assert ["2025", "2026"] == marked(path)
        before = everything(old)
        assert 0 == forms(new).call("reencrypt").changed  # also what came last had been found
        assert ["2026"] == marked(path)
        assert before == everything(new)


@pytest.mark.parametrize("at", [1, -1], ids=["at its beginning", "at its end"])
def test_s6_reencrypt_finds_what_came_while_there_was_nothing_to_do(path: Path, forms: Forms, at: int) -> None:
    """Its older key may be thrown away afterwards."""
    with LedgerSaver(path, encryption=OLDER) as old, LedgerSaver(path, encryption=NEWER) as new:
        fill(Driver(old, "sync", None))  # type: ignore[arg-type]
        forms(new).call("reencrypt")
        looks: list[int] = []
        forms(new).call("reencrypt", on_progress=looks.append)
        wanted = range(1, len(looks) + 1)[at]
        looks.clear()

        def once(seen: int) -> None:
            looks.append(seen)
            if len(looks) == wanted:
                old.put_writes(config("t", "", cid(2)), [("a", MARK)], "late")

        assert forms(new).call("reencrypt", on_progress=once).changed
        assert ["2026"] == marked(path)
        before = everything(new)
    with LedgerSaver(path, encryption=Encryption({"2026": NEWER.keys["2026"]})) as saver:
        assert before == everything(saver)


def test_s6_two_that_seal_anew_with_different_keys_end(path: Path) -> None:
    """Whoever is last has it."""
    with LedgerSaver(path, encryption=OLDER) as one, LedgerSaver(path, encryption=NEWER) as other:
        fill(Driver(one, "sync", None))  # type: ignore[arg-type]
        before = everything(one)
        with pytest.raises(EncryptionError, match="key_in_use"):
            one.reencrypt(on_progress=lambda seen: other.reencrypt())
        other.reencrypt()
        assert before == everything(one) == everything(other)
    with LedgerSaver(path, encryption=Encryption({"2026": NEWER.keys["2026"]})) as last:
        assert before == everything(last)


def test_s6_a_key_that_became_current_meanwhile_is_not_forgotten(path: Path) -> None:
    """Somebody may have sealed with it, or with any older one, when reencrypt had looked."""
    with LedgerSaver(path, encryption=KEYS) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
    with LedgerSaver(path, encryption=NEWER) as new, LedgerSaver(path, encryption=NEWEST) as newest:
        new.setup()
        assert new.reencrypt(on_progress=lambda seen: newest.setup()).changed
        assert ["2025", "2026", "2027"] == marked(path)
        newest.reencrypt()
    assert ["2027"] == marked(path)


def test_s6_a_key_that_is_current_again_is_the_newest(path: Path) -> None:
    """Also when the clock went back; who looks in from outside seals with it."""
    used = [(OLDER, 9), (NEWER, 5), (OLDER, 5)]
    for keys, now in used:
        database = open_database(path, encryption=keys, clock_us=lambda now=now: now)  # type: ignore[misc]
        database.open()
        database.close()
        assert keys.current == marked(path)[-1]
        outside = open_database(path, encryption=NEWER, keys="either")
        outside.open()
        assert outside.sealer is not None
        assert keys.current == outside.sealer.current
        outside.close()
        assert keys.current == marked(path)[-1]
    with LedgerSaver(path, encryption=OLDER) as saver:
        before = saver.database.read(lambda tx: [tuple(row) for row in tx.all("encryption_keys")])
    assert ["2026", "2025"] == [row[0] for row in before]
    assert [10, 11] == [row[3] for row in before]


def test_s6_opening_with_the_newest_key_writes_nothing(path: Path) -> None:
    for _ in range(2):
        with LedgerSaver(path, encryption=NEWER) as saver:
            saver.setup()
            found = saver.database.transact(lambda tx: tx._execute("SELECT total_changes()", {}).fetchone()[0])
    assert 0 == found


def test_s6_reencrypt_makes_its_key_the_newest_of_an_encrypted_database(path: Path) -> None:
    """Though no application has opened it with that; the older one is forgotten."""
    for keys in (KEYS, NEWER):
        with LedgerSaver(path, encryption=keys) as saver:
            fill(Driver(saver, "sync", None), (f"{keys.current}",))  # type: ignore[arg-type]
    assert encrypt_database(path, OLDER).changed
    assert ["2025"] == marked(path)


def test_s6_keys_stay_in_their_order_while_a_database_is_being_encrypted(path: Path) -> None:
    """It has no newest key yet."""
    with LedgerSaver(path) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
    for keys in (KEYS, NEWER, OLDER):
        half = open_database(path, encryption=keys, keys="converts")
        half.open()
        half.close()
    assert ["2025", "2026"] == marked(path)
