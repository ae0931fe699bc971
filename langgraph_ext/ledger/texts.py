"""Texts: what people wrote, kept within a limit."""

from __future__ import annotations

__all__ = ["MOST_BYTES", "cut", "message_of"]

MOST_BYTES = 64 * 1024
"""Of an error's message, or of a note, in UTF-8 (rule L7)."""


def cut(text: str) -> str:
    """The text if it is short enough, else its beginning and how much was cut. Half characters are spelt out."""
    data = text.encode(errors="backslashreplace")
    if len(data) <= MOST_BYTES:
        return data.decode()
    says = "… [{cut} of {all} bytes cut]"
    room = MOST_BYTES - len(says.format(cut=len(data), all=len(data)).encode())
    kept = data[:room].decode(errors="ignore")  # all but the part of a character at the end is whole
    return kept + says.format(cut=len(data) - len(kept.encode()), all=len(data))


def message_of(error: object) -> str:
    """What an error says of itself, cut; also of one that cannot say it."""
    try:
        return cut(str(error))
    except Exception as failed:  # noqa: BLE001 - whatever a foreign class does, its write is stored
        return f"(its text cannot be had: {type(failed).__name__})"
