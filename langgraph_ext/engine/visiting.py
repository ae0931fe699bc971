"""Visiting: an agent run that a node of a graph drives, under the lease of the graph's thread (rules A5, A8 and E31).

The node's attempt holds the thread by an epoch, and so do all commits here. Nothing is taken, renewed or given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from langgraph_ext.database import Tx, tell
from langgraph_ext.engine.around_models import AroundModel
from langgraph_ext.engine.commits import Held
from langgraph_ext.engine.driver import Driver
from langgraph_ext.engine.program import Program
from langgraph_ext.engine.resting import rest
from langgraph_ext.engine.rows import AgentRun, read_tree
from langgraph_ext.engine.runtimes import First
from langgraph_ext.engine.stopping import stop_held
from langgraph_ext.engine.store import Store
from langgraph_ext.ledger.runs import Parent

__all__ = ["Caller", "Driven", "Take", "Taken", "Visit", "stop_in"]

Inject = Callable[[BaseTool, Mapping[str, Any], str], dict[str, Any]]
"""`inject(tool, args, call_id)`: the arguments that only the caller knows, by name."""


class Taken(NamedTuple):
    """What a caller has made of a tool's answer that is no message."""

    message: ToolMessage
    command: Any
    """What is stored with it, for the caller; JSON, or None."""
    ends: bool = False
    """Whether the agent is over with this batch."""


Take = Callable[[Any, str, str], Taken | None]
"""`take(answer, call_id, tool)`: of a tool's answer that is no message; None: it can make nothing of it."""


class Caller(NamedTuple):
    """Who drives an agent run, as far as its models and tools see that."""

    config: RunnableConfig
    """Theirs; what the engine tells of a call is added."""
    inject: Inject | None = None
    take: Take | None = None
    around_model: AroundModel | None = None
    """Summaries are written without it."""


class Visit(NamedTuple):
    """What a node's attempt lends to an agent run that it drives."""

    held: Held
    """The lease of the graph's thread."""
    parent: Parent
    guard: Callable[[Tx], object]
    """Raises, in a transaction, if the attempt may not act any more."""
    place: tuple[str, str]
    """Namespace and id of the checkpoint that the node's task executes."""
    caller: Caller


class Driven:
    """An agent run while a visit drives it.

    Args:
        store: Reads and commits.
        program: The release's behaviours, calls and hooks.
        release: Its digest.
        root_id: The agent run.
        held: The lease of the graph's thread.
        at_end: Reads what the visit wants of the agent run once it has ended.
    """

    def __init__(
        self,
        store: Store,
        program: Program,
        release: str,
        root_id: str,
        held: Held,
        at_end: Callable[[Tx], object] | None = None,
    ) -> None:
        self.root_id = root_id
        self._store, self._held = store, held
        self._driver = Driver(store, program, release, root_id, held, ends_at_once=True, at_end=at_end)
        self._loop: asyncio.AbstractEventLoop | None = None

    def look(self) -> None:
        """Something was asked of the tree in this process, in whichever thread."""
        if self._loop is not None:
            tell(self._loop, self._driver.look)

    def first_look(self, tx: Tx) -> First:
        """What its driver looks at before all else: read with the agent run's start, it is not read again."""
        return self._driver.first_look(tx)

    @property
    def end(self) -> Any:
        """What `at_end` has read behind the agent run's end; None if it had ended before it was driven here."""
        return self._driver.end

    async def drive(self, first: First | None = None) -> AgentRun:
        """Drive it as far as it goes.

        Args:
            first: What `first_look` has seen.

        Raises:
            LeaseError: The thread was lost (`lease_lost`).
            StoreError: The database failed.
            LangGraphExtError: A call was refused, and not made: by the budget of the graph's run, or as that was
                cancelled. It is made when the agent run is driven again.
        """
        self._loop = asyncio.get_running_loop()
        store = self._store
        while True:
            root = await self._driver.drive_on(first)
            first = None
            if root.status.ended:
                return root
            now_us = store.clock_us()
            left = await store.transact(rest, self.root_id, self._held, ids=store.ids, now_us=now_us, goes_on=True)
            if left is not None:
                return left


def stop_in(tx: Tx, root_id: str, held: Held, reason: str, *, ids: Callable[[], str], now_us: int) -> AgentRun:
    """Stop an agent run that nobody drives any more, in its visit; each of its tool calls has a result then.

    Args:
        tx: The open transaction.
        root_id: The agent run; one that has ended stays as it is.
        held: The lease of the graph's thread.
        reason: Why.
        ids: Makes ids.
        now_us: Microseconds since the epoch, UTC.
    """
    tree = read_tree(tx, root_id)
    return tree.root if tree.root.status.ended else stop_held(tx, tree, held, reason, now_us=now_us, ids=ids)
