"""Control: changes that close a scope, end it, or hand it to another worker (rules E27 to E29)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph_ext.engine import closing
from langgraph_ext.engine.applying import Applying, OfAgentRun
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger.records import RunStatus

__all__ = ["Close", "Finish", "Succeed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(OfAgentRun):
    """A scope is to stop."""

    reason: str
    message: str = ""

    def apply(self, at: Applying) -> None:
        """Shut its gate; a later reason changes nothing."""
        at.result["first"] = closing.close(at, self.agent_run_id, self.reason, self.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish(OfAgentRun):
    """A closing scope has nothing under way any more."""

    def apply(self, at: Applying) -> None:
        """Give it its terminal result.

        Raises:
            ConflictError: Something of it is under way (`scope_busy`).
        """
        if not closing.finish(at, self.agent_run_id):
            raise _busy(self.agent_run_id)
        _hand_back(at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeed(OfAgentRun):
    """An agent run has its output."""

    output: Any

    def apply(self, at: Applying) -> None:
        """End it, unless it closes for a reason that was committed before.

        Raises:
            ConflictError: It closes, or is to stop (`scope_closed`), or something of it is under way (`scope_busy`).
        """
        run = at.gate(self.agent_run_id)
        if at.tx.one("run_get", run=run.run)["status"] == RunStatus.CANCELLED:
            raise ConflictError(
                f"run {run.run} of agent run {self.agent_run_id!r} was cancelled before; read it again",
                code="scope_closed",
                details={"agent_run_id": self.agent_run_id},
            )
        if not closing.succeed(at, self.agent_run_id, self.output):
            raise _busy(self.agent_run_id)
        _hand_back(at)


def _busy(agent_run_id: str) -> ConflictError:
    return ConflictError(
        f"agent run {agent_run_id!r} has a call under way; it ends when that has ended",
        code="scope_busy",
        retryable=True,
        details={"agent_run_id": agent_run_id},
    )


def _hand_back(at: Applying) -> None:
    """What was steered and never claimed stays readable, and the result of the root's end says so (rule E13)."""
    if at.root.status.ended:
        left = [row["entry"] for row in at.tx.all("agent_steering_of", run=at.run) if row["attempt_id"] is None]
        at.result["handed_back"] = left
