"""The commands. Each opens the database, asks its ledger, and prints what it is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import typer

from langgraph_ext import __version__, canonical
from langgraph_ext.cli.agents import resolve_operation
from langgraph_ext.cli.answering import answer, interrupts
from langgraph_ext.cli.asking import cancel, steer
from langgraph_ext.cli.budget import budget
from langgraph_ext.cli.checkup import check_up
from langgraph_ext.cli.crash_test import crash_test
from langgraph_ext.cli.demo import demo
from langgraph_ext.cli.ending import Status, exits_with_code, say
from langgraph_ext.cli.options import AfterOption, DatabaseOption, JsonOption, NoPayloadsOption
from langgraph_ext.cli.place import find, need_keys, opened, run_id_of
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import Printer, print_json
from langgraph_ext.cli.questions import Questions, shown_by
from langgraph_ext.cli.reencrypt import reencrypt
from langgraph_ext.cli.retention import backup, prune, sweep
from langgraph_ext.cli.show import show
from langgraph_ext.cli.story import effect_node
from langgraph_ext.cli.told import event_line, run_lines
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.records import Event, RunStatus
from langgraph_ext.render import Column, draw, table

__all__ = ["app"]

_LIMIT = 100
"""Events that `events` prints unless told otherwise."""

_PAGE = 1000
"""Events read at a time."""

app = typer.Typer(
    help="Look at the runs in a database of langgraph-ext, answer their questions, take away what is old, and crash "
    "your own in tests.",
    epilog="Exit status: 0 done; 1 something is wrong (verify, doctor, crash-test, demo); 2 not done, stderr says why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help as plain text: the same in a terminal, a pipe and the documentation
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"langgraph-ext {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    """What may stand before a command."""


@app.command()
def runs(
    thread: Annotated[str | None, typer.Option("--thread", metavar="T", help="Only runs of this thread.")] = None,
    status: Annotated[
        RunStatus | None, typer.Option("--status", metavar="S", help="Only runs that stand so, such as paused.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="At most so many runs.")] = 100,
    before: Annotated[
        str | None, typer.Option("--before", metavar="RUN", help="Only runs that began before this one.")
    ] = None,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, the newest first."""
    with exits_with_code(), opened(db) as ledger:
        last = None if before is None else run_id_of(ledger, before)
        found = ledger.runs(thread_id=thread, status=status, before=last, limit=limit)
        if as_json:
            print_json({"runs": plain(found)})
            return
        if not found:
            say("no runs")
            return
        printer = Printer()
        printer.lines(run_lines(found, datetime.now(UTC), printer.fit))


app.command()(show)


@app.command()
def events(
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Only events of this run (its id, or its beginning).")
    ] = None,
    after: AfterOption = 0,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", min=1, help="End after so many events. [default: 100; none with --follow]"
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, looking every 0.1 s, until Ctrl-C.")] = False,
    no_payloads: NoPayloadsOption = False,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print events in the order of their commits, each as soon as it is there.

    The number in front is the event's cursor: --after takes it, to read on behind it. --json prints one JSON object a
    line.
    """
    with exits_with_code(), opened(db) as ledger:
        run_id = None if run is None else run_id_of(ledger, run)
        if follow:
            source: Iterator[Event] = islice(ledger.follow(run_id, after=after), limit)
        else:
            source = _read(ledger, run_id, after, limit or _LIMIT)
        printer, questions = Printer(), Questions(ledger)
        shown = shown_by(payloads=not no_payloads, only_ascii=printer.fit.only_ascii)
        for event in source:
            asked = None if no_payloads else questions.asked_in(event)
            if as_json:
                value = {} if asked is None else {"value": plain(asked.value), "value_type": asked.value_type}
                print_json(plain(event) | value, indented=False)
            else:
                payload = "" if asked is None else shown(asked)
                printer.lines(event_line(event, payload, printer.fit, names_run=run is None))
            printer.flush()


def _read(ledger: RunLedger, run_id: str | None, after: int, limit: int) -> Iterator[Event]:
    """Events that are there, a page at a time."""
    while limit > 0:
        page = ledger.events(run_id, after=after, limit=min(limit, _PAGE))
        yield from page
        if len(page) < min(limit, _PAGE):
            return
        limit -= len(page)
        after = page[-1].cursor


@app.command("resolve-effect")
def resolve_effect(
    effect: Annotated[str, typer.Argument(metavar="EFFECT_ID", help="The effect's id, as show prints it.")],
    receipt: Annotated[
        str | None, typer.Option("--receipt", metavar="JSON", help="It happened, and this is what shows it.")
    ] = None,
    did_not_happen: Annotated[bool, typer.Option("--did-not-happen", help="Nothing was done.")] = False,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what an effect in doubt came to, after looking it up outside. Once: the first word counts.

    The run goes on when it is invoked again: with the receipt, or by doing it then.
    """
    with exits_with_code(), opened(db) as ledger:
        found = ledger.resolve_effect(effect, **_said(receipt, did_not_happen=did_not_happen))
        if as_json:
            print_json({"effect": plain(found)})
            return
        printer = Printer()
        shown = shown_by(payloads=True, only_ascii=printer.fit.only_ascii)
        printer.lines(draw(effect_node(found, shown), printer.fit))


@app.command()
def recover(
    attempt: Annotated[str, typer.Argument(metavar="ATTEMPT_ID", help="The attempt's id, as show prints it.")],
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let the next attempt of a node act, though nobody knows how this one ended; once.

    It acts when the run is invoked again. For an attempt that was interrupted, or left running by a process that died.
    """
    with exits_with_code(), opened(db) as ledger:
        ledger.authorize_recovery(attempt)
        if as_json:
            print_json({"attempt_id": attempt, "authorized": True})
        else:
            typer.echo(f"attempt {attempt} authorized; invoke the run again to go on")


app.command("resolve-operation")(resolve_operation)
app.command("budget")(budget)


def _said(receipt: str | None, *, did_not_happen: bool) -> dict[str, Any]:
    """What the options say of an effect, as `resolve_effect` takes it."""
    said: dict[str, Any] = {"happened": False} if did_not_happen else {}
    if receipt is not None:
        try:
            said["receipt"] = canonical.decode(receipt.encode())
        except ValueError:
            raise InvalidArgument("--receipt is not JSON; quote it for the shell: --receipt '{\"id\": 7}'") from None
    if len(said) != 1:
        raise InvalidArgument("pass --receipt JSON or --did-not-happen, one of them")
    return said


@app.command()
def verify(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="The run (its id, or its beginning); else all.")
    ] = None,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute what the ledger says, and print what does not agree. Exit status 1 when something does not."""
    with exits_with_code(), opened(db) as ledger:
        need_keys(ledger.database)
        findings = ledger.verify(None if run is None else run_id_of(ledger, run))
        printer = Printer()
        if as_json:
            print_json({"findings": plain(findings)})
        elif findings:
            rows = [(finding.code, finding.run_id or "", finding.message) for finding in findings]
            columns = (Column("FINDING", "label"), Column("RUN"), Column("MESSAGE"))
            printer.lines(table(columns, rows, printer.uncut))
        else:
            typer.echo("sound: no findings")
    if findings:
        raise typer.Exit(Status.FOUND)


@app.command()
def doctor(db: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Look at the installation and the database file. Exit status 1 when something is wrong.

    The file is read in full (gigabytes take minutes), and neither migrated nor changed. Sizes are in bytes.
    """
    with exits_with_code():
        checkup = check_up(find(db))
        printer = Printer()
        if as_json:
            print_json(checkup.as_json())
        else:
            columns = (Column("", "label"), Column(""))
            printer.lines(table(columns, list(checkup.as_rows()), printer.uncut, titles=False))
    if checkup.problems:
        raise typer.Exit(Status.FOUND)


app.command()(interrupts)
app.command()(answer)
app.command()(cancel)
app.command()(steer)
app.command()(prune)
app.command()(sweep)
app.command()(backup)
app.command()(reencrypt)
app.command("crash-test")(crash_test)
app.command()(demo)
