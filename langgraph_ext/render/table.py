"""A table: columns aligned by spaces, nothing drawn around them, so that it can be read and cut apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langgraph_ext.render.line import ANY, Fit, Line, Part, Role, fitted
from langgraph_ext.render.text import escape, width

__all__ = ["Column", "table"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    role: Role = "note"
    to_the_right: bool = False
    at_least: int = 0
    """Columns of the terminal that it takes at least, for rows that are not known yet."""


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    to: Fit = ANY,
    *,
    titles: bool = True,
) -> Iterator[Line]:
    """The lines of a table, its titles first, made to fit.

    Args:
        columns: What stands above, and how it is aligned.
        rows: One text for each column.
        to: What fits.
        titles: Whether the titles are a line of their own.
    """
    cells = [[escape(cell, only_ascii=to.only_ascii) for cell in row] for row in rows]
    heads = [column.title if titles else "" for column in columns]
    widths = [max(columns[at].at_least, *(width(row[at]) for row in [heads, *cells])) for at in range(len(columns))]
    for number, row in enumerate([heads, *cells] if titles else cells):
        roles: list[Role] = ["title" if titles and number == 0 else column.role for column in columns]
        parts = _parts(columns, row, widths, roles)
        yield fitted(list(parts), to)


def _parts(
    columns: Sequence[Column], row: Sequence[str], widths: Sequence[int], roles: Sequence[Role]
) -> Iterator[Part]:
    for at, column in enumerate(columns):
        space = " " * (widths[at] - width(row[at]))
        if at:
            yield Part("  ", "note")
        if column.to_the_right:
            yield Part(space, "note")
        yield Part(row[at], roles[at])
        if not column.to_the_right:
            yield Part(space, "note")
