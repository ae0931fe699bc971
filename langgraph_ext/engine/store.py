"""Store: the engine's door to the database. The simulator puts a faulty one in its place; the product never does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from langgraph_ext.database import Database, Tx
from langgraph_ext.engine.commits import Committed, Held, Look, RuntimeCommit, commit
from langgraph_ext.ledger.encoded import Serde

__all__ = ["Store"]

P = ParamSpec("P")
T = TypeVar("T")


class Store:
    """Reads and commits of one engine.

    Args:
        database: Where.
        clock_us: Microseconds since the epoch, UTC.
        ids: Makes ids of new rows.
        serde: Decodes what others have put into the database that is no JSON.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock_us: Callable[[], int],
        ids: Callable[[], str],
        serde: Serde | None = None,
    ) -> None:
        self.database = database
        self.serde = serde
        self.clock_us = clock_us
        self.ids = ids

    async def commit(
        self, wanted: RuntimeCommit, held: Held, look: Look | None = None, then: RuntimeCommit | None = None
    ) -> Committed:
        """As `commits.commit`, by the store's clock and ids."""
        now_us = self.clock_us()
        return await self.transact(commit, wanted, held, now_us=now_us, ids=self.ids, look=look, then=then)

    async def transact(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(tx, …)` as one transaction."""
        return await self.database.atransact(fn, *args, **kwargs)

    async def read(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `fn(tx, …)` on one snapshot."""
        return await self.database.aread(fn, *args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.database.name!r})"
