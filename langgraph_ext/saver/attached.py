"""Attached: invocations of graphs that hold their thread's lease, and which write belongs to which (rules L12, L13).

A context variable would not do: `put_writes` of parallel nodes runs without it, and a stream leaks it. So it only
carries an invocation from its beginning to its first `get_tuple`, which follows at once; from then on each invocation
is known by the root checkpoints that it has read and written. What names one that is not on its way to the saver yet,
as a node under durability `async` may, is the thread's newest invocation's, if its config holds the handler of an
attached graph.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.callbacks import GraphCallbackHandler

from langgraph_ext.database import Database
from langgraph_ext.ledger.budgets import Budget
from langgraph_ext.ledger.definitions import Definition
from langgraph_ext.ledger.dimensions import Amounts
from langgraph_ext.ledger.leases import Lease
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.requests import Request
from langgraph_ext.saver import host
from langgraph_ext.saver.config import Address

__all__ = ["Attached", "Invocation", "LedgerHandler", "OnBusy", "OnOpenQuestions", "begun", "take_begun"]

OnBusy = Literal["reject", "wait"]
OnOpenQuestions = Literal["reject", "supersede"]

_MOST_RAISED = 1_000
"""So many of an invocation's errors are kept, each with the frames that it came through."""

Owner.here("")  # looked up now: on an event loop, reading /proc would be a call that blocks

_BEGUN: ContextVar[Invocation | None] = ContextVar("langgraph_ext_invocation", default=None)


@dataclass(slots=True, kw_only=True, eq=False)
class Invocation:
    """One call of an attached graph."""

    invocation_id: str
    ttl_us: int
    on_busy: OnBusy
    wait_seconds: float
    given: Any = None
    """What it was called with, until it has its lease: None or a `Command` if it goes on, else new input."""
    goes_on: bool = False
    """Whether it goes on with the run at the head of its thread, once it has its lease."""
    definition: Definition | None = None
    """Its graph's."""
    refuses_changes: bool = False
    """Whether it goes on with a run only by the definition that began it."""
    request: Request | None = None
    """What a run begins with that it begins, once it has its lease."""
    supersedes: bool = False
    """Whether its input may take the place of open questions."""
    lease: Lease | None = None
    """None until its first `get_tuple`, and after its end."""
    control: object = None
    """What it and all graphs in it share, and others only if their caller gave it to them; None before its lease."""
    root_ids: set[str | None] = field(default_factory=set)
    """Root checkpoints that it has read or written; None stands for an empty thread."""
    give_back: Callable[[bool, BaseException | None], object] | None = None
    """Ends its lease, told whether the graph has come to its end, or what it raised; None until it has one."""
    is_over: bool = False
    max_transitions: int | None = None
    """The most visits that its durable nodes may bring the run to."""
    budget: Budget | None = None
    """What its run may use, if that has no limits on record."""
    fail_fast: int | None = None
    """As many visits in a row as may call a model and fail."""
    database: Database | None = None
    """The one that holds its lease, once it has one; it stays when that is over."""
    started: dict[str, int] = field(default_factory=dict)
    """By task: when it began, until its writes come."""
    raised: deque[BaseException] = field(default_factory=lambda: deque(maxlen=_MOST_RAISED))
    """What failed inside it, kept until its end: LangGraph knows what an error handler has taken over by its `id`, and
    passes over a later error, question or refusal that comes to have the same one."""

    @property
    def limits(self) -> Amounts:
        """Those of the budget."""
        return {} if self.budget is None else self.budget.limits

    @property
    def owner(self) -> Owner:
        """Who holds its lease."""
        return Owner.here(self.invocation_id)


def begun(invocation: Invocation) -> None:
    """An attached graph was called; its first `get_tuple` follows in this context."""
    _BEGUN.set(invocation)


def take_begun() -> Invocation | None:
    """The invocation that this `get_tuple` is the first of, if there is one; later ones do not find it.

    One that has ended without any, such as a graph's without a checkpointer, has left itself behind.
    """
    invocation = _BEGUN.get()
    if invocation is not None:
        _BEGUN.set(None)
    return None if invocation is None or invocation.is_over else invocation


class LedgerHandler(GraphCallbackHandler):
    """What marks the config of everything in an attached graph; see callbacks.py."""


class Attached:
    """The invocations that hold leases through one saver. Safe to use from any thread."""

    def __init__(self) -> None:
        self.any = False
        """Whether there are any: all that a call needs to look at where no graph is attached."""
        self._mutex = threading.Lock()
        self._live: dict[str, list[Invocation]] = {}
        """By thread id, the newest last."""

    def add(self, invocation: Invocation, root_id: str | None) -> None:
        """It holds its thread, which stands at this root checkpoint."""
        assert invocation.lease is not None
        with self._mutex:
            invocation.root_ids.add(root_id)
            self._live.setdefault(invocation.lease.thread_id, []).append(invocation)
            self.any = True

    def remove(self, invocation: Invocation) -> None:
        """It has ended; may be called twice."""
        lease = invocation.lease
        if lease is None:
            return
        with self._mutex:
            live = self._live.get(lease.thread_id, [])
            if invocation in live:
                live.remove(invocation)
            if not live:
                self._live.pop(lease.thread_id, None)
            self.any = bool(self._live)

    def of(self, config: RunnableConfig, thread_id: str, root_id: str | None) -> Invocation | None:
        """The live invocation that a call, or a node, with this config belongs to; None if to none.

        Args:
            config: The call's, or the node's.
            thread_id: Its thread.
            root_id: The root checkpoint that it executes, or the parent of the one that it puts.
        """
        live = self._live.get(thread_id)
        if not live:
            return None
        for invocation in reversed(live):
            if root_id in invocation.root_ids:
                return invocation
        return live[-1] if host.handlers_in(config, LedgerHandler) else None

    def goes_on(self, config: RunnableConfig, address: Address, checkpoint_id: str) -> None:
        """A root checkpoint is about to be stored: its invocation, if it has one, is known by it from here on."""
        if not address.checkpoint_ns:
            invocation = self.of(config, address.thread_id, address.checkpoint_id)
            if invocation is not None:
                invocation.root_ids.add(checkpoint_id)
