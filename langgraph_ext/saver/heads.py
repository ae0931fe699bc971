"""Heads: the JSON part of a put's row, everything of a checkpoint but its id, parent, metadata and values.

    head = {"v", "ts", "channel_versions", "versions_seen", "updated_channels", "places"}

A version's leading zeros, the same 24 in most versions, are written as one byte that JSON text never holds.

Keys that were not there when the checkpoint was put are not there when it is read. Keys of a checkpoint that this file
does not know are laid out like a value, under a name that no channel has, encoded by the serde.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.base import Checkpoint

from langgraph_ext import canonical
from langgraph_ext.database import Row
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver.values import Places

__all__ = ["MORE", "complete", "encode_fields", "fields_of", "head_of", "unknown_keys", "with_places"]

_PLAIN = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
_ELSEWHERE = ("id", "channel_values")

_ZEROS = b'"' + b"0" * 24
_SHORT = b'"\x01'

MORE = "\x00more"
"""The name under which unknown keys are laid out."""


def encode_fields(checkpoint: Checkpoint) -> bytes:
    """The head without its places, which are known only inside the transaction.

    Raises:
        InvalidArgument: A version, channel or node name cannot be stored.
    """
    fields = {key: checkpoint[key] for key in _PLAIN if key in checkpoint}  # type: ignore[literal-required]
    try:
        return canonical.encode_plain(fields, where="checkpoint").replace(_ZEROS, _SHORT)
    except TypeError as error:
        raise InvalidArgument(f"put: {error}; versions are numbers or text, channel and node names are text") from error


def unknown_keys(checkpoint: Checkpoint) -> dict[str, Any]:
    """The keys of a checkpoint that have no place of their own in a row."""
    return {key: value for key, value in checkpoint.items() if key not in _PLAIN and key not in _ELSEWHERE}


def complete(fields: bytes, places: Places) -> bytes:
    """A whole head, out of encoded fields and the places of the values."""
    comma = b"" if fields == b"{}" else b","
    return fields[:-1] + comma + b'"places":' + canonical.encode_plain(places) + b"}"


def head_of(row: Row) -> dict[str, Any]:
    """The head of a put's row, decoded."""
    head: dict[str, Any] = canonical.decode(row["head"].replace(_SHORT, _ZEROS))
    return head


def with_places(head: Mapping[str, Any], places: Places) -> bytes:
    """The same head, encoded, with other places."""
    fields = {key: value for key, value in head.items() if key != "places"}
    return complete(canonical.encode_plain(fields).replace(_ZEROS, _SHORT), places)


def fields_of(head: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint's own keys, as they were put."""
    return {key: head[key] for key in _PLAIN if key in head}
