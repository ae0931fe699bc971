"""Which database, and which run: what a command was told, looked up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from langgraph_ext.cli.ending import say
from langgraph_ext.database import Database, open_database
from langgraph_ext.database.encryption import AES_KEY, KEYS
from langgraph_ext.database.sealing import locked
from langgraph_ext.errors import InvalidArgument, StoreError
from langgraph_ext.ledger import RunLedger, listing
from langgraph_ext.saver.ciphers import encryption_of_environment

__all__ = [
    "ENVIRONMENT",
    "LOCKED_SAYS",
    "Place",
    "find",
    "is_locked",
    "need_keys",
    "opened",
    "opened_with_keys",
    "run_id_of",
]

LOCKED_SAYS: Final = f"the database is encrypted: payloads are not shown. Set {KEYS}, or {AES_KEY}, to see them"

ENVIRONMENT: Final = "LANGGRAPH_EXT_DB"
"""The environment variable that names the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An existing file, and who named it."""

    path: str
    """Absolute."""
    named_by: Literal["--db", "LANGGRAPH_EXT_DB"]


def find(option: str | None) -> Place:
    """The database file that the option names, or else the environment; it is neither opened nor created.

    Raises:
        InvalidArgument: Neither names one.
        StoreError: There is no such file (`store_missing`).
    """
    named = option if option is not None else os.environ.get(ENVIRONMENT)
    if not named:
        raise InvalidArgument(f"no database is named; pass --db PATH, or set {ENVIRONMENT}=PATH")
    path = open_database(named).name
    if not os.path.isfile(path):
        raise StoreError(
            f"there is no database file {path!r}; check {_named_by(option)}",
            code="store_missing",
            details={"path": path},
        )
    return Place(path=path, named_by=_named_by(option))


def _named_by(option: str | None) -> Literal["--db", "LANGGRAPH_EXT_DB"]:
    return "--db" if option is not None else ENVIRONMENT


@contextmanager
def opened(option: str | None) -> Iterator[RunLedger]:
    """The ledger in the database of `find`, closed at the end."""
    with closing(opened_with_keys(find(option).path)) as database:
        if is_locked(database):
            say(LOCKED_SAYS)
        yield RunLedger(database)


def opened_with_keys(path: str) -> Database:
    """A database with the keys that the environment names; without any, one that is encrypted can be looked at.

    Raises:
        InvalidArgument: A key is not what it must be.
        EncryptionError: They are not its keys.
    """
    database = open_database(path, create=False, encryption=encryption_of_environment(), keys="either")
    database.open()
    return database


def is_locked(database: Database) -> bool:
    """Whether it is encrypted, and there is no key."""
    return database.sealer is not None and database.sealer.locked


def need_keys(database: Database) -> None:
    """For a command that goes by what is encrypted.

    Raises:
        EncryptionError: It is, and there is no key (`encrypted`).
    """
    if is_locked(database):
        raise locked()


def run_id_of(ledger: RunLedger, named: str) -> str:
    """The id of the run that is named by it, or by a beginning of it.

    Raises:
        InvalidArgument: Several runs begin so.
        NotFound: None does.
    """
    found = ledger.database.read(listing.run_ids, named, limit=3) if named else []
    if named in found or len(found) == 1:
        return named if named in found else found[0]
    if not found:
        return ledger.run(named).run_id
    listed = ", ".join(map(repr, found[:2])) + (", …" if len(found) > 2 else "")
    raise InvalidArgument(f"run {named!r} is the beginning of several ids ({listed}); give more of it")
