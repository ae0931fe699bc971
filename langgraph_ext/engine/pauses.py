"""Pauses: while a tree waits for nothing but a person its clocks stand, and the ledger's run says so (rule E23)."""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_ext.database import Tx
from langgraph_ext.engine.applying import Applying, OfAgentRun
from langgraph_ext.engine.rows import Operation
from langgraph_ext.ledger import runs
from langgraph_ext.ledger.records import RunStatus

__all__ = ["Pause", "go_on", "move_run", "waits_for"]

_NOT_FROM_DOUBT = (RunStatus.FAILED, RunStatus.BUDGET_EXHAUSTED)
"""Where a run that waits for what came of a call does not go at once (ledger/runs.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(OfAgentRun):
    """Nothing but a person is waited for."""

    def apply(self, at: Applying) -> None:
        """Note since when; the ledger's run says what it waits for."""
        waits = waits_for(at.tx, at.root_id)
        assert waits is not None, "a tree that waits for nobody is not paused"
        at.tx.run("agent_run_pause", root_id=at.root_id, now_us=at.now_us)
        move_run(at, waits)


def go_on(at: Applying, *, works: bool) -> None:
    """A person has said something. The clocks go on, unless nothing can be done before they say something else.

    Args:
        at: The commit, in which that is on record already.
        works: Whether it has led to something to do, whatever else is open.
    """
    waits = None if works else waits_for(at.tx, at.root_id)
    move_run(at, RunStatus.RUNNING)
    if waits is None:
        at.tx.run("agent_run_unpause", root_id=at.root_id, now_us=at.now_us)
    else:
        move_run(at, waits)


def waits_for(tx: Tx, root_id: str) -> RunStatus | None:
    """What a tree's ledger run is while it waits: for what came of a call, else for an answer; None: for nobody."""
    if any(Operation.from_row(row).is_in_doubt for row in tx.all("agent_operations_live", root_id=root_id)):
        return RunStatus.RECOVERY_REQUIRED
    return RunStatus.PAUSED if tx.all("agent_requests_open", root_id=root_id) else None


def move_run(at: Applying, target: RunStatus, *, error: tuple[str, str] | None = None) -> None:
    """Move the ledger's run of a tree. From where it waits for what came of a call, some ends have no way but this."""
    where = runs.At(at.thread_id, "", at.now_us)
    if target in _NOT_FROM_DOUBT and at.tx.one("run_get", run=at.run)["status"] == RunStatus.RECOVERY_REQUIRED:
        runs.move(at.tx, at.run, RunStatus.RUNNING, where)
    runs.move(at.tx, at.run, target, where, error=error)
