"""Commands that take away what is old, each after saying what it will do, and the one that copies the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from langgraph_ext.cli.asked import YesOption, ask
from langgraph_ext.cli.ending import exits_with_code
from langgraph_ext.cli.options import DatabaseOption, JsonOption
from langgraph_ext.cli.place import find, need_keys, opened, opened_with_keys
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import Printer, print_json
from langgraph_ext.cli.progress import shown_steps
from langgraph_ext.cli.spans import seconds_of
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import open_ends
from langgraph_ext.render import Column, table
from langgraph_ext.saver import Kept, LedgerSaver, Pruned, Swept, deletion, sweeping

__all__ = ["backup", "prune", "sweep"]

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be taken away.")]

KeepLedgerOption = Annotated[
    bool,
    typer.Option("--keep-ledger", help="Of threads that are deleted, keep runs, totals and events, without payloads."),
]

_COLUMNS = (
    Column("THREAD", "label"),
    Column("CHECKPOINTS", to_the_right=True),
    Column("HIDDEN", to_the_right=True),
    Column("HAS"),
)

_HAS = {Kept.HELD: "a live lease", Kept.ASKS: "open questions", Kept.IN_DOUBT: "effects in doubt"}


@contextmanager
def _opened(option: str | None) -> Iterator[LedgerSaver]:
    """A saver on the database of `find`, closed at the end."""
    with LedgerSaver(opened_with_keys(find(option).path)) as saver:
        need_keys(saver.database)
        yield saver


def prune(
    threads: Annotated[list[str], typer.Argument(metavar="THREAD...", help="The threads.")],
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=1, help="So many of the newest checkpoints of a namespace stay.")
    ] = 1,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the threads, for good.")] = False,
    keep_ledger: KeepLedgerOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Shorten threads to their newest checkpoints, or delete them; it says first what that takes away, and asks.

    What a DeltaChannel is rebuilt from stays stored, out of sight (HIDDEN). Checkpoints with an open question or an
    effect in doubt stay. A thread that somebody runs under a lease is refused.
    """
    with exits_with_code(), _opened(db) as saver:
        if keep_ledger and not delete:
            raise InvalidArgument("--keep-ledger is about deleting; pass --delete, or leave it out")
        would = {thread: _would(saver, thread, keep, delete=delete) for thread in dict.fromkeys(threads)}
        if not as_json:
            _show(saver, would, "delete" if delete else "prune")
        if dry_run or not any(gone.checkpoints for gone in would.values()):
            if as_json:
                print_json(_as_json(would, delete=delete, dry_run=dry_run))
            return
        ask(yes, as_json=as_json, nothing="nothing was taken away")
        did: dict[str, Pruned] = {}
        with shown_steps("deleting" if delete else "pruning", "threads") as step:
            for thread in would:
                if delete:
                    saver.delete_thread(thread, keep_ledger=keep_ledger)
                    did[thread] = would[thread]
                else:
                    did[thread] = saver.prune_thread(thread, keep_last=keep)
                if step is not None:
                    step(len(did), len(would))
        if as_json:
            print_json(_as_json(did, delete=delete, dry_run=False))
        else:
            typer.echo(f"done: {_checkpoints(did)}")


def _would(saver: LedgerSaver, thread: str, keep: int, *, delete: bool) -> Pruned:
    if delete:
        return Pruned(checkpoints=saver.database.read(deletion.to_delete, thread))
    return saver.prune_thread(thread, keep_last=keep, dry_run=True)


def _show(saver: LedgerSaver, would: dict[str, Pruned], what: str) -> None:
    now_us = saver.database.clock_us()
    rows = []
    for thread, gone in would.items():
        why = saver.database.read(open_ends.why_kept, thread, now_us=now_us)
        rows.append((thread, str(gone.checkpoints), str(gone.hidden), "" if why is None else _HAS[why]))
    printer = Printer()
    printer.lines(table(_COLUMNS, rows, printer.fit))
    typer.echo(f"would {what}: {_checkpoints(would)}")


def _checkpoints(of: dict[str, Pruned]) -> str:
    concerned = [gone for gone in of.values() if gone.checkpoints]
    count = sum(gone.checkpoints for gone in concerned)
    return f"{_number(count, 'checkpoint')} of {_number(len(concerned), 'thread')}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _as_json(found: dict[str, Pruned], *, delete: bool, dry_run: bool) -> dict[str, object]:
    told = [
        {
            "thread_id": name,
            "checkpoints": gone.checkpoints,
            "hidden": gone.hidden,
            "events": None if dry_run or delete else gone.events,
            "deleted": delete and not dry_run,
        }
        for name, gone in found.items()
    ]
    return {"dry_run": dry_run, "threads": told}


def sweep(
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Checkpoints stored longer ago go, such as 30d or 12h."),
    ] = None,
    keep_last: Annotated[
        int | None,
        typer.Option(
            "--keep-last",
            metavar="N",
            min=0,
            help="So many of the newest of a namespace stay in any case; 0: whole threads are deleted when nothing was "
            "stored in them for so long. [default: 1]",
        ),
    ] = None,
    events_older_than: Annotated[
        str | None,
        typer.Option("--events-older-than", metavar="AGE", help="Events stored longer ago are shown no more."),
    ] = None,
    keep_ledger: KeepLedgerOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take away old checkpoints of all threads, and old events; it says first what that would be, and asks.

    Threads that somebody runs under a lease, that wait for an answer, or of which an effect is in doubt are left alone,
    and counted. It goes in small batches, so that others write meanwhile; stop it when you like, and begin it again.
    """
    with exits_with_code(), _opened(db) as saver:
        options: dict[str, Any] = {
            "older_than_seconds": seconds_of(older_than, "--older-than"),
            "keep_last": keep_last,
            "events_older_than_seconds": seconds_of(events_older_than, "--events-older-than"),
            "keep_ledger": keep_ledger,
        }
        would = _swept(saver, "looking", options, dry_run=True)
        if not as_json:
            typer.echo(f"would take away: {_told(would)}")
        if dry_run or not (would.checkpoints or would.events):
            if as_json:
                print_json({"dry_run": dry_run, "swept": plain(would)})
            return
        ask(yes, as_json=as_json, nothing="nothing was taken away")
        did = _swept(saver, "sweeping", options, dry_run=False)
        if as_json:
            print_json({"dry_run": False, "swept": plain(did)})
        else:
            typer.echo(f"done: {_told(did)}")


def _swept(saver: LedgerSaver, doing: str, options: dict[str, Any], *, dry_run: bool) -> Swept:
    with shown_steps(doing, "threads") as step:
        if step is None:
            return saver.sweep(**options, dry_run=dry_run)
        threads = saver.database.read(sweeping.count_threads)
        return saver.sweep(**options, dry_run=dry_run, on_progress=lambda done: step(done.threads, threads))


def _told(swept: Swept) -> str:
    deleted = f" ({swept.deleted} of them deleted)" if swept.deleted else ""
    threads = _number(swept.pruned + swept.deleted, "thread")
    parts = [f"{_number(swept.checkpoints, 'checkpoint')} of {threads}{deleted}", _number(swept.events, "event")]
    left = [f"{number} with {_HAS[why]}" for why, number in swept.skipped.items()]
    return ", ".join(parts) + (f"; left alone: {', '.join(left)}" if left else "")


def backup(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The new file; one that is there is never replaced.")],
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the database to a new file while others write to it.

    It is one moment's state, complete and found to be sound before the file appears under its name.
    """
    with exits_with_code(), opened(db) as ledger:
        with shown_steps("copying", "pages") as step:
            made = ledger.backup(target, on_progress=step)
        if as_json:
            print_json({"backup": plain(made)})
        else:
            typer.echo(f"copied to {made.path}: {made.size_bytes} bytes, sound")
