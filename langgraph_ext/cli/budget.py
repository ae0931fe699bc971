"""The command `budget`: what a run used, and how much it may; and raising that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from langgraph_ext.cli.ending import exits_with_code
from langgraph_ext.cli.options import DatabaseOption, JsonOption, RunArgument
from langgraph_ext.cli.place import opened, run_id_of
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import Printer, print_json
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import Dimension, Spent, Usage
from langgraph_ext.render import Column, table

__all__ = ["budget", "usage_notes"]

_COLUMNS = (
    Column("DIMENSION", "label"),
    Column("USED", to_the_right=True),
    Column("RESERVED", to_the_right=True),
    Column("LIMIT", to_the_right=True),
)


def budget(
    run: RunArgument,
    raised: Annotated[
        list[str] | None,
        typer.Option("--raise", metavar="NAME=LIMIT", help="The new limit of a dimension, such as tokens=50000."),
    ] = None,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what a run used of models and what is reserved for it, beside its limits; or raise a limit.

    A run that has ended by its budget goes on when it is invoked again after that.
    """
    with exits_with_code(), opened(db) as ledger:
        run_id = run_id_of(ledger, run)
        if raised:
            ledger.raise_budget(run_id, **_wanted(raised))
        usage = ledger.usage(run_id)
        if as_json:
            print_json({"usage": plain(usage)})
            return
        printer = Printer()
        rows = [_row(dimension, spent) for dimension, spent in usage.spent.items()]
        printer.lines(table(_COLUMNS, rows, printer.fit))


def usage_notes(usage: Usage) -> Iterable[str]:
    """What there is to say of what a run used: a few words for each dimension in which there is something."""
    for dimension, spent in usage.spent.items():
        if dimension is Dimension.WALL_SECONDS and spent.limit is None:
            continue
        if spent.known or spent.reserved or spent.limit is not None:
            limit = "" if spent.limit is None else f"/{_number(spent.limit)}"
            reserved = f" (+{_number(spent.reserved)} reserved)" if spent.reserved else ""
            yield f"{dimension} {_used(spent)}{limit}{reserved}"


def _row(dimension: Dimension, spent: Spent) -> tuple[str, ...]:
    limit = "none" if spent.limit is None else _number(spent.limit)
    return str(dimension), _used(spent), _number(spent.reserved), limit


def _used(spent: Spent) -> str:
    """With a sign where it is only the least that was used."""
    return _number(spent.known) if spent.used is not None else f">={_number(spent.known)}"


def _number(amount: int | float) -> str:
    return str(amount) if isinstance(amount, int) else f"{amount:.6f}".rstrip("0").rstrip(".")


def _wanted(raised: Iterable[str]) -> dict[str, Any]:
    """What `--raise` names, as `raise_budget` takes it."""
    wanted: dict[str, Any] = {}
    for each in raised:
        name, _, limit = each.partition("=")
        if name not in list(Dimension):
            raise InvalidArgument(f"--raise {each!r}: {name!r} is no dimension; those are {', '.join(Dimension)}")
        try:
            wanted[name] = int(limit) if Dimension(name).scale == 1 else float(limit)
        except ValueError:
            raise InvalidArgument(f"--raise {each!r}: {limit!r} is no number; write {name}=LIMIT") from None
    return wanted
