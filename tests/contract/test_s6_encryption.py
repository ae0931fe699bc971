"""S6: what is encrypted opens at its place alone; what is plain, or was moved, is refused before it is decoded."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, canonical
from langgraph_ext.errors import EncryptionError, StoreError
from langgraph_ext.saver.sealing import frame, frames_in
from tests.support.build import cid, config, metadata
from tests.support.ciphers import CONVENTIONS, KEYS, NEWER, Witness
from tests.support.driver import Driver
from tests.support.growing import bytes_stored
from tests.support.sealed import MARK, bytes_of, everything, fill, letters

Forms = Callable[[Any], Driver]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture(params=CONVENTIONS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Each way of saying that a saver encrypts."""
    return CONVENTIONS[request.param]


# -- what is there


def test_s6_what_is_put_comes_back_and_stands_nowhere_in_the_file(
    path: Path, options: dict[str, Any], forms: Forms
) -> None:
    """Values small and large, writes and metadata; the file and its log hold none of it."""
    plain = path.with_name("plain.db")
    for where, how in ((plain, {}), (path, options)):
        with LedgerSaver(where, **how) as saver:
            fill(forms(saver))
            found = bytes_of(where)
            assert (MARK.encode() in found) == (where == plain)
    with LedgerSaver(plain) as one, LedgerSaver(path, **options) as other:
        assert everything(one) == everything(other)
        assert len(everything(one)) > 12
    assert MARK.encode() not in bytes_of(path)


@pytest.mark.parametrize("limit", [None, 1, 3])
@pytest.mark.parametrize("wanted", [{"even": True}, {"tag": f"{MARK}1"}, {"tag": None}, {"even": True, "step": 2}, {}])
def test_s6_a_filter_finds_what_it_finds_in_a_plain_database(
    path: Path, forms: Forms, wanted: dict[str, Any], limit: int | None
) -> None:
    """In the same order, with a limit and before a checkpoint."""
    found = []
    for where, how in ((path.with_name("plain.db"), {}), (path, {"encryption": KEYS})):
        with LedgerSaver(where, **how) as saver:
            driver = forms(saver)
            fill(driver, steps=5)
            for where_to_look in (None, config("t", ""), config("t")):
                for before in (None, config("t", "", cid(3))):
                    listed = driver.list(where_to_look, filter=wanted, before=before, limit=limit)
                    found.append([(each.config, each.metadata) for each in listed])
    half = len(found) // 2
    assert found[:half] == found[half:]
    assert any(found) or wanted == {"tag": None}


def test_s6_a_filter_reads_a_bounded_number_of_rows_a_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few of them match."""
    from langgraph_ext.saver import listing

    pages: list[int] = []
    real = listing.page

    def counting(tx: Any, asked: Any, left: Any) -> Any:
        read: list[str] = []
        maybe = tx.maybe
        monkeypatch.setattr(type(tx), "maybe", lambda self, name, **p: (read.append(name), maybe(name, **p))[1])
        try:
            return real(tx, asked, left)
        finally:
            monkeypatch.undo()
            monkeypatch.setattr(listing, "page", counting)
            pages.append(read.count("put_get"))

    with LedgerSaver(path, encryption=KEYS) as saver:
        for n in range(100):
            saver.put(config("t", "", cid(n - 1) if n else None), _checkpoint(n), metadata(n, tag=n), {})
        monkeypatch.setattr(listing, "page", counting)
        assert 1 == len(list(saver.list(config("t", ""), filter={"tag": 3})))
    assert max(pages) <= 32
    assert sum(pages) == 100


def _checkpoint(n: int) -> Any:
    from tests.support.build import checkpoint

    return checkpoint(cid(n), {}, {})


def test_s6_a_copied_thread_is_sealed_for_its_own_place(path: Path, options: dict[str, Any], forms: Forms) -> None:
    """It reads as the first one does, also when that is gone; and goes on to grow."""
    with LedgerSaver(path, **options) as saver:
        driver = forms(saver)
        fill(driver, ("t",))
        before = [(t.checkpoint, t.metadata, t.pending_writes) for t in driver.list(config("t"))]
        driver.call("copy_thread", "t", "v")
        driver.call("delete_thread", "t")
        assert before == [(t.checkpoint, t.metadata, t.pending_writes) for t in driver.list(config("v"))]
        driver.save(cid(3), {"long": letters(60)}, {"long": 9}, thread="v", parent=cid(2))
        assert {"long": letters(60)} == driver.get_tuple(config("v")).checkpoint["channel_values"]  # type: ignore[union-attr]


def test_s6_an_append_stores_what_was_appended(path: Path, forms: Forms) -> None:
    """As in a plain database (S2), whatever is remembered."""
    with LedgerSaver(path, encryption=KEYS) as saver:
        driver = forms(saver)
        held = [f"{n}" * 200 for n in range(200)]
        driver.save(cid(0), {"long": held}, {"long": 1})
        saver.database.transact(lambda tx: None)
        before = bytes_stored(path)
        for n in range(1, 11):
            if n == 6:
                saver.bodies._known.clear()
            held = [*held, f"new {n} " * 20]
            driver.save(cid(n), {"long": held}, {"long": n + 1}, parent=cid(n - 1))
        grown = bytes_stored(path) - before
        assert held == driver.get_tuple(config("t")).checkpoint["channel_values"]["long"]  # type: ignore[union-attr]
    assert grown < 10 * 700


def test_s6_a_short_edit_of_a_large_value_is_not_in_the_plain(
    path: Path, options: dict[str, Any], forms: Forms
) -> None:
    """Where a plain database would keep a few bytes beside the rest."""
    with LedgerSaver(path, **options) as saver:
        driver = forms(saver)
        held = [f"{n} " * 40 for n in range(200)]
        driver.save(cid(0), {"long": held}, {"long": 1})
        held[100] = held[100][:20] + MARK + held[100][20:]
        driver.save(cid(1), {"long": held}, {"long": 2}, parent=cid(0))
        driver.put_writes(config("t", "", cid(1)), [("long", [*held[:50], MARK, *held[50:]])], "task")
        found = bytes_of(path)
        assert MARK.encode() not in found
        assert MARK.encode().hex().encode() not in found
        assert held == driver.get_tuple(config("t")).checkpoint["channel_values"]["long"]  # type: ignore[union-attr]


def test_s6_what_prune_keeps_can_still_be_read(path: Path, options: dict[str, Any], forms: Forms) -> None:
    """Values that move to another row when theirs goes, empty ones among them."""
    with LedgerSaver(path, **options) as saver:
        driver = forms(saver)
        fill(driver)
        newest = driver.get_tuple(config("t"))
        driver.call("prune", ["t"])
        assert newest is not None
        assert newest.checkpoint == driver.get_tuple(config("t")).checkpoint  # type: ignore[union-attr]
        assert 1 == len(driver.list(config("t", "")))


# -- what somebody else wrote into the file


def place(checkpoint: int = 2, thread: str = "t", ns: str = "") -> str:
    return f"thread_id = '{thread}' AND checkpoint_ns = '{ns}' AND checkpoint_id = '{cid(checkpoint)}'"


def put(what: str, checkpoint: int = 2, **more: Any) -> str:
    return f"(SELECT {what} FROM checkpoint_log WHERE listed IS NOT NULL AND {place(checkpoint, **more)})"


def call(what: str, task: str = "one", checkpoint: int = 2, **more: Any) -> str:
    return f"(SELECT {what} FROM checkpoint_log WHERE task_id = '{task}' AND {place(checkpoint, **more)})"


SET_PUT = f"UPDATE checkpoint_log SET {{}} = {{}} WHERE listed IS NOT NULL AND {place()}"
SET_CALL = f"UPDATE checkpoint_log SET {{}} = {{}} WHERE task_id = 'one' AND {place()}"

MOVED = {
    "a value from another thread": (SET_PUT.format("data", put("data", thread="u")), "value"),
    "a value from another namespace": (SET_PUT.format("data", put("data", ns="sub:1")), "value"),
    "a value of another version": (SET_PUT.format("data", put("data", 1)), "value"),
    "metadata from another thread": (SET_PUT.format("metadata", put("metadata", thread="u")), "checkpoint.metadata"),
    "metadata of another checkpoint": (SET_PUT.format("metadata", put("metadata", 1)), "checkpoint.metadata"),
    "metadata from another namespace": (
        SET_PUT.format("metadata", put("metadata", ns="sub:1")),
        "checkpoint.metadata",
    ),
    "writes of another task": (SET_CALL.format("data", call("data", "two")), "write"),
    "writes at another checkpoint": (SET_CALL.format("data", call("data", checkpoint=1)), "write"),
    "writes from another thread": (SET_CALL.format("data", call("data", thread="u")), "write"),
    "writes from another namespace": (SET_CALL.format("data", call("data", ns="sub:1")), "write"),
    "a call under another task": (
        f"UPDATE checkpoint_log SET task_id = 'x' WHERE task_id = 'one' AND {place()}",
        "write",
    ),
    "a piece from another thread": (
        "UPDATE strand_piece SET data = (SELECT data FROM strand_piece AS other JOIN strand ON strand = piece >> 32 "
        "WHERE thread_id = 'u' AND checkpoint_ns = '' AND channel = 'long' ORDER BY piece LIMIT 1) "
        "WHERE piece IN (SELECT min(piece) FROM strand_piece JOIN strand ON strand = piece >> 32 "
        "WHERE thread_id = 't' AND checkpoint_ns = '' AND channel = 'long')",
        "piece",
    ),
    "a strand of another channel": (
        "UPDATE strand SET channel = CASE channel WHEN 'long' THEN 'other' ELSE 'long' END "
        "WHERE thread_id = 't' AND checkpoint_ns = ''",
        "",
    ),
}
"""What is done to the row of checkpoint 2 of thread t, and what is refused."""


def swap_channels(connection: sqlite3.Connection) -> None:
    """Give two channels each other's places."""
    [(places,)] = connection.execute(put("places")[1:-1])
    held = canonical.decode(places)
    held[""]["a"], held[""]["b"] = held[""]["b"], held[""]["a"]
    connection.execute(SET_PUT.format("places", "?"), (canonical.encode_plain(held),))


def swap_slots(connection: sqlite3.Connection) -> None:
    """Give two writes of a call to one channel each other's positions."""
    [(data,)] = connection.execute(call("data")[1:-1])
    frames = [frame(size, sealed) for _, size, sealed in frames_in(data)]
    frames[0], frames[2] = frames[2], frames[0]
    connection.execute(SET_CALL.format("data", "?"), (b"".join(frames),))


def another_type(connection: sqlite3.Connection) -> None:
    """Have a value decoded as what it is not."""
    [(places,)] = connection.execute(put("places")[1:-1])
    held = canonical.decode(places)
    held[""]["a"][1] = "json"
    connection.execute(SET_PUT.format("places", "?"), (canonical.encode_plain(held),))


def fewer_parts(connection: sqlite3.Connection) -> None:
    """Leave out the end of a large value."""
    [(places,)] = connection.execute(put("places")[1:-1])
    held = canonical.decode(places)
    held[""]["long"][3][-1] -= 1
    connection.execute(SET_PUT.format("places", "?"), (canonical.encode_plain(held),))


def other_source(connection: sqlite3.Connection) -> None:
    """Change what stands before the sealed metadata."""
    [(found,)] = connection.execute(put("metadata")[1:-1])
    connection.execute(SET_PUT.format("metadata", "?"), (found.replace(b'"loop"', b'"fork"'),))


CHANGED: dict[str, tuple[Callable[[sqlite3.Connection], None], str]] = {
    "values of two channels": (swap_channels, "value"),
    "writes of two slots": (swap_slots, "write"),
    "a value's type": (another_type, "value"),
    "a large value's parts": (fewer_parts, "head of a value"),
    "the plain part of metadata": (other_source, "checkpoint.metadata"),
}


def plain_value(connection: sqlite3.Connection) -> None:
    [(data,)] = connection.execute(put("data")[1:-1])
    framed = b"".join(frame(size, b"\xa9" + b"x" * (size - 1)) for _, size, _ in frames_in(data))
    connection.execute(SET_PUT.format("data", "?"), (framed,))


def unframed_value(connection: sqlite3.Connection) -> None:
    connection.execute(SET_PUT.format("data", "?"), (b"\xabBREADCRUMB2" * 20,))


def plain_write(connection: sqlite3.Connection) -> None:
    [(data,)] = connection.execute(call("data")[1:-1])
    framed = b"".join(frame(size, b"x" * size) for _, size, _ in frames_in(data))
    connection.execute(SET_CALL.format("data", "?"), (framed,))


def plain_metadata(connection: sqlite3.Connection) -> None:
    connection.execute(SET_PUT.format("metadata", "?"), (b'{"source":"loop","step":2,"parents":{}}',))


def plain_piece(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE strand_piece SET data = zeroblob(size)")


PLAIN: dict[str, tuple[Callable[[sqlite3.Connection], None], str]] = {
    "a value": (plain_value, "value"),
    "a value without a frame": (unframed_value, "value"),
    "a write": (plain_write, "write"),
    "metadata": (plain_metadata, "checkpoint.metadata"),
    "a piece": (plain_piece, "piece"),
}


@pytest.fixture(params=CONVENTIONS, scope="module")
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A database that is filled, by each convention, and how to open it; with a serde that notices what it sees."""
    path = tmp_path_factory.mktemp("filled") / "runs.db"
    options = dict(CONVENTIONS[request.param])
    if "serde" in options:
        options = {"encryption": options["serde"].cipher}
    options["serde"] = Witness()
    with LedgerSaver(path, **options) as saver:
        fill(Driver(saver, "sync", None))  # type: ignore[arg-type]
    return path, options


@pytest.fixture
def there(filled: tuple[Path, dict[str, Any]], path: Path) -> tuple[Path, dict[str, Any]]:
    shutil.copy(filled[0], path)
    return path, filled[1]


def refusal(there: tuple[Path, dict[str, Any]], forms: Forms) -> StoreError:
    path, options = there
    with LedgerSaver(path, **options) as saver:
        driver = forms(saver)
        with pytest.raises(StoreError) as refused:
            driver.get_tuple(config("t", "", cid(2)))
        with pytest.raises(StoreError) as listed:
            driver.list(config("t", ""))
        assert refused.value.code == listed.value.code
    return refused.value


def meddle(there: tuple[Path, dict[str, Any]], how: Callable[[sqlite3.Connection], object]) -> None:
    with closing(sqlite3.connect(there[0])) as connection:
        how(connection)
        assert connection.total_changes > 0
        connection.commit()


@pytest.mark.parametrize("name", MOVED)
def test_s6_a_moved_row_is_refused_by_name(there: tuple[Path, dict[str, Any]], forms: Forms, name: str) -> None:
    """Every one of these is sound ciphertext of this very database, at another place."""
    statement, what = MOVED[name]
    meddle(there, lambda connection: connection.execute(statement))
    error = refusal(there, forms)
    if not what:  # no piece of it is found
        assert "store_corrupt" == error.code
        return
    assert ("row_forged", what) == (error.code, error.details["what"])
    assert ("t", "") == (error.details["thread_id"], error.details["checkpoint_ns"])
    assert "restore a backup" in str(error)


@pytest.mark.parametrize("name", CHANGED)
def test_s6_a_changed_row_is_refused_by_name(there: tuple[Path, dict[str, Any]], forms: Forms, name: str) -> None:
    how, what = CHANGED[name]
    meddle(there, how)
    error = refusal(there, forms)
    assert ("row_forged", what, "t") == (error.code, error.details["what"], error.details["thread_id"])


@pytest.mark.parametrize("name", PLAIN)
def test_s6_a_plain_row_is_refused_by_name(there: tuple[Path, dict[str, Any]], forms: Forms, name: str) -> None:
    """What somebody without the key would write."""
    how, what = PLAIN[name]
    meddle(there, how)
    error = refusal(there, forms)
    assert ("row_plaintext", what, "t") == (error.code, error.details["what"], error.details["thread_id"])


def test_s6_a_row_of_a_foreign_thread_is_not_copied(there: tuple[Path, dict[str, Any]], forms: Forms) -> None:
    """Copying opens every row; one that does not open copies nothing."""
    meddle(there, lambda connection: connection.execute(MOVED["a value from another thread"][0]))
    with LedgerSaver(there[0], **there[1]) as saver:
        driver = forms(saver)
        with pytest.raises(EncryptionError, match="row_forged"):
            driver.call("copy_thread", "t", "v")
        assert driver.get_tuple(config("v")) is None


def test_s6_reencrypt_refuses_what_was_forged(path: Path, forms: Forms) -> None:
    """It does not seal for good what it cannot open, nor what is plain."""
    for name, (how, what) in PLAIN.items():
        where = path.with_name(f"{name}.db")
        with LedgerSaver(where, encryption=KEYS) as saver:
            fill(forms(saver))
        meddle((where, {}), how)
        with LedgerSaver(where, encryption=NEWER) as saver, pytest.raises(StoreError) as refused:
            forms(saver).call("reencrypt")
        if what != "value" or name == "a value":
            assert ("row_plaintext", what) == (refused.value.code, refused.value.details["what"])  # type: ignore[attr-defined]
