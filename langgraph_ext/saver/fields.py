"""Fields: what a checkpoint has besides its id, parent, metadata and channel values; the `body` of a put's row.

    body = {"v", "ts", "channel_versions", "versions_seen", "updated_channels"}

A field that was not there when the checkpoint was put is not there when it is read. A version's leading zeros, 24 of
them in most versions, are written as one byte that JSON text never holds. Keys of a checkpoint that this file does not
know are laid out like a channel's value, under a name that no channel has, encoded by the serde.
"""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import Checkpoint

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument

__all__ = ["decode_fields", "encode_fields", "unknown_keys"]

_FIELDS = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
_ELSEWHERE = frozenset((*_FIELDS, "id", "channel_values"))

_ZEROS = b'"' + b"0" * 24
_SHORT = b'"\x01'


def encode_fields(checkpoint: Checkpoint) -> bytes:
    """The body of a put's row.

    Raises:
        InvalidArgument: A version, channel or node name cannot be stored.
    """
    fields = {key: checkpoint[key] for key in _FIELDS if key in checkpoint}  # type: ignore[literal-required]
    kinds = set(map(type, fields.get("channel_versions", {}).values()))
    encode = canonical.encode_plain if float in kinds else canonical.encode_exact  # only floats need a second look
    try:
        return encode(fields, where="checkpoint").replace(_ZEROS, _SHORT)
    except TypeError as error:
        raise InvalidArgument(f"put: {error}; versions are numbers or text, channel and node names are text") from error


def decode_fields(body: bytes) -> dict[str, Any]:
    """The fields of a checkpoint, as they were put."""
    fields: dict[str, Any] = canonical.decode(body.replace(_SHORT, _ZEROS))
    return fields


def unknown_keys(checkpoint: Checkpoint) -> dict[str, Any]:
    """The keys of a checkpoint that have no place of their own in a row."""
    return {key: value for key, value in checkpoint.items() if key not in _ELSEWHERE}
