"""L29: in a replay, a fork and a copied thread, rounds go on from those that led there. L3: ordinals count its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_ext import LedgerSaver, durable
from langgraph_ext.nodes import Frame
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, looped, says
from tests.support.driver import Form

COPY: Any = {"configurable": {"thread_id": "copy"}}


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


class Rated:
    """A node that acts once in each round, and notes the round and the receipt that it was given."""

    def __init__(self, acts: Acts) -> None:
        self.acts = acts
        self.seen: list[tuple[tuple[int, ...], int]] = []
        self.keys: list[str] = []
        self.boom: Iterator[int] = iter(())
        """How often it fails behind its effect."""

    def node(self) -> Any:
        def call(key: str) -> int:
            self.keys.append(key)
            return len(self.keys)

        async def acall(key: str) -> int:
            return call(key)

        def after(frame: Frame, receipt: int) -> Any:
            self.seen.append((frame.iteration_path, receipt))
            for _ in self.boom:
                raise Boom("behind its effect")
            return {"log": ["."]}

        if self.acts.form == "sync":

            @durable(effect="write")
            def rate(state: State, frame: Frame) -> Any:
                return after(frame, frame.once("rate", {}, call, base_key="order-7"))

            return rate

        @durable(effect="write")
        async def arate(state: State, frame: Frame) -> Any:
            return after(frame, await frame.aonce("rate", {}, acall, base_key="order-7"))

        return arate

    def ordinals(self) -> list[int]:
        """Of the newest run's visits of it."""
        ledger = self.acts.saver.ledger
        return [each.ordinal for each in ledger.visits(ledger.runs()[0].run_id) if each.node == "a"]


def at(app: Any, entries: int, config: Any = CONFIG) -> Any:
    """The newest checkpoint at which the log has so many entries and something is next."""
    return next(h for h in app.get_state_history(config) if h.next and len(h.values["log"]) == entries).config


def asking(acts: Acts, **nodes: Any) -> Any:
    """A loop of these nodes, the last one of which asks."""
    builder = StateGraph(State)
    names = [*nodes, "ask"]
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_node("ask", lambda state: {"log": [interrupt("go on?")]}).add_edge(START, names[0])
    for name, then in zip(names, [*names[1:], names[0]], strict=True):
        builder.add_edge(name, then)
    return builder.compile(checkpointer=acts.saver)


def test_l29_a_replay_of_a_round_is_given_that_rounds_receipt(acts: Acts) -> None:
    """And not the first one's; the round that it has beyond acts. Its ordinals count its own visits."""
    rated = Rated(acts)
    node = rated.node()
    app = looped(node, 3).compile(checkpointer=acts.saver)
    acts.run(app)
    longer = looped(node, 4).compile(checkpointer=acts.saver)
    acts.run(longer, None, at(app, 3))

    assert [((n,), n) for n in (1, 2, 3)] + [((3,), 3), ((4,), 4)] == rated.seen
    assert (4, [1, 2]) == (len(rated.keys), rated.ordinals())
    assert [] == acts.saver.ledger.verify()


def test_l29_a_fork_of_a_fork_counts_on_from_both(acts: Acts) -> None:
    """What ran where they branched off led elsewhere, and does not count."""
    rated = Rated(acts)
    app = looped(rated.node(), 4).compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, None, at(app, 2))
    acts.run(app, None, at(app, 4))
    acts.run(app, None, acts.saver.get_tuple(at(app, 4)).config)

    assert [1, 2, 3, 4, 2, 3, 4, 4, 4] == [path[0] for path, _ in rated.seen]
    assert all(path == (receipt,) for path, receipt in rated.seen)


def test_l29_update_state_at_an_old_checkpoint_asks_under_that_round(acts: Acts) -> None:
    rated = Rated(acts)
    app = looped(rated.node(), 3).compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, None, app.update_state(at(app, 2), {"log": []}))

    assert [((2,), 2), ((3,), 3)] == rated.seen[3:]


def test_l29_update_state_before_a_failed_round_goes_on_is_the_same_round(acts: Acts) -> None:
    """It is another visit, but no other round: what was committed for that is not done again. So it is in forks."""
    rated = Rated(acts)
    app = looped(rated.node(), 3).compile(checkpointer=acts.saver)
    acts.run(app, interrupt_after=["a"])
    rated.boom = iter([1])
    acts.run(app, None)
    for _ in range(2):
        app.update_state(CONFIG, {"log": []})
    acts.run(app, None)

    assert [1, 2, 2, 3] == [path[0] for path, _ in rated.seen]
    assert [1, 2, 2, 3] == [receipt for _, receipt in rated.seen]
    assert [1, 2, 3, 4] == rated.ordinals()
    acts.run(app, None, at(app, 3))
    acts.run(app, None, at(app, 2))
    assert [3, 2, 3] == [receipt for _, receipt in rated.seen[4:]]


def test_l29_new_input_counts_anew_also_at_an_old_checkpoint(acts: Acts) -> None:
    rated = Rated(acts)
    app = looped(rated.node(), 3).compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, config=at(app, 2))
    acts.run(app, None, at(app, 3))

    assert (1,) == rated.seen[3][0]
    assert all(path == (receipt,) for path, receipt in rated.seen)
    assert 3 == len(rated.keys)


def test_l29_what_came_before_the_newest_input_is_not_inherited(acts: Acts) -> None:
    rated = Rated(acts)
    app = looped(rated.node(), 3).compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app)
    acts.run(app, None, at(app, 5))

    assert [((n,), n) for n in (1, 2, 3)] + [((1,), 1)] * 2 == rated.seen


def test_l29_visits_without_a_durable_body_are_inherited_too(acts: Acts) -> None:
    """A node that calls a durable function in some rounds only."""
    seen: list[tuple[int, ...]] = []
    when = [2]

    @durable
    def part(frame: Frame) -> None:
        seen.append(frame.iteration_path)

    def node(state: State) -> Any:
        if len(state["log"]) in when:
            part()
        return {"log": ["."]}

    async def anode(state: State) -> Any:
        return await asyncio.to_thread(node, state)

    app = looped(node if acts.form == "sync" else anode, 6).compile(checkpointer=acts.saver)
    acts.run(app)
    when[:] = [5]
    acts.run(app, None, at(app, 4))
    when[:] = [3]
    acts.run(app, None, at(app, 3))

    assert [(2,), (5,), (3,)] == seen


def test_l29_a_copied_thread_goes_on_counting(acts: Acts) -> None:
    """Its rows belong to no run; the rounds are those that its checkpoints tell of. So it is where it is replayed."""
    rated = Rated(acts)
    app = asking(acts, a=rated.node())
    acts.run(app)
    acts.run(app, Command(resume="1"))
    acts.saver.copy_thread("t", "copy")
    for _ in range(2):
        acts.run(app, Command(resume="2"), COPY)
    acts.run(app, None, at(app, 3, COPY))
    acts.saver.copy_thread("t", "other")
    acts.run(app, None, at(app, 3, {"configurable": {"thread_id": "other"}}))

    assert [1, 2, 3, 4, 2, 2] == [path[0] for path, _ in rated.seen]
    assert all(path == (receipt,) for path, receipt in rated.seen)
    assert [] == acts.saver.ledger.verify()


def test_l29_a_copy_that_is_replayed_at_its_head_is_in_that_round(acts: Acts) -> None:
    """The copied round had failed behind its effect."""
    rated = Rated(acts)
    app = looped(rated.node(), 3).compile(checkpointer=acts.saver)
    acts.run(app, interrupt_after=["a"])
    rated.boom = iter([1])
    acts.run(app, None)
    acts.saver.copy_thread("t", "copy")
    acts.run(app, None, at(app, 2, COPY))

    assert [((n,), n) for n in (1, 2, 2, 3)] == rated.seen


def test_l29_what_was_done_at_a_copied_head_counts(acts: Acts) -> None:
    """A task beside the one that asks: the copy gives its result back, and does not run it."""
    rated = Rated(acts)
    builder = StateGraph(State).add_node("split", says("split")).add_node("a", rated.node())
    builder.add_node("ask", lambda state: {"log": [interrupt("go on?")]}).add_edge(START, "split")
    builder.add_edge("split", "a").add_edge("split", "ask").add_edge(["a", "ask"], "split")
    app = builder.compile(checkpointer=acts.saver)
    acts.run(app)
    acts.saver.copy_thread("t", "copy")
    acts.run(app, Command(resume="1"), COPY)

    assert [((1,), 1), ((2,), 2)] == rated.seen


def test_l29_a_copied_fan_out_goes_on_counting_each_place(acts: Acts) -> None:
    """Another node's task that has the place in between does not count."""
    seen: list[tuple[str, tuple[int, ...]]] = []
    a = acts.node("a", lambda frame: seen.append(("a", frame.iteration_path)) or {"log": ["."]})
    b = acts.node("b", lambda frame: seen.append(("b", frame.iteration_path)) or {"log": ["."]})
    sent = iter([["a", "b"], ["b", "b"], ["a", "a"]])
    builder = StateGraph(State).add_node("split", says("split")).add_node("a", a).add_node("b", b)
    builder.add_node("ask", lambda state: {"log": [interrupt("go on?")]}).add_edge(START, "split")
    builder.add_conditional_edges("split", lambda state: [Send(n, {"log": []}) for n in next(sent)], ["a", "b"])
    app = builder.add_edge("a", "ask").add_edge("b", "ask").add_edge("ask", "split").compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, Command(resume="1"))
    acts.saver.copy_thread("t", "copy")
    acts.run(app, Command(resume="2"), COPY)

    assert [("a", (1,)), ("a", (2,))] == sorted(seen[4:])


def test_l29_a_subgraph_copied_in_the_middle_goes_on_counting(acts: Acts) -> None:
    rated = Rated(acts)
    inner = StateGraph(State).add_node("a", rated.node()).add_node("ask", lambda state: {"log": [interrupt("?")]})
    inner.add_edge(START, "a").add_edge("a", "ask")
    inner.add_conditional_edges("ask", lambda state: "a" if len(state["log"]) < 8 else "__end__", ["a", "__end__"])
    app = StateGraph(State).add_node("out", inner.compile()).add_edge(START, "out").compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, Command(resume="1"))
    acts.saver.copy_thread("t", "copy")
    acts.run(app, Command(resume="2"), COPY)
    acts.run(app, Command(resume="2"), COPY)

    assert [((1, 1), 1), ((1, 2), 2), ((1, 3), 3)] == rated.seen[:3]
    assert all(path == (1, receipt) for path, receipt in rated.seen)
