"""What the processes of the killed memos do: keep something, and be killed before the body has ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph_ext import LedgerSaver, with_ledger
from langgraph_ext.nodes import Frame, durable
from tests.support.apps import CONFIG, State, line
from tests.support.faults import kill_myself

__all__ = ["remember"]


def remember(folder: str) -> list[str]:
    """Run, or go on; the first process is killed behind its memo. Returns what the run has logged."""
    resumes = (Path(folder) / "runs.db").exists()

    @durable
    def node(state: State, frame: Frame) -> Any:
        if "answer" not in frame.memo:
            frame.memo["answer"] = "paid once"
            kill_myself()
        return {"log": [frame.memo["answer"], "done"]}

    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = with_ledger(line(saver, a=node))
        app.invoke(None if resumes else {"log": []}, CONFIG, durability="sync")
        log: list[str] = app.get_state(CONFIG).values["log"]
        return log
