"""Outcomes: what a behaviour yields, and what it is given.

A behaviour is an async generator, `activate(input, continuation, runtime)`, without I/O of its own. It yields exactly
one of these at a time and goes on only after that is committed; `asend` brings it what the commit answered.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from langgraph_ext.engine.applying import Change
from langgraph_ext.engine.runtimes import Runtime

__all__ = ["PROTOCOL", "Behaviour", "Complete", "Fail", "Outcome", "Progress", "Runtime", "Wait"]

PROTOCOL = 1
"""The version of continuations that this code reads and writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The task has reached its next phase."""

    continuation: Mapping[str, Any]
    """`{"protocol": 1, "phase": …, …}`: references only, no values, and nothing of another task."""
    changes: tuple[Change, ...] = ()
    key: str | None = None
    """Of its commit, if it has a name of its own: `accept-model:{operation}`, or `decide-batch` or `consume-batch`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The task waits for a condition (conditions.py), and its worker is let go."""

    continuation: Mapping[str, Any]
    condition: Mapping[str, Any]
    changes: tuple[Change, ...] = ()
    key: str | None = None
    """As of `Progress`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """The task has its output; once."""

    output: Any
    continuation: Mapping[str, Any]
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The task has failed; once."""

    code: str
    message: str
    continuation: Mapping[str, Any] | None = None
    changes: tuple[Change, ...] = ()


Outcome = Progress | Wait | Complete | Fail


class Behaviour(Protocol):
    """How an agent task goes from phase to phase.

    One with `reads_context = True` keeps a history (contexts.py) and is told of its inbox; one with
    `check_input(input)` has the input of its agent runs looked at before they begin.
    """

    def activate(
        self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime
    ) -> AsyncGenerator[Outcome, dict[str, Any]]:
        """Go on from where the task stands."""
