"""The options that several commands share, described once."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["AfterOption", "DatabaseOption", "JsonOption", "NoPayloadsOption", "RunArgument"]

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="PATH",
        help="The database file; else the environment variable LANGGRAPH_EXT_DB names it.",
        show_default=False,
    ),
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs; times are ISO 8601, UTC.")]

NoPayloadsOption = Annotated[
    bool,
    typer.Option("--no-payloads", help="Print no questions and answers, receipts of effects, or messages of agents."),
]

AfterOption = Annotated[
    int, typer.Option("--after", metavar="N", min=0, help="Only events behind this cursor; 0 is the beginning.")
]

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The run's id, or a beginning of it that no other run has.")
]
