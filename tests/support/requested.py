"""What processes do that send one request at once."""

from __future__ import annotations

from typing import Any

from langgraph_ext import LedgerSaver, with_ledger
from langgraph_ext.errors import ConflictError
from tests.support.apps import line, says

__all__ = ["ask_once"]


def ask_once(folder: str, attached: bool, number: int, word: str) -> str:
    """Begin the run of one request, on a thread of one's own; returns the error's code, or "done"."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = line(saver, a=says("a"))
        app = with_ledger(app) if attached else app
        config: Any = {"configurable": {"thread_id": f"t{number}", "run_key": "order-7"}}
        try:
            app.invoke({"log": [word]}, config, durability="sync")
        except ConflictError as error:
            return error.code
    return "done"
