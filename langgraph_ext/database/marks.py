"""Marks: by which keys a database was sealed, and that it was; so nobody opens it as what it is not.

    no key has ever sealed     the database is plain: who gives keys is refused, unless it is empty
    some have                  who gives none is refused; who gives another one of that name, too

A mark holds the name of a key and some bytes that it has sealed. Neither tells anything of the key. Marks are in the
order in which their keys have last become current (`added_us`; migration 0021 says less of it).
"""

from __future__ import annotations

from typing import Literal

from langgraph_ext.database.migrations import all_migrations
from langgraph_ext.database.sealing import Sealer, name_place
from langgraph_ext.database.tx import Row, Tx
from langgraph_ext.errors import EncryptionError

__all__ = ["Keys", "check_keys", "is_plain_for_good", "mark"]

Keys = Literal["exactly", "either", "converts"]

_PROOF = b"langgraph-ext"

name_place("encryption_key.proof", "name")


def check_keys(tx: Tx, sealer: Sealer | None, path: str, *, keys: Keys, now_us: int) -> bool:
    """See that a database is as encrypted as it is said to be; one that is empty becomes so.

    Args:
        tx: A transaction that writes.
        sealer: What it is opened with.
        path: For messages.
        keys: What keys that are given say of it; see `open_database`.
        now_us: Microseconds since the epoch, UTC.

    Returns:
        Whether it is encrypted.

    Raises:
        EncryptionError: It is encrypted, and no key was given, or not one of its keys, or another one of that name
            (`encrypted`, `key_missing`, `key_wrong`); or it is plain, and keys were given (`not_encrypted`); or it was
            not encrypted to the end (`reencrypt_unfinished`).
    """
    rows = tx.all("encryption_keys")
    converts = keys == "converts"
    about: dict[str, object] = {"path": path, "keys": [row["name"] for row in rows]}
    if sealer is None or sealer.locked:
        if rows and sealer is None:
            raise EncryptionError(
                f"database {path!r} is encrypted (keys: {_names(rows)}), and no key was given; give them: encryption=…,"
                " or, on the command line, the environment variable LANGGRAPH_EXT_KEYS",
                code="encrypted",
                details=about,
            )
        return bool(rows)
    if not rows and keys == "either":
        return False
    if not rows and not converts and not tx.one("database_is_empty")["is_empty"]:
        raise EncryptionError(
            f"database {path!r} is not encrypted, and keys were given; encrypt it with `langgraph-ext reencrypt`, or "
            "name a new file",
            code="not_encrypted",
            details=about,
        )
    if any(row["converting"] for row in rows) and not converts:
        raise EncryptionError(
            f"database {path!r} is not encrypted to the end; run `langgraph-ext reencrypt` again, which goes on",
            code="reencrypt_unfinished",
            details=about,
        )
    known = [row for row in rows if row["name"] in sealer.names]
    begun = any(row["converting"] for row in rows)  # which of its rows are plain, only all of its keys can tell
    if rows and (not known or (begun and len(known) < len(rows))):
        lack = "not all of these keys were" if known else "none of these keys was"
        raise EncryptionError(
            f"database {path!r} was encrypted with {_names(rows)}, and {lack} given; give them with the new one",
            code="key_missing",
            details=about,
        )
    for row in known:
        _refuse_another(sealer, row["name"], row["proof"], path)
    if keys == "either":  # somebody looks in from outside: what he writes, those must read who use it
        sealer.seal_with(known[-1]["name"])
    else:
        _make_newest(tx, sealer, rows, converting=begun or (converts and not rows), now_us=now_us)
    return True


def _make_newest(tx: Tx, sealer: Sealer, rows: list[Row], *, converting: bool, now_us: int) -> None:
    """Have the mark of the key that seals be the last one; nothing is written if it is."""
    marked = [row["name"] for row in rows]
    now_us = max(now_us, rows[-1]["added_us"] + 1) if rows else now_us  # a clock may go back; the order must not
    if sealer.current not in marked:
        mark(tx, sealer, converting=converting, now_us=now_us)
    elif sealer.current != marked[-1] and not converting:
        tx.run("encryption_key_use", name=sealer.current, now_us=now_us)


def is_plain_for_good(tx: Tx, path: str) -> bool:
    """Whether a database that was opened as a plain one holds something: then nobody encrypts it while it is open.

    Raises:
        EncryptionError: It was empty, and somebody else has encrypted it since (`encrypted`).
    """
    if rows := tx.all("encryption_keys"):
        raise EncryptionError(
            f"database {path!r} was empty and plain when it was opened here, and has been encrypted since (keys: "
            f"{_names(rows)}); open it anew, with its keys",
            code="encrypted",
            details={"path": path, "keys": [row["name"] for row in rows]},
        )
    return not tx.one("database_is_empty")["is_empty"]


def _names(rows: list[Row]) -> str:
    return ", ".join(repr(row["name"]) for row in rows)


def _refuse_another(sealer: Sealer, name: str, proof: bytes, path: str) -> None:
    try:
        sealer.open(("encryption_key.proof", name), proof)
    except EncryptionError as error:
        raise EncryptionError(
            f"database {path!r} was encrypted with another key {name!r} than the one given; give the right one",
            code="key_wrong",
            details={"path": path, "key": name},
        ) from error


def mark(tx: Tx, sealer: Sealer, *, converting: bool, now_us: int) -> None:
    """Note that a key seals from here on."""
    name = sealer.current
    proof = sealer.seal(("encryption_key.proof", name), _PROOF)
    tx.run("encryption_key_add", name=name, proof=proof, converting=int(converting), now_us=now_us)
    tx.run(
        "encryption_needs_reader", version=max(each.number for each in all_migrations() if "encryption" in each.name)
    )
