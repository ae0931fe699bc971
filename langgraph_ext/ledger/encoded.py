"""Encoded: values of the application as the ledger stores them: receipts, memos, messages, questions and answers."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument

__all__ = ["Encoded", "Serde", "encode", "value_of"]


class Encoded(NamedTuple):
    """A value as it is stored."""

    type: str
    """`"json"`, or the serde's type tag."""
    data: bytes


class Serde(Protocol):
    """The part of a serializer that decodes."""

    def loads_typed(self, data: tuple[str, bytes], /) -> Any:
        """The value that was encoded as this type tag and these bytes."""


def encode(value: Any, serde: Serde | None, *, what: str) -> Encoded:
    """A value as JSON, which anybody can read, if it is that; else as the serde has it.

    Args:
        value: Anything.
        serde: What encodes other values; a ledger without one takes JSON alone.
        what: What the value is, for messages: `"receipt"`.

    Raises:
        InvalidArgument: It is no JSON, and the serde, if there is one that encodes, cannot encode it.
    """
    try:
        return Encoded("json", canonical.encode_plain(value, where=what))
    except TypeError as error:
        dumps = getattr(serde, "dumps_typed", None)
        if dumps is None:
            raise InvalidArgument(f"{error}; give the {what} as JSON, or a ledger a serde that encodes it") from None
    try:
        return Encoded(*dumps(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"the {what} is neither JSON nor anything that the serde encodes: {error}") from error


def value_of(kind: str, data: bytes, serde: Serde | None) -> Any:
    """A stored value; None if it is no JSON and there is no serde to decode it with."""
    if kind == "json":
        return canonical.decode(data)
    return None if serde is None else serde.loads_typed((kind, data))
