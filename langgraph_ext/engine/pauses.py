"""Pauses: while a tree waits for nothing but a person its clocks stand, and the ledger's run says so (rule E23)."""

from __future__ import annotations

from dataclasses import dataclass

from langgraph_ext.engine.applying import Applying, OfAgentRun
from langgraph_ext.engine.rows import Operation
from langgraph_ext.ledger import runs
from langgraph_ext.ledger.records import RunStatus

__all__ = ["Pause", "go_on"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(OfAgentRun):
    """Nothing but a person is waited for."""

    def apply(self, at: Applying) -> None:
        """Note since when; the ledger's run says what it waits for."""
        at.tx.run("agent_run_pause", root_id=at.root_id, now_us=at.now_us)
        _move_run(at, _waits_for(at) or RunStatus.RUNNING)


def go_on(at: Applying, *, works: bool) -> None:
    """A person has said something. The clocks go on, unless nothing can be done before they say something else.

    Args:
        at: The commit, in which that is on record already.
        works: Whether it has led to something to do, whatever else is open.
    """
    waits = _waits_for(at)
    if works or waits is None:
        at.tx.run("agent_run_unpause", root_id=at.root_id, now_us=at.now_us)
        _move_run(at, RunStatus.RUNNING)
    else:
        _move_run(at, RunStatus.RUNNING)  # from where it waits for what is more urgent, only this is a way
        _move_run(at, waits)


def _waits_for(at: Applying) -> RunStatus | None:
    """What a tree's ledger run is while it waits: for what came of a call, else for an answer; None: for nothing."""
    if any(Operation.from_row(row).is_in_doubt for row in at.tx.all("agent_operations_live", root_id=at.root_id)):
        return RunStatus.RECOVERY_REQUIRED
    return RunStatus.PAUSED if at.tx.all("agent_requests_open", root_id=at.root_id) else None


def _move_run(at: Applying, target: RunStatus) -> None:
    runs.move(at.tx, at.run, target, runs.At(at.thread_id, "", at.now_us))
