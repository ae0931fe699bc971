"""Sealing: payloads are encrypted for one place, and open there alone.

A place is what something is and where it belongs, such as `("effect.receipt", effect_id)`. It is no part of what is
stored; who reads says where it was found. So a row that was moved, was made by somebody without the key, or was never
encrypted, is refused before anybody decodes it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

import orjson

from langgraph_ext import canonical
from langgraph_ext.database.encryption import Key, Keyring, key_id
from langgraph_ext.errors import EncryptionError

__all__ = ["MAGIC", "Place", "Sealer", "key_id_of", "name_place"]

MAGIC = 0xE5
"""The first byte of what is sealed."""

_HEAD = 5
"""Bytes before the cipher's: this one, and the key's id."""

Place = tuple[Any, ...]
"""What it is, and where it belongs: text, numbers and null."""


class Sealer:
    """Seals with one key and opens with all of a ring. Safe to use from any thread."""

    locked = False

    def __init__(self, keys: Keyring) -> None:
        self._keys = keys
        self._current: Key = keys.current
        self._head = bytes((MAGIC,)) + keys.current_id

    def seal_with(self, name: str) -> None:
        """Have another key of the ring seal from here on."""
        self._head = bytes((MAGIC,)) + key_id(name)
        self._current = self._keys.by_id[key_id(name)]

    @property
    def current(self) -> str:
        """The name of the key that seals."""
        return self._current.name

    @property
    def names(self) -> frozenset[str]:
        """The names of all keys."""
        return frozenset(key.name for key in self._keys.by_id.values())

    def seal(self, place: Place, data: bytes) -> bytes:
        """Encrypt bytes for a place."""
        return self._head + self._current.encrypt(_encoded(place), data)

    def open(self, place: Place, sealed: bytes) -> bytes:
        """What was sealed for this place.

        Raises:
            EncryptionError: It is plain (`row_plaintext`), was sealed with a key that is not here (`key_missing`), or
                by somebody else, or for another place (`row_forged`).
        """
        if len(sealed) < _HEAD or sealed[0] != MAGIC:
            raise plaintext(place)
        key = self._keys.by_id.get(bytes(sealed[1:_HEAD]))
        if key is None:
            raise _refused(
                place,
                "was sealed with a key that was not given; give it with the others",
                code="key_missing",
            )
        try:
            return key.decrypt(_encoded(place), sealed[_HEAD:])
        except ValueError as error:
            raise _refused(
                place,
                "does not open: it was changed, moved from another place, or sealed with another key of that name; "
                "restore a backup, or give the right key",
                code="row_forged",
            ) from error

    def seal_text(self, place: Place, text: str) -> str:
        """As `seal`, of text and as text."""
        return base64.b64encode(self.seal(place, text.encode())).decode()

    def open_text(self, place: Place, sealed: str) -> str:
        """As `open`, of what `seal_text` made."""
        try:
            data = base64.b64decode(sealed, validate=True)
        except (binascii.Error, ValueError):
            raise plaintext(place) from None
        return self.open(place, data).decode()

    def has_sealed(self, data: bytes) -> bool:
        """Whether something names one of the keys; what is plain may begin as if it were sealed."""
        return key_id_of(data) in self._keys.by_id

    def is_current(self, sealed: bytes) -> bool:
        """Whether something was sealed with the key that seals now."""
        return sealed.startswith(self._head)


def _encoded(place: Place) -> bytes:
    try:
        return orjson.dumps(place)
    except TypeError:
        return canonical.encode_exact(list(place), where="place")


class Lock(Sealer):
    """Stands for keys that nobody has: shows that something is sealed, and seals nothing."""

    locked = True

    def __init__(self) -> None:
        pass

    @property
    def names(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def seal(self, place: Place, data: bytes) -> bytes:
        """Refuse."""
        raise locked()

    def open(self, place: Place, sealed: bytes) -> bytes:
        """What is shown instead, as JSON."""
        return b'"(encrypted)"'

    def open_text(self, place: Place, sealed: str) -> str:
        """What is shown instead."""
        return "(encrypted)"


def locked() -> EncryptionError:
    """The error of who writes without keys."""
    return EncryptionError(
        "the database is encrypted, and no key was given: it can only be looked at; give its keys",
        code="encrypted",
    )


def key_id_of(sealed: bytes) -> bytes | None:
    """The id of the key that something was sealed with; None if it is plain."""
    return bytes(sealed[1:_HEAD]) if len(sealed) >= _HEAD and sealed[0] == MAGIC else None


def plaintext(place: Place) -> EncryptionError:
    """The error of what is not encrypted where all is."""
    return _refused(
        place,
        "is not encrypted, and everything in this database is: it was not written by langgraph-ext with its keys; "
        "restore a backup",
        code="row_plaintext",
    )


_PARTS: dict[str, Sequence[str]] = {}
"""By what is sealed, what the rest of its place is called."""


def name_place(what: str, *names: str) -> None:
    """Say what the parts of a place are called, for messages."""
    _PARTS[what] = names


def _refused(place: Place, why: str, *, code: str) -> EncryptionError:
    what, parts = place[0], place[1:]
    named = dict(zip(_PARTS.get(what, [f"part {n}" for n in range(len(parts))]), parts, strict=False))
    where = ", ".join(f"{name} {part!r}" for name, part in named.items() if part is not None)
    return EncryptionError(f"{what} ({where}) {why}", code=code, details={"what": what, **named})
