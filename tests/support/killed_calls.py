"""What the processes of the killed calls do: pay for an answer, and be killed at the commit of its bill."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langgraph_ext import Budget, LedgerSaver, RunLedger, with_ledger
from langgraph_ext.database import open_database
from langgraph_ext.database.connection import WriteConnection
from langgraph_ext.ledger import Dimension
from langgraph_ext.nodes import Frame, durable
from tests.support.apps import CONFIG, State, line
from tests.support.faults import kill_myself

__all__ = ["paid", "pay", "spent"]


def paid(folder: str) -> int:
    """How many calls were paid for, in all processes."""
    return len(Path(folder, "dispatches").read_text().splitlines())


def _dying(when: str) -> type[WriteConnection]:
    """A class of write connections that kill their process `"before"` or `"after"` the first commit of a bill."""

    class Dying(WriteConnection):
        holds_bill = False

        def execute(self, sql: str, params: Mapping[str, object] = {}) -> Any:
            self.holds_bill = self.holds_bill or ("UPDATE call" in sql and "'settled'" in sql)
            return super().execute(sql, params)

        def commit(self) -> None:
            if self.holds_bill and when == "before":
                kill_myself()
            super().commit()
            if self.holds_bill and when == "after":
                kill_myself()

    return Dying


def pay(folder: str, form: str, when: str | None) -> str:
    """Run, or go on; one call is paid for in each process that makes one. Returns what the run has logged last."""
    path = f"{folder}/runs.db"
    resumes = Path(path).exists()

    def ask() -> dict[str, Any]:
        with open(f"{folder}/dispatches", "a") as file:
            file.write("dispatched\n")
        return {
            "text": f"answer {paid(folder)}",
            "used": {"input_tokens": 10, "output_tokens": 5},
        }

    async def aask() -> dict[str, Any]:
        return ask()

    said: dict[str, Any] = {
        "prompt": "hello",
        "max_tokens": 50,
        "usage": lambda answer: answer["used"],
        "memo": ("draft", lambda answer: answer["text"]),
    }

    @durable
    def node(state: State, frame: Frame) -> Any:
        return {"log": [frame.call("lab:m", ask, **said)]}

    @durable
    async def anode(state: State, frame: Frame) -> Any:
        return {"log": [await frame.acall("lab:m", aask, **said)]}

    connection = WriteConnection if when is None else _dying(when)
    with LedgerSaver(open_database(path, connection=connection)) as saver:
        app = with_ledger(line(saver, a=node if form == "sync" else anode), budget=Budget(turns=5, tokens=1000))
        given = None if resumes else {"log": []}
        if form == "sync":
            app.invoke(given, CONFIG, durability="sync")
        else:
            asyncio.run(app.ainvoke(given, CONFIG, durability="sync"))
        return str(app.get_state(CONFIG).values["log"][-1])


def spent(folder: str) -> dict[str, Any]:
    """What is on record of the run."""
    with RunLedger(f"{folder}/runs.db") as ledger:
        run = ledger.runs()[0]
        tokens = ledger.usage(run.run_id).spent[Dimension.TOKENS]
        return {
            "calls": [str(call.status) for call in ledger.calls(run.run_id)],
            "tokens": (tokens.known, tokens.reserved > 0),
            "memos": [memo.value for memo in ledger.memos(run.run_id)],
            "findings": ledger.verify(),
        }
