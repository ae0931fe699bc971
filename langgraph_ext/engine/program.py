"""Program: a release with its live objects, as the driver needs it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from langgraph_ext.engine.outcomes import Behaviour
from langgraph_ext.engine.rows import Operation

__all__ = ["Allowed", "Answered", "Denied", "Program"]


class Allowed(NamedTuple):
    """What the hooks before a call have let pass."""

    request: Any
    """As it is to be sent; frozen."""
    before: Any
    """What they decided, for the record."""
    claims_upto: int | None = None
    """The last entry of the inbox whose message is in the request."""


class Denied(NamedTuple):
    """What the hooks before a call have forbidden."""

    before: Any
    code: str
    message: str


class Answered(NamedTuple):
    """What counts after the hooks."""

    after: Any
    outcome: Any
    """`{"value": …}` or `{"error": {"code", "message"}}`."""


class Program(Protocol):
    """What runs beside a behaviour: calls, and hooks around them."""

    spec: Any

    def behaviour(self, name: str, version: int) -> Behaviour:
        """The behaviour of exactly this version.

        Raises:
            LangGraphExtError: It is not here (`node_abi_unavailable`).
        """

    def needs_ticket(self, operation: Operation) -> bool:
        """Whether it is a unit of the loop limit."""

    async def before(self, operation: Operation) -> Allowed | Denied:
        """Ask the hooks before a call; never asked again once this is stored."""

    async def call(self, operation: Operation, number: int) -> Any:
        """Make one physical call; returns an outcome, or raises."""

    def retry_after(self, operation: Operation, number: int, error: Exception) -> float | None:
        """Seconds until another call of the same operation; None if there is none."""

    def asks_after(self, operation: Operation) -> bool:
        """Whether there are hooks to be asked after its call."""

    async def after(self, operation: Operation) -> Answered:
        """Ask the hooks after a call; never asked again once this is stored."""
