"""Whether to go on: what a command asks before it changes what cannot be changed back."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from langgraph_ext.cli.ending import say
from langgraph_ext.errors import InvalidArgument

__all__ = ["YesOption", "ask"]

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether to go on.")]


def ask(yes: bool, *, as_json: bool, nothing: str) -> None:
    """Ask whether to go on, unless that was said.

    Args:
        yes: It was said.
        as_json: A program reads the output, and answers nothing.
        nothing: What is said of it if not.

    Raises:
        InvalidArgument: There is nobody to ask.
    """
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise InvalidArgument(f"{nothing}: pass --yes to do it, or --dry-run only to look")
    if not typer.confirm("Go on?"):
        say(nothing)
        raise typer.Exit
