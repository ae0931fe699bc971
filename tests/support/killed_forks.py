"""What the processes of the killed forks do: fork, answer what is asked, and be killed behind the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph_ext import LedgerSaver, RunLedger, with_ledger
from langgraph_ext.ledger import forks
from langgraph_ext.nodes import Frame, durable
from tests.support.apps import CONFIG, State, line
from tests.support.faults import kill_myself

__all__ = ["fork", "go_on", "told"]


def _app(saver: LedgerSaver, folder: str) -> Any:
    def charge(key: str) -> str:
        with (Path(folder) / "charges").open("a") as file:
            file.write(f"{key}\n")
        return "charged"

    @durable(effect="write", on_fork="ask")
    def pay(state: State, frame: Frame) -> Any:
        return {"log": [frame.once("charge", 7, charge)]}

    return with_ledger(line(saver, a=pay))


def fork(folder: str) -> None:
    """Run, and fork, which asks."""
    with LedgerSaver(f"{folder}/runs.db") as saver:
        app = _app(saver, folder)
        app.invoke({"log": []}, CONFIG, durability="sync")
        old = next(state.config for state in app.get_state_history(CONFIG) if state.next == ("a",))
        app.invoke(None, old, durability="sync")


def go_on(folder: str, answer: str | None, dies: bool) -> int:
    """Answer, if there is something to say, and go on; how many questions are pending then."""
    if dies:
        _patch()
    with LedgerSaver(f"{folder}/runs.db") as saver:
        if answer is not None:
            (question,) = saver.ledger.interrupts(pending=True)
            saver.ledger.answer({question.interrupt_id: answer})
        _app(saver, folder).invoke(None, CONFIG, durability="sync")
        return len(saver.ledger.interrupts(pending=True))


def _patch() -> None:
    """Die when the choice is committed: with the next transaction of the body, which looks for it."""
    chosen: list[bool] = []
    choose, commit = forks.choose, LedgerSaver.__init__

    def noted(*args: Any, **kwargs: Any) -> Any:
        found = choose(*args, **kwargs)
        chosen.append(True)
        return found

    def opened(self: LedgerSaver, *args: Any, **kwargs: Any) -> None:
        commit(self, *args, **kwargs)
        transact = self.database.transact

        def dying(*given: Any, **named: Any) -> Any:
            found = transact(*given, **named)
            if chosen:
                kill_myself()
            return found

        self.database.transact = dying  # type: ignore[method-assign]

    forks.choose = noted
    LedgerSaver.__init__ = opened  # type: ignore[method-assign]


def told(folder: str) -> dict[str, Any]:
    """What is on record, and what was done outside."""
    with RunLedger(f"{folder}/runs.db") as ledger:
        return {
            "charges": len((Path(folder) / "charges").read_text().splitlines()),
            "events": [e.name for e in ledger.events(limit=1000) if e.name in ("effect.repeated", "effect.reused")],
            "status": str(ledger.runs()[0].status),
            "findings": ledger.verify(),
        }
