"""The command `crash-test`: a user's scenario, killed at every commit. The only command that runs a user's code."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Annotated, Any, cast

import typer

from langgraph_ext.cli.crash_progress import shown_progress
from langgraph_ext.cli.ending import Status, exits_with_code
from langgraph_ext.cli.options import JsonOption
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import Printer, print_json
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.render import Line, Part, escape
from langgraph_ext.testing import CrashFinding, CrashReport, crash_at_every_commit
from langgraph_ext.testing.points import POINTS, Point
from langgraph_ext.testing.problems import AtMost
from langgraph_ext.testing.report import lines_of

__all__ = ["crash_test"]


def crash_test(
    target: Annotated[
        str, typer.Argument(metavar="MODULE:FUNCTION", help="The scenario; its module is also looked for here.")
    ],
    db: Annotated[
        str | None,
        typer.Option(
            "--db",
            metavar="PATH",
            help="A new file; the databases are made there and beside it. [default: in a new temporary folder]",
            show_default=False,
        ),
    ] = None,
    points: Annotated[
        str, typer.Option("--points", metavar="LIST", help="Where to kill: some of before,inside,after.")
    ] = ",".join(POINTS),
    only: Annotated[
        str | None, typer.Option("--only", metavar="N:POINT", help="Repeat one kill, such as 3:after or 3:inside:2.")
    ] = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            "--at-most",
            metavar="[KEY=]N",
            help="How often an effect may happen, or all may; N may be any. [default: once]",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long a process may run.")] = 30.0,
    resumes: Annotated[
        int, typer.Option("--resumes", metavar="N", min=1, help="In how many processes it may be gone on with.")
    ] = 1,
    max_broken: Annotated[
        int, typer.Option("--max-broken", metavar="N", min=1, help="Stop after so many kills with findings.")
    ] = 10,
    workers: Annotated[
        int,
        typer.Option(
            "--workers", metavar="N", min=1, help="How many kills at once, if runs do not disturb each other."
        ),
    ] = 1,
    ignore_fact: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore-fact",
            metavar="NAME",
            help="A fact of effects that is not compared; * for all.",
            show_default=False,
        ),
    ] = None,
    ignore_state: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore-state",
            metavar="CHANNEL",
            help="A part of the state that is not compared; * for all.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Kill a scenario at every commit, go on with it, and print what was wrong then.

    The scenario is a function (db_url, effects) that starts or resumes a run; see docs/testing.md. Exit status 1 when
    something was found, or nothing was tested; the databases with findings are kept. A terminal is shown how far it is.
    """
    with exits_with_code():
        report = _report(
            target,
            db,
            points=cast(list[Point], points.split(",")),
            only=None if only is None else _only(only),
            at_most=_at_most(at_most or []),
            timeout_seconds=timeout,
            resumes=resumes,
            max_broken=max_broken,
            workers=workers,
            ignore_facts=ignore_fact or [],
            ignore_state=ignore_state or [],
            path=[os.getcwd(), *sys.path],
        )
        if as_json:
            print_json({"sound": report.sound, **plain(report)})
        else:
            printer = Printer()
            printer.lines(lines_of(report, printer.uncut))
            if report.first_broken is not None:
                printer.lines(_advice(target, report.first_broken))
    if not report.sound:
        raise typer.Exit(Status.FOUND)


def _report(target: str, db: str | None, **options: Any) -> CrashReport:
    """Run it on the file that was named, or in a folder of its own, which goes unless there is something to look at."""
    folder = tempfile.mkdtemp(prefix="langgraph-ext-crash-") if db is None else None
    sound = True
    try:
        with shown_progress() as on_progress:
            report = crash_at_every_commit(target, db=db or f"{folder}/crash.db", on_progress=on_progress, **options)
        sound = report.sound
    except InvalidArgument as error:
        for note in getattr(error, "__notes__", ()):  # what the module printed, and its traceback
            typer.echo(note, err=True)
        raise
    finally:
        if folder is not None and sound:
            shutil.rmtree(folder, ignore_errors=True)
    return report


def _only(named: str) -> tuple[int, str]:
    number, colon, point = named.partition(":")
    if not (colon and number.isdecimal()):
        raise InvalidArgument(f"--only is {named!r}; write the boundary and the point, such as 3:after or 3:inside:2")
    return int(number), point


def _at_most(named: list[str]) -> AtMost:
    by_key: dict[str, int | None] = {}
    for each in named:
        key, equals, number = each.rpartition("=")
        if not (number.isdecimal() or number == "any") or (equals and not key) or (not equals and len(named) > 1):
            raise InvalidArgument(f"--at-most is {each!r}; write N for all effects, or KEY=N for some of them")
        by_key[key] = None if number == "any" else int(number)
    return by_key.get("", by_key)


def _advice(target: str, first: CrashFinding) -> Iterator[Line]:
    said = [f"Look into the first one: {first.database}"]
    if first.boundary:
        said.append(f"Repeat it: langgraph-ext crash-test {target} --only {first.boundary}:{first.point}")
    return (Line((Part(escape(text), "note"),)) for text in said)
