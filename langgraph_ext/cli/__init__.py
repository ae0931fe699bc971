"""The command `langgraph-ext`: look at runs, follow and verify them, resolve what is in doubt, crash them in tests.

It comes with the extra `cli`; without it, `main` says how to install it. Nothing is imported before `main` is called.
"""

from __future__ import annotations

import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Run the command that `sys.argv` names; ends with `SystemExit`."""
    try:
        _run()
    except KeyboardInterrupt:  # while it was still being loaded; the commands end by themselves
        sys.exit(_INTERRUPTED)


def _run() -> None:
    try:
        from langgraph_ext.cli.app import app  # noqa: PLC0415 - its imports are an optional extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        missing = f"langgraph-ext: the command line needs {error.name!r}; install it: pip install 'langgraph-ext[cli]'"
        print(missing, file=sys.stderr)  # noqa: T201 - this is the command line
        sys.exit(2)
    app(prog_name="langgraph-ext")
