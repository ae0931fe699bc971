"""Definitions: what a graph is, so that who goes on with a run by another one is told (rule L51).

A definition names each node, by a digest of what it is: its edges and what `durable` declares of it; and the channels.
Its own digest is that of all of it as canonical JSON. A function's code is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import AdmissionError
from langgraph_ext.ledger import attempts
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.listing import pending_of

__all__ = ["CHANNELS", "Definition", "check", "keep"]

CHANNELS = "(channels)"
"""Stands among the names of nodes that differ where the channels do."""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A graph, as far as a run depends on it."""

    graph: str
    """Its name."""
    nodes: Mapping[str, str]
    """By node: a digest of its edges and of what it declares. A subgraph's are named `outer:inner`."""
    effects: Mapping[str, str]
    """By durable node: its effect class."""
    channels: str
    """A digest of their names and kinds."""

    @cached_property
    def body(self) -> bytes:
        """Canonical JSON."""
        told = {
            "graph": self.graph,
            "nodes": dict(self.nodes),
            "effects": dict(self.effects),
            "channels": self.channels,
        }
        return canonical.encode(told, where="definition")

    @cached_property
    def digest(self) -> str:
        """Of all of it."""
        return canonical.digest(self.body)


def keep(tx: Tx, definition: Definition) -> None:
    """Store a definition, once."""
    tx.run("definition_add", digest=definition.digest, body=definition.body)


def check(tx: Tx, run: Row, definition: Definition, *, refuses: bool, now_us: int) -> None:
    """Somebody goes on with a run: name what has changed since, or refuse it.

    Args:
        tx: The transaction in which an invocation takes the thread.
        run: The run's row.
        definition: The graph's now.
        refuses: Whether any change is refused.
        now_us: Microseconds since the epoch, UTC.

    Raises:
        AdmissionError: It has changed and may not, or a node that has begun is gone, or does something else to the
            outside world (`definition_changed`); nothing is written.
    """
    if run["definition_digest"] in (None, definition.digest):
        return
    stored = tx.maybe("definition_get", digest=run["definition_digest"])
    before = {} if stored is None else canonical.decode(stored["body"])
    differ = _differing(before, definition)
    undone = [each for each in _open_nodes(tx, run) if _is_undone(each, before, definition)]
    if undone or refuses:
        named = ", ".join(undone or differ)
        why = "has begun, and is gone or changed its effect class" if undone else "changed"
        raise AdmissionError(
            f"run {run['run_id']!r} was begun by another definition of graph {definition.graph!r}: {named} {why}. Go "
            "on with it by the code that began it, or begin a new run",
            code="definition_changed",
            details={"run_id": run["run_id"], "nodes": undone or differ},
        )
    keep(tx, definition)
    tx.run("run_defined_anew", run=run["run"], definition_digest=definition.digest)
    append_event(
        tx,
        name="run.definition_changed",
        run=run["run"],
        thread_id=run["thread_id"],
        checkpoint_ns="",
        checkpoint_id=run["last_id"],
        details={"nodes": differ, "before": run["definition_digest"], "now": definition.digest},
        stored_us=now_us,
    )


def _differing(before: Mapping[str, Any], definition: Definition) -> list[str]:
    """The nodes that were added, taken away or changed; the channels, if they were."""
    nodes, others = definition.nodes, before.get("nodes", {})
    differ = sorted(name for name in {*nodes, *others} if nodes.get(name) != others.get(name))
    return differ + ([CHANNELS] if before.get("channels") != definition.channels else [])


def _open_nodes(tx: Tx, run: Row) -> Sequence[str]:
    """Names of the nodes with a visit that has begun and not ended: an attempt of it stands, or it asks."""
    standing = {attempt.node for attempt in attempts.of_run(tx, run["run"]) if not attempt.status.ended}
    return sorted(standing | {asked.node for asked in pending_of(tx, run) if asked.node is not None})


def _is_undone(node: str, before: Mapping[str, Any], definition: Definition) -> bool:
    """Whether a node that the old definition knew is gone, or acts otherwise."""
    if node not in _names(before.get("nodes", {})):
        return False
    return node not in _names(definition.nodes) or (
        _by_name(before.get("effects", {})).get(node) != _by_name(definition.effects).get(node)
    )


def _names(nodes: Mapping[str, str]) -> set[str]:
    return {name.rpartition(":")[2] for name in nodes}


def _by_name(effects: Mapping[str, str]) -> Mapping[str, str]:
    return {name.rpartition(":")[2]: effect for name, effect in effects.items()}
