"""Fields: what a checkpoint has besides its id, parent, metadata and channel values; the `body` of a put's row.

    body = {"v", "ts", "channel_versions", "versions_seen", "updated_channels"}

A field that was not there when the checkpoint was put is not there when it is read. The leading zeros that all versions
share (some thirty, see versions.py) are written as one byte that JSON text never holds, and their number stands before
the JSON. Keys of a checkpoint that this file does not know are laid out like a channel's value, under a name that no
channel has, encoded by the serde.
"""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import Checkpoint

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument

__all__ = ["decode_fields", "encode_fields", "unknown_keys"]

_FIELDS = ("v", "ts", "channel_versions", "versions_seen", "updated_channels")
_ELSEWHERE = frozenset((*_FIELDS, "id", "channel_values"))

_SHORT = b'"\x01'
"""Stands for a quotation mark and the shared zeros: a control character, which JSON text escapes."""

_MOST_ZEROS = 31
"""The byte before the JSON is below every character that JSON can begin with."""


def encode_fields(checkpoint: Checkpoint) -> bytes:
    """The body of a put's row.

    Raises:
        InvalidArgument: A version, channel or node name cannot be stored.
    """
    fields = {key: checkpoint[key] for key in _FIELDS if key in checkpoint}  # type: ignore[literal-required]
    versions = fields.get("channel_versions", {}).values()
    kinds = set(map(type, versions))
    encode = canonical.encode_plain if float in kinds else canonical.encode_exact  # only floats need a second look
    try:
        body = encode(fields, where="checkpoint")
    except TypeError as error:
        raise InvalidArgument(f"put: {error}; versions are numbers or text, channel and node names are text") from error
    zeros = _leading_zeros(max(versions)) if kinds == {str} else 0
    return bytes((zeros,)) + body.replace(b'"' + b"0" * zeros, _SHORT) if zeros else body


def _leading_zeros(version: str) -> int:
    return min(len(version) - len(version.lstrip("0")), _MOST_ZEROS)


def decode_fields(body: bytes) -> dict[str, Any]:
    """The fields of a checkpoint, as they were put."""
    zeros = body[0]
    plain = body[1:].replace(_SHORT, b'"' + b"0" * zeros) if zeros <= _MOST_ZEROS else body
    fields: dict[str, Any] = canonical.decode(plain)
    return fields


def unknown_keys(checkpoint: Checkpoint) -> dict[str, Any]:
    """The keys of a checkpoint that have no place of their own in a row."""
    return {key: value for key, value in checkpoint.items() if key not in _ELSEWHERE}
