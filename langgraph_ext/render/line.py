"""A line: parts of escaped text, each with a role that a terminal may colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from langgraph_ext.render.text import cut, mark, width

__all__ = ["ANY", "Fit", "Line", "Part", "Role", "fitted"]

Role = Literal["branch", "title", "label", "status", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What fits where lines go."""

    columns: int | None = None
    """Columns of the terminal; longer lines are cut, visibly. None cuts none."""
    only_ascii: bool = False
    """Draw with `|-`, and spell out all that is not ASCII."""


ANY = Fit()
"""Lines of any width, in Unicode."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a line. Its text is escaped already."""

    text: str
    role: Role


@dataclass(frozen=True, slots=True)
class Line:
    """Parts beside each other; as text, `str(line)`."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "".join(part.text for part in self.parts)


def fitted(parts: Sequence[Part], to: Fit) -> Line:
    """The parts as one line that fits, without spaces at its end."""
    columns, text = to.columns, "".join(part.text for part in parts)
    if columns is None or width(text) <= columns:
        return _line(parts)
    end = mark(only_ascii=to.only_ascii)[: max(columns, 0)]
    left = len(cut(text, columns, only_ascii=to.only_ascii)) - len(end)
    kept: list[Part] = []
    for part in parts:
        if len(part.text) > left:
            kept.append(Part(part.text[:left] + end, part.role))
            break
        kept.append(part)
        left -= len(part.text)
    return _line(kept)


def _line(parts: Sequence[Part]) -> Line:
    """The line, without spaces at its end."""
    kept = list(parts)
    while kept and not kept[-1].text.strip(" "):
        kept.pop()
    if kept:
        kept[-1] = Part(kept[-1].text.rstrip(" "), kept[-1].role)
    return Line(tuple(kept))
