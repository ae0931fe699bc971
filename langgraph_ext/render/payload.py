"""A payload in one short line."""

from __future__ import annotations

import json
from collections.abc import Iterator

from langgraph_ext.render.text import cut, escape

__all__ = ["payload"]


def payload(value: object, *, columns: int = 60, only_ascii: bool = False) -> str:
    """A JSON value as compact JSON, escaped and cut; a part that is no JSON is named by its type, never asked.

    Args:
        value: The payload.
        columns: At most so many columns.
        only_ascii: Spell out all that is not ASCII.
    """
    return cut(escape(_beginning(value, columns), only_ascii=only_ascii), columns, only_ascii=only_ascii)


def _beginning(value: object, columns: int) -> str:
    """Enough of the JSON to fill the columns; the rest of a large payload is never written."""
    if isinstance(value, str):
        value = value[: 4 * columns + 4]  # combining characters take no columns
    parts: list[str] = []
    length = 0
    try:
        for chunk in _chunks(value):
            parts.append(chunk)
            length += len(chunk)
            if length > 4 * columns:
                break
    except (TypeError, ValueError, RecursionError):
        return f"<{type(value).__name__}>"
    return "".join(parts)


def _chunks(value: object) -> Iterator[str]:
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_named)
    return encoder.iterencode(value)


def _named(value: object) -> str:
    return f"<{type(value).__name__}>"
