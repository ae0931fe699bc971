"""Place: where in a running graph a durable body stands.

LangGraph shows a node a namespace that differs from the one its loop gives the saver, and a checkpoint that need not be
stored yet; what is needed of both stands here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config

from langgraph_ext.errors import AdmissionError
from langgraph_ext.ledger.settlement import PartKey
from langgraph_ext.ledger.visit_rows import Level
from langgraph_ext.nodes.parts import Try, try_of
from langgraph_ext.saver import LedgerSaver, host

__all__ = ["Place", "here", "levels_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The task that calls a durable body."""

    saver: LedgerSaver
    thread_id: str
    checkpoint_ns: str
    """The saver's."""
    checkpoint_id: str
    task_id: str
    now: Try
    """This try of the task."""
    number: int
    """Which try that is, of those that a RetryPolicy makes, from 1."""
    anchors: tuple[tuple[str, str], ...]
    """`(checkpoint_ns, checkpoint_id)` of every checkpoint being executed around it, the root graph's first."""
    node: str
    durability: str
    config: RunnableConfig
    """The node's."""
    ordinal: int = 0
    """Which part of its task it is; known once it was admitted."""

    @property
    def part(self) -> PartKey:
        """The task and which of its durable parts, as the ledger names them."""
        return PartKey(self.thread_id, self.checkpoint_id, self.task_id, self.ordinal)

    @property
    def task(self) -> tuple[str, str, str]:
        """Thread, checkpoint and id of the task."""
        return self.thread_id, self.checkpoint_id, self.task_id

    @property
    def called_with(self) -> RunnableConfig:
        """The node's config, for what it calls: tokens and events belong to the node."""
        kept = ("tags", "metadata", "callbacks", "configurable", "recursion_limit", "max_concurrency")
        return {name: self.config[name] for name in kept if name in self.config}  # type: ignore[return-value, literal-required]

    def is_of(self, body: object) -> bool:
        """Whether this call is the task's, and not one that its function makes."""
        return host.is_its_own(self.config, body) and self.now.is_first_of_its_own()


def here() -> Place | None:
    """Where the caller stands; None outside of a running graph, where nothing is durable and nothing repeats.

    Raises:
        AdmissionError: The graph has no checkpointer with a ledger (`ledger_missing`).
    """
    try:
        config: RunnableConfig = get_config()
    except RuntimeError:
        return None
    saver = _saver_in(config)
    checkpoint_id = host.checkpoint_of(config)
    configurable: dict[str, Any] = config["configurable"]
    anchors = host.anchors_in(config)
    task_id = host.inside(config)
    task, number = host.try_in(config)
    assert checkpoint_id is not None, "a task of a graph with a checkpointer executes a checkpoint"
    assert task_id is not None, "and has an id"
    return Place(
        saver=saver,
        thread_id=str(configurable["thread_id"]),
        checkpoint_ns=host.namespace_of(anchors, checkpoint_id),
        checkpoint_id=checkpoint_id,
        task_id=task_id,
        now=try_of(task, number),
        number=number,
        anchors=anchors or (("", checkpoint_id),),
        node=host.node_in(config),
        durability=host.durability_in(config),
        config=config,
    )


def levels_of(place: Place) -> tuple[Level, ...]:
    """The tasks that enclose a body, outermost first, and its own. Each enclosing one runs the next one's graph."""
    graphs: dict[str, str] = {}
    for checkpoint_ns, checkpoint_id in place.anchors:
        graphs.setdefault(checkpoint_id, checkpoint_ns)  # a `@task` has a longer one for that of its workflow
    around = [
        Level(executed, place.saver.loops.task_around(place.thread_id, inner_ns), outer_ns)
        for (executed, outer_ns), (_, inner_ns) in pairwise(graphs.items())
    ]
    return (*around, Level(place.checkpoint_id, host.task_in(place.config), place.checkpoint_ns))


def _saver_in(config: RunnableConfig) -> LedgerSaver:
    found = host.saver_in(config)
    ledger = getattr(found, "ledger", None)
    if ledger is None:
        raise AdmissionError(
            f"a durable node needs a ledger, and this graph's checkpointer is {type(found).__name__}; compile the "
            'graph with checkpointer=LedgerSaver("runs.db")',
            code="ledger_missing",
        )
    return cast(LedgerSaver, found)  # or an adapter around one, such as LangGraph's server has
