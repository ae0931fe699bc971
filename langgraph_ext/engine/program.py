"""Program: a release with its live objects, as the driver needs it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from langgraph_ext.database import Tx
from langgraph_ext.engine.outcomes import Behaviour
from langgraph_ext.engine.releases import Live
from langgraph_ext.engine.rows import Operation

__all__ = ["Allowed", "Answered", "AskedAgain", "Denied", "Failed", "NotKnown", "Program"]


class Failed(Exception):
    """A call that has failed, by what its caller makes of that.

    Args:
        code: Stable name of the error.
        message: What is told of it.
        partial: What had come of an answer that broke off; JSON.
        retryable: Whether another call may help.
        after_seconds: How long to wait before that, at least.
        usage: What it has used all the same, as of `Program.usage_of`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        partial: Any = None,
        retryable: bool = False,
        after_seconds: float = 0.0,
        usage: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.partial = partial
        self.retryable = retryable
        self.after_seconds = after_seconds
        self.usage = usage


class AskedAgain(Failed):
    """A call whose answer is not taken, or not alone: what runs around it makes another one at once.

    That is put on record before it is made, as any other; `Program.call` goes on with it then.
    """


class NotKnown(Exception):
    """Nobody knows whether a call did anything, and it is not made again to find out.

    Args:
        message: Why.
        goes_on: Whether it may be at it still: whoever looks now what it came to looks too early.
        again: Whether its policy lets it be made again.
    """

    def __init__(self, message: str, *, goes_on: bool = False, again: bool = False) -> None:
        super().__init__(message)
        self.goes_on = goes_on
        self.again = again


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

    @property
    def live(self) -> Live | None:
        """What lives of the release."""

    def behaviour(self, name: str, version: int) -> Behaviour:
        """The behaviour of exactly this version.

        Raises:
            LangGraphExtError: It is not here (`node_abi_unavailable`).
        """

    def needs_ticket(self, operation: Operation) -> bool:
        """Whether it is a unit of the loop limit."""

    async def before(self, operation: Operation) -> Allowed | Denied:
        """Ask the hooks before a call; never asked again once this is stored."""

    def ahead(self, tx: Tx, operation: Operation) -> Any:
        """Read what the call of an operation needs of the store, in the transaction that has put it on record.

        Returns:
            What `call` is given then; None if there is nothing to read, or it reads it itself.
        """

    async def call(self, operation: Operation, number: int, ahead: Any = None) -> Any:
        """Make one physical call; returns an outcome, or raises.

        Args:
            operation: Which.
            number: The how manieth of the operation it is, from 1.
            ahead: What was read ahead of it, if anything was.

        Raises:
            NotKnown: It was given up, and may have been done, or be done yet.
            Failed: It has failed; whatever else is raised has failed, too.
        """

    def goes_on(self, operation: Operation) -> bool:
        """Whether its call goes on when it is told to stop: a function in a thread does."""

    def usage_of(self, operation: Operation, outcome: Any) -> dict[str, Any] | None:
        """What a call has used: `{"tokens_in", "tokens_out", "estimated"}`; None if it is nothing that is counted."""

    async def reconcile(self, operation: Operation) -> Any:
        """Find out what came of a call of which nobody knows: an outcome, or None if that does not tell.

        Raises:
            EffectNotDone: Nothing was done.
        """

    def retry_after(self, operation: Operation, number: int, error: Exception) -> float | None:
        """Seconds until another call of the same operation; None if there is none."""

    def asks_after(self, operation: Operation) -> bool:
        """Whether there are hooks to be asked after its call."""

    async def after(self, operation: Operation) -> Answered:
        """Ask the hooks after a call; never asked again once this is stored."""
