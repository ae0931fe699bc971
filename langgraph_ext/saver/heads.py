"""Heads: the JSON part of a put's row, everything of a checkpoint but its id, parent, metadata and values.

    head = {"v", "ts", "channel_versions", "versions_seen", "updated_channels", "places"}

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

__all__ = ["MORE", "complete", "encode_fields", "fields_of", "head_of", "unknown_keys"]

_PLAIN = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
_ELSEWHERE = ("id", "channel_values")

MORE = "\x00more"
"""The name under which unknown keys are laid out."""


def encode_fields(checkpoint: Checkpoint) -> bytes:
    """The head without its places, which are known only inside the transaction.

    Raises:
        InvalidArgument: A version, channel or node name cannot be stored.
    """
    fields = {key: checkpoint[key] for key in _PLAIN if key in checkpoint}  # type: ignore[literal-required]
    try:
        return canonical.encode_plain(fields, where="checkpoint")
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
    head: dict[str, Any] = canonical.decode(row["head"])
    return head


def fields_of(head: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint's own keys, as they were put."""
    return {key: head[key] for key in _PLAIN if key in head}
