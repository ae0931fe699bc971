"""Definition: what is read off a compiled graph, to know it again (rule L51)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from langgraph_ext import canonical
from langgraph_ext.ledger.definitions import Definition

__all__ = ["DECLARED", "definition_of"]

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

DECLARED = "__langgraph_ext_declared__"
"""Attribute of a function that is durable: what was declared of it, as plain values."""


def definition_of(graph: Pregel[Any, Any, Any, Any]) -> Definition:
    """What a graph is: its nodes with their edges and what they declare, those of subgraphs too, and its channels."""
    nodes: dict[str, str] = {}
    effects: dict[str, str] = {}
    channels: dict[str, dict[str, str]] = {}
    for prefix, each in _graphs(graph):
        channels[prefix] = {name: type(channel).__name__ for name, channel in each.channels.items()}
        for name, node in each.nodes.items():
            declared = _declared(node)
            told = {"after": sorted(node.triggers), "before": _edges(each, name), "declared": declared}
            nodes[prefix + name] = canonical.digest(canonical.encode(told))
            if declared is not None:
                effects[prefix + name] = str(declared["effect"])
    return Definition(
        graph=str(graph.name), nodes=nodes, effects=effects, channels=canonical.digest(canonical.encode(channels))
    )


def _graphs(graph: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The graph and those in it that LangGraph knows of, with what their nodes' names begin with."""
    yield prefix, graph
    for name, inner in graph.get_subgraphs():
        yield from _graphs(inner, f"{prefix}{name}:")


def _edges(graph: Any, name: str) -> list[list[str]]:
    """Where a node of a StateGraph leads to: by edges, and by branches that name their ends."""
    builder = getattr(graph, "builder", None)
    if builder is None:
        return []
    edges = [["edge", end] for start, end in builder.edges if start == name]
    edges += [["join", "+".join(sorted(starts)), end] for starts, end in builder.waiting_edges if name in starts]
    for branch, spec in builder.branches.get(name, {}).items():
        edges.append(["branch", branch, *sorted(map(str, (spec.ends or {}).values()))])
    return sorted(edges)


def _declared(node: Any) -> Mapping[str, Any] | None:
    """What was declared of a durable node's function; None of others."""
    functions = (getattr(node.bound, kind, None) for kind in ("func", "afunc"))
    return next((getattr(each, DECLARED) for each in functions if hasattr(each, DECLARED)), None)
