"""Text for a terminal: nothing in it moves the cursor, and its width is known."""

from __future__ import annotations

import unicodedata

__all__ = ["cut", "escape", "first_line", "mark", "width"]

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(text: str, *, only_ascii: bool = False) -> str:
    r"""The text with everything spelt out that a terminal would obey or hide.

    Control characters, line separators, bidirectional overrides, lone surrogates and unassigned characters become `\n`,
    `\x1b`, `\u202e`; spaces and letters of every script stay. `only_ascii` spells out all that is not ASCII, but for
    the mark `…`, which becomes `...`.
    """
    if text.isprintable() and (text.isascii() or not only_ascii):
        return text
    if only_ascii:
        text = text.replace(mark(), mark(only_ascii=True))
    return "".join(char if _harmless(char, only_ascii) else _spelt(char) for char in text)


def _harmless(char: str, only_ascii: bool) -> bool:
    if only_ascii and not char.isascii():
        return False
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _spelt(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def width(text: str) -> int:
    """Columns that escaped text takes: East Asian wide characters two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def mark(*, only_ascii: bool = False) -> str:
    """What stands where something was cut off."""
    return "..." if only_ascii else "…"


def cut(text: str, columns: int, *, only_ascii: bool = False) -> str:
    """Escaped text in at most so many columns; what was cut off is marked."""
    if width(text) <= columns:
        return text
    end = mark(only_ascii=only_ascii)[: max(columns, 0)]
    left = columns - len(end)
    kept: list[str] = []
    for char in text:
        left -= _columns(char)
        if left < 0:
            break
        kept.append(char)
    return "".join(kept) + end


def first_line(text: str) -> str:
    """The first line that is not blank, not escaped yet; marked when more lines follow."""
    lines = text.strip().splitlines() or [""]
    return lines[0].rstrip() + (f" {mark()}" if len(lines) > 1 else "")
