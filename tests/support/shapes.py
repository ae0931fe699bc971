"""Graphs of random shape: a line of parts, each of which runs nodes that raise, ask, or are handled.

A part is drawn by Hypothesis as plain data, so that a failing example can be read: `("fan", (ASKS, FAILS))` sends two
tasks, one of which asks and one of which raises the first time.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from hypothesis import strategies as st
from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from tests.support.driver import Form

__all__ = ["PARTS", "Boom", "Manner", "parts", "shape"]


class Boom(ValueError):
    """What a node of these graphs raises."""


class State(TypedDict):
    log: Annotated[list[str], operator.add]


@dataclass(frozen=True)
class Manner:
    """What a node does before it adds its name to the log."""

    raises: int = 0
    """So many times, when it is called first."""
    asks: int = 0
    """So many questions, one after the other."""
    raises_answered: int = 0
    """So many times, behind its last answer."""
    handled: bool = False
    """Whether an error handler takes over what it raises."""


PLAIN, FAILS, ASKS = Manner(), Manner(raises=1), Manner(asks=1)
MANNERS = [
    PLAIN,
    PLAIN,
    FAILS,
    ASKS,
    Manner(raises=2),
    Manner(asks=2),
    Manner(raises=1, asks=1),
    Manner(asks=1, raises_answered=1),
    Manner(raises=1, handled=True),
]

PARTS = ["node", "join", "long join", "meet", "route", "loop", "fan", "sub", "fan of subs"]

manners = st.sampled_from(MANNERS)
_some = st.lists(manners, min_size=1, max_size=3).map(tuple)
_leaves = st.tuples(st.sampled_from([part for part in PARTS if "sub" not in part]), _some)
_inner = st.lists(_leaves | st.tuples(st.just("sub"), st.lists(_leaves, min_size=1, max_size=2).map(tuple)), max_size=2)
_nested = st.tuples(st.sampled_from(["sub", "fan of subs"]), _inner.map(lambda some: (*some, ("node", (PLAIN,)))))
parts = st.lists(_leaves | _leaves | _nested, min_size=1, max_size=4)
"""The parts of a graph."""


def shape(some: Sequence[Any], form: Form, saver: Any = None) -> Any:
    """Compile the graph of these parts."""
    return _Shape(form, Counter(), Counter()).compiled(some, "", saver)


@dataclass(frozen=True)
class _Shape:
    form: Form
    raised: Counter[str]
    raised_answered: Counter[str]

    def compiled(self, some: Sequence[Any], prefix: str, saver: Any) -> Any:
        builder = StateGraph(State)
        before = START
        for number, (part, manners) in enumerate(some):
            first, last = self._part(builder, part, manners, f"{prefix}p{number}")
            builder.add_edge(before, first)
            before = last
        return builder.add_edge(before, END).compile(checkpointer=saver)

    def _part(self, builder: Any, part: str, manners: Sequence[Any], name: str) -> tuple[str, str]:
        """Add a part to the graph; its first and its last node."""
        if part == "node":
            self._node(builder, name, manners[0])
            return name, name
        if part == "sub":
            builder.add_node(name, self.compiled(manners, f"{name}_", None))
            return name, name
        end = f"{name}_end"
        self._node(builder, end, PLAIN)
        if part == "loop":
            self._node(builder, name, manners[0])
            builder.add_conditional_edges(name, lambda state: end if state["log"].count(name) % 3 == 0 else name)
            return name, end
        self._node(builder, name, manners[-1] if part == "route" else PLAIN)
        if part in ("fan", "fan of subs"):
            self._fan(builder, part, manners, name, end)
        elif part == "route":
            self._route(builder, manners, name, end)
        else:
            self._branches(builder, part, manners, name, end)
        return name, end

    def _fan(self, builder: Any, part: str, manners: Sequence[Any], name: str, end: str) -> None:
        worker, count = f"{name}_w", 2 if part == "fan of subs" else len(manners)
        if part == "fan":
            builder.add_node(worker, self._worker(worker, manners))
        else:
            builder.add_node(worker, self.compiled(manners, f"{worker}_", None))
        builder.add_conditional_edges(
            name, lambda state: [Send(worker, {"log": [], "at": at}) for at in range(count)], [worker]
        )
        builder.add_edge(worker, end)

    def _route(self, builder: Any, manners: Sequence[Any], name: str, end: str) -> None:
        sides = [f"{name}_l", f"{name}_r"]
        for side, manner in zip(sides, (manners[0], PLAIN), strict=True):
            self._node(builder, side, manner)
            builder.add_edge(side, end)
        builder.add_conditional_edges(name, lambda state: sides[len(state["log"]) % 2], sides)

    def _branches(self, builder: Any, part: str, manners: Sequence[Any], name: str, end: str) -> None:
        branches = [f"{name}_{at}" for at in range(len(manners) + 1)]
        for branch, manner in zip(branches, [PLAIN, *manners], strict=True):
            self._node(builder, branch, manner)
            builder.add_edge(name, branch)
        if part == "long join":
            self._node(builder, f"{name}_more", PLAIN)
            builder.add_edge(branches[0], f"{name}_more")
            branches[0] = f"{name}_more"
        if part == "meet":
            for branch in branches:
                builder.add_edge(branch, end)
        else:
            builder.add_edge(branches, end)

    def _node(self, builder: Any, name: str, manner: Manner) -> None:
        def handler(state: State, error: NodeError) -> dict[str, Any]:
            return {"log": [f"{name} handled"]}

        more = {"error_handler": handler} if manner.handled else {}
        builder.add_node(name, self._acting(lambda state: self._act(name, manner)), **more)

    def _worker(self, name: str, manners: Sequence[Manner]) -> Any:
        return self._acting(lambda state: self._act(f"{name}{state['at']}", manners[state["at"]]))

    def _acting(self, act: Any) -> Any:
        async def aact(state: State) -> Any:
            return act(state)

        return aact if self.form == "async" else act

    def _act(self, name: str, manner: Manner) -> dict[str, list[str]]:
        if self.raised[name] < manner.raises:
            self.raised[name] += 1
            raise Boom(f"{name} raised")
        for number in range(manner.asks):
            interrupt({"kind": name, "number": number})
        if self.raised_answered[name] < manner.raises_answered:
            self.raised_answered[name] += 1
            raise Boom(f"{name} raised when it was answered")
        return {"log": [name]}
