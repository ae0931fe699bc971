"""Sealed JSON: what of a checkpoint's metadata, and of an event's details, stays plain when they are sealed.

Of metadata the ledger goes by where a checkpoint comes from, and where the graph around it stands. They stand before
what is sealed, which holds all of it; they are part of its place, so they cannot be changed either:

    sealed metadata = 0xE6, length (4 bytes), {"source", "step", "parents"}, sealed

Of details, what somebody has worded is sealed, word by word; the rest are ids, codes, times and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database.sealing import Place, Sealer, plaintext

__all__ = ["details_opened", "details_sealed", "metadata_opened", "metadata_sealed", "seal_words", "worded_in"]

_METADATA = b"\xe6"

_PLAIN = ("source", "step", "parents")

_WORDS = frozenset(("error_message", "kind", "message", "words"))
"""Details of events that somebody has worded, or that come out of a payload."""

_SEALED = "sealed:"
"""Stands before a word that is sealed."""


def worded_in(event: object, details: Mapping[str, Any]) -> set[str]:
    """The names of an event's details that somebody has worded. Who answered a question is one; else `by` is a run."""
    names = _WORDS | {"by"} if isinstance(event, str) and event.startswith("interrupt.") else _WORDS
    return set(names & details.keys())


def words_in(event: object, details: Mapping[str, Any]) -> set[str]:
    """The names of an event's details that are sealed."""
    return {name for name in worded_in(event, details) if isinstance(details[name], str)}


def metadata_sealed(sealer: Sealer, place: Place, data: bytes) -> bytes:
    """A put's metadata, sealed."""
    held: dict[str, Any] = canonical.decode(data)
    plain = canonical.encode_exact({key: held[key] for key in _PLAIN if key in held})
    return _METADATA + len(plain).to_bytes(4) + plain + sealer.seal((*place, plain.decode()), data)


def metadata_opened(sealer: Sealer, place: Place, data: bytes) -> bytes:
    """A put's metadata; without keys, what of it is plain.

    Raises:
        EncryptionError: As `Sealer.open`.
    """
    plain, sealed = _parts(place, data)
    return plain if sealer.locked else sealer.open((*place, plain.decode(errors="replace")), sealed)


def metadata_inner(data: bytes) -> bytes | None:
    """Of sealed metadata, what is sealed; None if it is plain."""
    return data[5 + int.from_bytes(data[1:5]) :] if data.startswith(_METADATA) else None


def _parts(place: Place, data: bytes) -> tuple[bytes, bytes]:
    if not data.startswith(_METADATA):
        raise plaintext(place)
    end = 5 + int.from_bytes(data[1:5])
    return data[5:end], data[end:]


def details_sealed(sealer: Sealer, place: Place, details: str) -> str:
    """An event's details, as JSON, their words sealed."""
    held: dict[str, Any] = canonical.decode(details.encode())
    sealed = seal_words(sealer, place, held)
    return details if sealed is held else canonical.encode(sealed).decode()


def seal_words(sealer: Sealer, place: Place, details: dict[str, Any]) -> dict[str, Any]:
    """Details, their words sealed; themselves if they have none."""
    words = words_in(place[_EVENT], details)
    if not words:
        return details
    return {**details, **{name: _SEALED + sealer.seal_text((*place, name), details[name]) for name in words}}


_EVENT = 4
"""Where in the place of details the event's name stands."""


def details_opened(sealer: Sealer, place: Place, details: str) -> str:
    """An event's details, their words opened.

    Raises:
        EncryptionError: As `Sealer.open`.
    """
    held: dict[str, Any] = canonical.decode(details.encode())
    words = words_in(place[_EVENT], held)
    for name in words:
        if not held[name].startswith(_SEALED):
            raise plaintext((*place, name))
        held[name] = sealer.open_text((*place, name), held[name].removeprefix(_SEALED))
    return canonical.encode(held).decode() if words else details


def sealed_words(event: object, details: str) -> list[str | None]:
    """The words of an event's details, as they were sealed; None for those that are plain."""
    held: dict[str, Any] = canonical.decode(details.encode())
    words = [held[name] for name in words_in(event, held)]
    return [word.removeprefix(_SEALED) if word.startswith(_SEALED) else None for word in words]
