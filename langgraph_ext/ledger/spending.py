"""Spending: the part of the ledger's door that knows of model calls and budgets."""

from __future__ import annotations

from langgraph_ext.database import Database
from langgraph_ext.ledger import budgets, call_listing
from langgraph_ext.ledger.records import Run
from langgraph_ext.ledger.usage_records import CallRecord, Usage

__all__ = ["Spending"]


class Spending:
    """What runs used, and how much they may."""

    database: Database

    def usage(self, run_id: str) -> Usage:
        """What a run used of each dimension, what is reserved for it, and its limits."""
        return self.database.read(call_listing.ask_usage(run_id, self.database.clock_us()))

    async def ausage(self, run_id: str) -> Usage:
        """As `usage`."""
        return await self.database.aread(call_listing.ask_usage(run_id, self.database.clock_us()))

    def calls(self, run_id: str, *, after: str | None = None, limit: int = 1000) -> list[CallRecord]:
        """The model calls of a run, in the order in which they were made.

        Args:
            run_id: The run.
            after: Only those behind the call of this id: for the next page, the last one of this page.
            limit: At most so many.

        Raises:
            NotFound: The run has no call of the id `after` (`call_not_found`).
        """
        return self.database.read(call_listing.ask_calls(run_id, after=after, limit=limit))

    async def acalls(self, run_id: str, *, after: str | None = None, limit: int = 1000) -> list[CallRecord]:
        """As `calls`."""
        return await self.database.aread(call_listing.ask_calls(run_id, after=after, limit=limit))

    def raise_budget(
        self,
        run_id: str,
        *,
        turns: int | None = None,
        tokens: int | None = None,
        cost_usd: float | None = None,
        wall_seconds: float | None = None,
        spawns: int | None = None,
    ) -> Run:
        """Raise limits of a run, from any process. It writes; the same again changes nothing.

        A run that has ended by its budget is idle then, and goes on when it is invoked again without new input.

        Args:
            run_id: The run.
            turns: Its new limit, not what is to be added; so are the others. None leaves one as it is.
            tokens: Model tokens.
            cost_usd: US dollars.
            wall_seconds: Seconds of active time.
            spawns: Child agent runs.

        Returns:
            The run as it stands now.

        Raises:
            ConflictError: It has ended otherwise (`run_closed`).
            InvalidArgument: No limit is named; one is lower than the one on record, or is not bounded there.
        """
        wanted = _wanted(turns, tokens, cost_usd, wall_seconds, spawns)
        return self.database.transact(budgets.ask_to_raise(run_id, wanted, self.database.clock_us()))

    async def araise_budget(
        self,
        run_id: str,
        *,
        turns: int | None = None,
        tokens: int | None = None,
        cost_usd: float | None = None,
        wall_seconds: float | None = None,
        spawns: int | None = None,
    ) -> Run:
        """As `raise_budget`."""
        wanted = _wanted(turns, tokens, cost_usd, wall_seconds, spawns)
        return await self.database.atransact(budgets.ask_to_raise(run_id, wanted, self.database.clock_us()))


def _wanted(
    turns: int | None, tokens: int | None, cost_usd: float | None, wall_seconds: float | None, spawns: int | None
) -> dict[str, int | float | None]:
    return {
        "turns": turns,
        "tokens": tokens,
        "cost_usd": cost_usd,
        "wall_seconds": wall_seconds,
        "spawns": spawns,
    }
