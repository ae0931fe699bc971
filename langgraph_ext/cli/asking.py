"""Commands that ask something of a run: to end, or to take a message into account."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

import langgraph_ext
from langgraph_ext import canonical
from langgraph_ext.cli.ending import exits_with_code
from langgraph_ext.cli.options import DatabaseOption, JsonOption, RunArgument
from langgraph_ext.cli.place import opened, run_id_of
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import print_json
from langgraph_ext.errors import ConflictError, InvalidArgument
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.records import CancelMode

__all__ = ["cancel", "steer"]


def cancel(
    run: RunArgument,
    mode: Annotated[
        CancelMode, typer.Option("--mode", help="What of a run that is being run may still begin.")
    ] = CancelMode.NOW,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for its record.")] = None,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel a run: at once if nobody runs it; else it is asked, and ends at its next durable node or step.

    What is running is finished and stored; its agents stop with it. The same again changes nothing.
    """
    with exits_with_code(), opened(db) as ledger:
        found = ledger.cancel(run_id_of(ledger, run), mode=mode, reason=reason)
        if found.status.ended:
            _stop_agents(ledger, found.run_id, reason)
        if as_json:
            print_json({"run": plain(found), "inbox": plain(ledger.inbox(found.run_id))})
        elif found.status.ended:
            typer.echo(f"run {found.run_id} is cancelled")
        else:
            typer.echo(f"run {found.run_id} is {found.status} and was asked to end")


def _stop_agents(ledger: RunLedger, run_id: str, reason: str | None) -> None:
    """Stop the agents of a run that nobody runs: nobody else would, before somebody comes to its thread again."""
    for child in ledger.children(run_id):
        with langgraph_ext.AgentGraphEngine(ledger) as engine, suppress(ConflictError):  # it has ended
            engine.cancel(child.run_id, reason=reason)


def steer(
    run: RunArgument,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="What to tell it: text.")],
    is_json: Annotated[bool, typer.Option("--json-message", help="The message is JSON.")] = False,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave a message for a run: the next attempt of a node that accepts steering has it, once."""
    with exits_with_code(), opened(db) as ledger:
        run_id = run_id_of(ledger, run)
        try:
            told = canonical.decode(message.encode()) if is_json else message
        except ValueError:
            raise InvalidArgument("MESSAGE is not JSON, as --json-message says; quote it for the shell") from None
        ledger.steer(run_id, told)
        if as_json:
            print_json({"inbox": plain(ledger.inbox(run_id))})
        else:
            typer.echo(f"run {run_id} was told; the next node that accepts steering hears it")
