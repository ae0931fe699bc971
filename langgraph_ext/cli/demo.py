"""The command `demo`: an agent that refunds an order, killed twice and approved from another process."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

import langgraph_ext
from langgraph_ext.cli.ending import Status, exits_with_code, say
from langgraph_ext.cli.options import JsonOption
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import Printer, print_json
from langgraph_ext.cli.show import show
from langgraph_ext.demo.processes import DemoError
from langgraph_ext.demo.story import Told, tell
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.render import Line, Part, escape

__all__ = ["demo"]


def demo(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help='The agent\'s chat model, such as "openai:gpt-5-mini" (extra langchain). [default: a scripted one]',
            show_default=False,
        ),
    ] = None,
    db: Annotated[
        str | None,
        typer.Option(
            "--db",
            metavar="PATH",
            help="A new file for the database, which is kept. [default: in a temporary folder, which goes]",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Charge an order and have an agent refund it, in five processes of which two are killed; show the run.

    The refund is approved by a process that runs nothing. The bank is a process on this machine. Without --model no
    network and no key is needed. Exit status 1 when the bank was asked for more than one charge and one refund.
    """
    with exits_with_code():
        if model is not None:
            _check(model)
        with _file(db) as path:
            told = _told(path, model, shows=not as_json)
            if as_json:
                print_json({"good": told.good, **plain(told)})
            else:
                _show(path, told)
    if not told.good:
        raise typer.Exit(Status.FOUND)


def _check(model: str) -> None:
    """A model that cannot be made is told before anything is begun."""
    if not model:
        raise InvalidArgument("--model is empty; name a chat model, such as openai:gpt-5-mini, or leave it out")
    langgraph_ext.AgentNode(name="demo", model=model)


@contextmanager
def _file(named: str | None) -> Iterator[Path]:
    if named is not None:
        yield Path(named).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="langgraph-ext-demo-") as folder:
        yield Path(folder).resolve() / "returns.db"


def _told(path: Path, model: str | None, *, shows: bool) -> Told:
    def progress(text: str) -> None:
        typer.echo(escape(text))
        sys.stdout.flush()

    try:
        return tell(path, model, progress if shows else lambda text: None)
    except DemoError as error:
        for note in getattr(error, "__notes__", ()):  # what the process has said that failed
            typer.echo(note, err=True)
        say(f"the demo failed: {error}")
        raise typer.Exit(Status.FOUND) from None


def _show(path: Path, told: Told) -> None:
    typer.echo(f"$ langgraph-ext show {told.run_id[:13]}")
    show(told.run_id, db=str(path))
    Printer().lines([Line((Part("verdict: ", "title"), Part(escape(str(told)), "note")))])
