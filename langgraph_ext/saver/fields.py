"""Fields: what a checkpoint has besides its id, parent, metadata and channel values; the `body` of a put's row.

    body = {"v", "ts", "channel_versions", "versions_seen", "updated_channels"}

A field that was not there when the checkpoint was put is not there when it is read. Keys of a checkpoint that this file
does not know are laid out like a channel's value, under a name that no channel has, encoded by the serde.

The two maps grow with the number of nodes while a step changes a few of their entries. Large ones are therefore stored
once in a while, as a *base* that is laid out like a channel's value (`values.BASE`), and the bodies below it hold the
entries that differ from it. A base is inherited like any value, so deleting and copying checkpoints need not know of
it, and a checkpoint is read from its row and its base, never along a chain.

The leading zeros that all versions share (some thirty, see versions.py) are written as one byte that JSON text never
holds, and their number stands before the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress, islice
from math import isqrt
from operator import ne
from typing import Any, NamedTuple

from langgraph.checkpoint.base import Checkpoint

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument

__all__ = [
    "NOTHING",
    "Base",
    "base_of",
    "decode_fields",
    "difference",
    "encode_base",
    "encode_fields",
    "split",
]

_VERSIONS, _SEEN = "channel_versions", "versions_seen"

_FIELDS = frozenset(("v", "ts", _VERSIONS, _SEEN, "updated_channels"))

_SHORT = b'"\x01'
"""Stands for a quotation mark and the shared zeros: a control character, which JSON text escapes."""

_MOST_ZEROS = 31
"""The byte before the JSON is below every character that JSON can begin with."""

_SMALL = 16
"""Entries in both maps together below which they are not worth a base."""


class Base(NamedTuple):
    """The maps of one checkpoint, from which later ones differ a little. Nobody else holds them."""

    versions: Mapping[str, Any]
    seen: Mapping[str, Mapping[str, Any]]
    channels: list[str]
    """Of `versions`, in their order."""
    nodes: list[str]
    """Of `seen`, in their order."""
    most: int
    """So many entries may differ from it until another base is the better choice."""


class Difference(NamedTuple):
    """The entries of a checkpoint's maps that its base has not."""

    versions: Mapping[str, Any]
    seen: Mapping[str, Mapping[str, Any]]


NOTHING = Difference({}, {})
"""Between a checkpoint and the base that is made of it."""


def split(checkpoint: Checkpoint) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that a checkpoint has, and its keys that have no place of their own in a row."""
    fields: dict[str, Any] = {**checkpoint}
    fields.pop("id", None)
    fields.pop("channel_values", None)
    if _FIELDS.issuperset(fields):
        return fields, {}
    more = {key: fields.pop(key) for key in fields.keys() - _FIELDS}
    return fields, more


def base_of(fields: Mapping[str, Any]) -> Base | None:
    """The maps of a checkpoint as a base, or None if they are small or hold other versions than text.

    (Text alone: 1, 1.0 and True are equal, so that a difference would not see the one replaced by the other.)
    """
    versions, seen = fields.get(_VERSIONS), fields.get(_SEEN)
    if not isinstance(versions, dict) or not isinstance(seen, dict) or len(versions) + len(seen) < _SMALL:
        return None
    kinds = set(map(type, versions.values()))
    for each in seen.values():
        if not isinstance(each, dict):
            return None
        kinds.update(map(type, each.values()))
    if kinds != {str}:
        return None
    return Base(
        versions=dict(versions),
        seen={node: dict(each) for node, each in seen.items()},
        channels=list(versions),
        nodes=list(seen),
        most=isqrt(6 * (len(versions) + len(seen))),
    )


def difference(fields: Mapping[str, Any], base: Base) -> Difference | None:
    """What a checkpoint's maps have that `base` has not; None if a new base is the better choice.

    A base of E entries is replaced once more than √(6E) entries differ. A step changes about three, so a base serves
    √(6E)/3 steps; a step's share of it and the mean difference are then √(6E)/2 entries each: their sum is the least.
    """
    versions, seen = fields.get(_VERSIONS), fields.get(_SEEN)
    if not isinstance(versions, dict) or not isinstance(seen, dict):
        return None
    newer = _changed(versions, base.versions, base.channels)
    newer_seen = _changed(seen, base.seen, base.nodes)
    if newer is None or newer_seen is None:
        return None
    if len(newer) + len(newer_seen) > base.most:
        return None
    return Difference(newer, newer_seen)


def _changed(new: dict[str, Any], old: Mapping[str, Any], keys: list[str]) -> dict[str, Any] | None:
    """The entries of `new` that `old` has not; None unless it begins with the keys of `old` in their order."""
    count = len(keys)
    if list(islice(new, count)) != keys:
        return None
    changed = dict(compress(new.items(), map(ne, new.values(), old.values())))
    if len(new) > count:
        changed.update(islice(new.items(), count, None))
    return changed


def encode_fields(fields: Mapping[str, Any], apart: Difference | None = None) -> bytes:
    """The body of a put's row; with the two maps whole, or only what is `apart` from their base.

    Raises:
        InvalidArgument: A version, channel or node name cannot be stored.
    """
    return _encode(fields if apart is None else {**fields, _VERSIONS: apart.versions, _SEEN: apart.seen})


def encode_base(base: Base) -> bytes:
    """A base as it is laid out.

    Raises:
        InvalidArgument: A version, channel or node name cannot be stored.
    """
    return _encode({_VERSIONS: base.versions, _SEEN: base.seen})


def decode_fields(body: bytes, base: bytes | None = None) -> dict[str, Any]:
    """The fields of a checkpoint, as they were put; `base` if its put has one."""
    fields = _decode(body)
    if base is not None:
        for key, entries in _decode(base).items():
            fields[key] = {**entries, **fields[key]}
    return fields


def _encode(fields: Mapping[str, Any]) -> bytes:
    try:
        body = canonical.encode_exact(fields, where="checkpoint")
        nulls = body.count(b"null")
        if nulls and nulls != list(fields.values()).count(None):  # a name, or a number that JSON cannot hold
            body = canonical.encode_plain(fields, where="checkpoint")
    except TypeError as error:
        raise InvalidArgument(f"put: {error}; versions are numbers or text, channel and node names are text") from error
    try:
        greatest = max(fields.get(_VERSIONS, {}).values(), default=None)
    except TypeError:
        greatest = None  # versions of several kinds
    zeros = 0
    if isinstance(greatest, str):
        zeros = min(len(greatest) - len(greatest.lstrip("0")), _MOST_ZEROS)
    return bytes((zeros,)) + body.replace(b'"' + b"0" * zeros, _SHORT) if zeros else body


def _decode(body: bytes) -> dict[str, Any]:
    zeros = body[0]
    plain = body[1:].replace(_SHORT, b'"' + b"0" * zeros) if zeros <= _MOST_ZEROS else body
    fields: dict[str, Any] = canonical.decode(plain)
    return fields
