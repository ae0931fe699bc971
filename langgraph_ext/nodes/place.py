"""Place: where in a running graph a durable body stands.

LangGraph shows a node a namespace that differs from the one its loop gives the saver, and a checkpoint that need not be
stored yet; what is needed of both stands here.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config

from langgraph_ext.errors import AdmissionError
from langgraph_ext.ledger.settlement import TaskKey
from langgraph_ext.ledger.visit_rows import Level
from langgraph_ext.saver import LedgerSaver, host

__all__ = ["Place", "here", "levels_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The task that calls a durable body, and which of its durable parts this is."""

    saver: LedgerSaver
    thread_id: str
    checkpoint_ns: str
    """The saver's."""
    checkpoint_id: str
    task_id: str
    ordinal: int
    anchors: tuple[tuple[str, str], ...]
    """`(checkpoint_ns, checkpoint_id)` of every checkpoint being executed around it, the root graph's first."""
    node: str
    durability: str
    config: RunnableConfig
    """The node's."""

    @property
    def part(self) -> TaskKey:
        """The task and which of its durable parts, as the ledger names them."""
        return TaskKey(self.thread_id, self.checkpoint_id, self.task_id, self.ordinal)


class _Parts:
    """Counts the durable parts of each try of a task, as long as LangGraph holds it. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._counted: WeakKeyDictionary[object, Counter[int]] = WeakKeyDictionary()
        """By task, and number of the try."""

    def next(self, task: object, number: int) -> int:
        """Which part of this try comes now, from 0."""
        with self._mutex:
            counted = self._counted.setdefault(task, Counter())
            counted[number] += 1
            return counted[number] - 1


_PARTS = _Parts()


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
    anchors = tuple(sorted(host.checkpoints_in(config).items(), key=lambda anchor: len(anchor[0])))
    task_id = host.inside(config)
    assert checkpoint_id is not None, "a task of a graph with a checkpointer executes a checkpoint"
    assert task_id is not None, "and has an id"
    return Place(
        saver=saver,
        thread_id=str(configurable["thread_id"]),
        checkpoint_ns=next((ns for ns, executed in anchors if executed == checkpoint_id), ""),
        checkpoint_id=checkpoint_id,
        task_id=task_id,
        ordinal=_PARTS.next(*host.try_in(config)),
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
        Level(executed, place.saver.loops.task_around(place.thread_id, inner_ns))
        for (executed, _), (_, inner_ns) in pairwise(graphs.items())
    ]
    return (*around, Level(place.checkpoint_id, host.task_in(place.config)))


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
