"""with_ledger: a graph whose invocations each hold their thread, and answer its questions (L12–L14, L25–L27, L33).

The graph stays a compiled LangGraph: what is added is a callback handler, LangChain's own way of adding behaviour, and
a look at the commands it is called with (commands.py). The handler marks where an invocation begins; the saver takes
the lease at the `get_tuple` that follows, and the handler gives it back when the invocation has ended, in whatever way.
What it does about models stands in call_handler.py.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.budgets import Budget
from langgraph_ext.ledger.definitions import Definition
from langgraph_ext.saver.attached import Invocation, LedgerHandler, OnBusy, OnOpenQuestions, begun
from langgraph_ext.saver.call_handler import CallHandler
from langgraph_ext.saver.commands import attached_class, check
from langgraph_ext.saver.definition import definition_of
from langgraph_ext.saver.host import handlers_in, is_of_a_task, task_of

__all__ = ["LedgerCallbackHandler", "with_ledger"]

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

OnChange = Literal["name", "refuse"]
G = TypeVar("G", bound="Pregel[Any, Any, Any, Any]")


_MOST_LEFT = 10_000
"""So many runs of LangChain's whose ends were never told are remembered, in case they call a model yet."""


class LedgerCallbackHandler(CallHandler):
    """Has every invocation it is told of hold its thread. One may be used for any number of graphs and invocations.

    Args:
        lease_ttl_seconds: How long a lease holds that is not renewed; it is, at a third of that, from a thread of its
            own.
        on_busy: What to do when another invocation holds the thread: `"reject"` it (`thread_busy`), or `"wait"`.
        wait_seconds: How long to wait at most.
        on_open_questions: What to do with new input on a thread whose run has open questions: `"reject"` it
            (`questions_open`), or let it `"supersede"` the questions, and the run with them.
        max_transitions: The most visits that a run may have made before a durable node begins another one; beyond that
            it is refused (`transition_limit`). They count over crashes and resumes, LangGraph's `recursion_limit` from
            each call on. None: any number.
        on_change: What to do when a run is gone on with by a graph that is not what it was: `"name"` what differs, in
            an event (`run.definition_changed`), or `"refuse"` (`definition_changed`). A node that has begun, and is
            gone or has changed its effect class, is always refused.
        definition: Of the graph; `with_ledger` reads it off.
        budget: What a run may use of models, in all its invocations together. It is put on record at the run's first
            model call or durable node; from then on that counts, and `ledger.raise_budget` raises it. None: any amount.
        fail_fast: After so many visits in a row that called a model and failed, the run calls none any more, and begins
            no durable node (`fail_fast`); a success counts anew, visits without a model do not count. None: any number.
    """

    run_inline = True
    raise_error = True

    def __init__(
        self,
        *,
        lease_ttl_seconds: float = 30.0,
        on_busy: OnBusy = "reject",
        wait_seconds: float = 60.0,
        on_open_questions: OnOpenQuestions = "reject",
        max_transitions: int | None = None,
        on_change: OnChange = "name",
        definition: Definition | None = None,
        budget: Budget | None = None,
        fail_fast: int | None = None,
    ) -> None:
        super().__init__()
        if not _is_time(lease_ttl_seconds) or not 0.1 <= lease_ttl_seconds <= 86_400:
            raise InvalidArgument(f"lease_ttl_seconds is {lease_ttl_seconds!r}; it must be a number, 0.1 to 86,400")
        if on_busy not in ("reject", "wait"):
            raise InvalidArgument(f'on_busy is {on_busy!r}; it must be "reject" or "wait"')
        if on_open_questions not in ("reject", "supersede"):
            raise InvalidArgument(f'on_open_questions is {on_open_questions!r}; it must be "reject" or "supersede"')
        if not _is_time(wait_seconds) or wait_seconds < 0:
            raise InvalidArgument(f"wait_seconds is {wait_seconds!r}; it must be a number of seconds, 0 or more")
        for name, most in (("max_transitions", max_transitions), ("fail_fast", fail_fast)):
            if most is not None and (type(most) is not int or most < 1):
                raise InvalidArgument(f"{name} is {most!r}; it must be a whole number from 1, or None")
        if on_change not in ("name", "refuse"):
            raise InvalidArgument(f'on_change is {on_change!r}; it must be "name" or "refuse"')
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidArgument(f"budget is {budget!r}; it must be a Budget, such as Budget(turns=20), or None")
        self.max_transitions, self.on_change, self.definition = max_transitions, on_change, definition
        self.on_open_questions = on_open_questions
        self.budget, self.fail_fast = budget, fail_fast
        self.lease_ttl_seconds, self.on_busy, self.wait_seconds = lease_ttl_seconds, on_busy, wait_seconds

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A graph, or something in it, begins."""
        if (around := self._inside(run_id, parent_run_id)) is not None:
            task_id, database = task_of(metadata or {}), around.database
            if task_id is not None and database is not None and around.lease is not None:
                around.started.setdefault(task_id, database.clock_us())
            return
        if is_of_a_task(metadata or {}):
            return
        check(inputs)
        invocation = Invocation(
            invocation_id=run_id.hex,
            ttl_us=round(self.lease_ttl_seconds * 1e6),
            on_busy=self.on_busy,
            wait_seconds=self.wait_seconds,
            given=inputs,
            definition=self.definition,
            refuses_changes=self.on_change == "refuse",
            supersedes=self.on_open_questions == "supersede",
            max_transitions=self.max_transitions,
            budget=self.budget,
            fail_fast=self.fail_fast,
        )
        self._running[run_id] = self._around[run_id] = invocation
        begun(invocation)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """It ended, or asks."""
        self._ended(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """It failed, was cancelled, or its stream was left."""
        self._ended(run_id, error)

    def _ended(self, run_id: UUID, error: BaseException | None) -> None:
        around = self._around.pop(run_id, None)
        invocation = self._running.pop(run_id, None)
        if invocation is None:
            if around is not None and error is not None:
                around.raised.append(error)
            return
        invocation.raised.clear()
        if not self._running and len(self._around) > _MOST_LEFT:
            self._around.clear()  # of what was cut off, nobody tells the end; its threads may run on for a while
        invocation.is_over = True
        if invocation.give_back is not None:
            invocation.give_back(error is None, error)


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def with_ledger(
    graph: G,
    *,
    lease_ttl_seconds: float = 30.0,
    on_busy: OnBusy = "reject",
    wait_seconds: float = 60.0,
    on_open_questions: OnOpenQuestions = "reject",
    max_transitions: int | None = None,
    on_change: OnChange = "name",
    budget: Budget | None = None,
    fail_fast: int | None = None,
) -> G:
    """The graph, each of whose invocations holds its thread from its beginning to its end.

    Meanwhile nobody else runs on that thread, from any process, and whoever has lost it writes nothing more. What
    `Command(resume=…)` says is put on record as the answer to the question it is meant for, before LangGraph reads it:
    the first answer counts, and one that fits no open question is refused before anything runs. The graph's
    checkpointer has to be a `LedgerSaver`.

    Args:
        graph: A compiled graph.
        lease_ttl_seconds: See `LedgerCallbackHandler`, as for the others.
        on_busy: What to do when another invocation holds the thread.
        wait_seconds: How long to wait at most.
        on_open_questions: What to do with new input that finds questions open.
        max_transitions: The most visits a run may have made before a durable node begins another one.
        on_change: What to do when the graph is not what it was when the run began.
        budget: What a run may use of models.
        fail_fast: After how many failed visits in a row that called a model nothing more is called.

    Raises:
        InvalidArgument: An option is out of range, the graph has another checkpointer, is not compiled, or is attached
            already.
    """
    if not hasattr(graph, "checkpointer") or not hasattr(graph, "with_config"):
        raise InvalidArgument(f"with_ledger: {type(graph).__name__} is no compiled graph; pass builder.compile(…)")
    bound: Any = getattr(graph, "config", None) or {}
    if handlers_in(bound, LedgerHandler):
        raise InvalidArgument(
            "with_ledger: this graph is attached already; attach the one that builder.compile(…) returned"
        )
    if graph.checkpointer is not None and not hasattr(graph.checkpointer, "ledger"):
        raise InvalidArgument(
            f"with_ledger: the graph's checkpointer is {type(graph.checkpointer).__name__}; compile it with "
            'checkpointer=LedgerSaver("runs.db")'
        )
    handler = LedgerCallbackHandler(
        lease_ttl_seconds=lease_ttl_seconds,
        on_busy=on_busy,
        wait_seconds=wait_seconds,
        on_open_questions=on_open_questions,
        max_transitions=max_transitions,
        on_change=on_change,
        definition=definition_of(graph),
        budget=budget,
        fail_fast=fail_fast,
    )
    config: RunnableConfig = {"callbacks": [handler]}
    attached = graph.with_config(config)
    attached.__class__ = attached_class(type(attached))
    return attached
