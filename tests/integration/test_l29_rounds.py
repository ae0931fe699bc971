"""L29, L3: which round a durable body stands in, and that each round of a `base_key=` acts once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_ext import LedgerSaver, durable
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.effect_keys import base_key
from langgraph_ext.nodes import Frame
from tests.support.acted import Acts
from tests.support.apps import Boom, State, fan, line, looped, says
from tests.support.driver import Form

Stood = tuple[str, tuple[int, ...]]


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


def stands(acts: Acts, name: str, then: Callable[[], Any] = lambda: {"log": ["."]}) -> tuple[Any, list[Stood]]:
    """A durable node that notes node path and iteration path of each of its bodies."""
    seen: list[Stood] = []

    def body(frame: Frame) -> Any:
        seen.append((frame.node_path, frame.iteration_path))
        return then()

    return acts.node(name, body), seen


def visited(acts: Acts) -> list[tuple[str, int]]:
    """Node path and ordinal of each visit, as the ledger lists them."""
    return [(v.node_path, v.ordinal) for run in acts.saver.ledger.runs() for v in acts.saver.ledger.visits(run.run_id)]


def attempted(acts: Acts) -> list[Stood]:
    """Where each attempt stands, as the ledger lists them."""
    runs = reversed(acts.saver.ledger.runs())
    found = [each for run in runs for each in acts.saver.ledger.attempts(run.run_id)]
    return [(each.node_path, each.iteration_path) for each in found]


def test_l3_each_round_of_a_loop_has_its_ordinal(acts: Acts) -> None:
    node, seen = stands(acts, "a")
    acts.run(looped(node, 3).compile(checkpointer=acts.saver))

    assert [("a", (1,)), ("a", (2,)), ("a", (3,))] == seen == attempted(acts)
    assert [("a", 1), ("a", 2), ("a", 3)] == visited(acts)


def test_l3_another_run_counts_anew(acts: Acts) -> None:
    node, seen = stands(acts, "a")
    app = line(acts.saver, a=node)
    acts.run(app)
    acts.run(app)

    assert [("a", (1,)), ("a", (1,))] == seen


@pytest.mark.parametrize("outer", ["durable", "plain"])
def test_l3_a_subgraph_in_a_loop_is_counted_around_its_nodes(acts: Acts, outer: str) -> None:
    """Three rounds of two: the enclosing visit's ordinal comes first, whether that is durable or not."""
    inside, seen = stands(acts, "in")
    inner = looped(inside, 2, "in").compile()

    def out(frame: Any) -> Any:
        inner.invoke({"log": ["."]})
        return {"log": ["."]}

    async def aout(state: State) -> Any:
        await inner.ainvoke({"log": ["."]})
        return {"log": ["."]}

    if acts.form == "sync":
        node = acts.node("out", out) if outer == "durable" else out
    else:
        node = durable(aout) if outer == "durable" else aout
    acts.run(looped(node, 3, "out").compile(checkpointer=acts.saver))

    assert [("out/in", (round, each)) for round in (1, 2, 3) for each in (1, 2)] == seen
    assert [("out", 1), ("out", 2), ("out", 3)] == [each for each in visited(acts) if each[0] == "out"]
    assert [("out/in", 1), ("out/in", 2)] * 3 == [each for each in visited(acts) if each[0] == "out/in"]


def test_l3_a_subgraph_called_twice_in_one_node_goes_on_counting(acts: Acts) -> None:
    """One visit around both: the second call's are the next ones."""
    inside, seen = stands(acts, "in")
    inner = line(None, **{"in": inside})

    def out(state: State) -> Any:
        inner.invoke({"log": []})
        return inner.invoke({"log": []})

    async def aout(state: State) -> Any:
        await inner.ainvoke({"log": []})
        return await inner.ainvoke({"log": []})

    acts.run(line(acts.saver, out=out if acts.form == "sync" else aout))

    assert [("out/in", (1, 1)), ("out/in", (1, 2))] == seen


def test_l3_deep_down_every_level_is_named_and_counted(acts: Acts) -> None:
    inside, seen = stands(acts, "c")
    lowest = line(None, c=inside)
    middle = StateGraph(State).add_node("b", lowest).add_edge(START, "b").compile()
    acts.run(looped(middle, 12, "a").compile(checkpointer=acts.saver))

    assert [("a/b/c", (round, 1, 1)) for round in range(1, len(seen) + 1)] == seen
    assert len(seen) > 1


def test_l3_plain_visits_count_too(acts: Acts) -> None:
    """A node that calls a durable function in some rounds only."""
    seen: list[Stood] = []

    @durable
    def part(frame: Frame) -> None:
        seen.append((frame.node_path, frame.iteration_path))

    def node(state: State) -> Any:
        if len(state["log"]) in (3, 5):
            part()
        return {"log": ["."]}

    async def anode(state: State) -> Any:
        return await asyncio.to_thread(node, state)

    acts.run(looped(node if acts.form == "sync" else anode, 6).compile(checkpointer=acts.saver))

    assert [("a", (3,)), ("a", (5,))] == seen
    assert [("a", number) for number in range(1, 7)] == visited(acts)


def test_l3_tasks_of_a_fan_out_are_in_one_round(acts: Acts) -> None:
    """They are told apart by their place, as in the listing of visits."""
    node, seen = stands(acts, "a")
    acts.run(fan(acts.saver, "a", "a", "a", a=node))

    assert [("a", (1,))] * 3 == seen
    assert [("a", 1)] * 3 == [each for each in visited(acts) if each[0] == "a"]


def test_l3_a_fan_out_in_a_loop_counts_each_place(acts: Acts) -> None:
    """Other nodes' tasks may have the place in between; they do not count."""
    a, seen = stands(acts, "a")
    b, others = stands(acts, "b")
    sent = {1: ["a", "b"], 2: ["b", "a"], 3: ["a", "a"]}
    rounds = iter(sent.values())
    builder = StateGraph(State).add_node("split", says("split")).add_node("a", a).add_node("b", b)
    builder.add_edge(START, "split").add_edge("a", "split").add_edge("b", "split")
    builder.add_conditional_edges("split", lambda state: [Send(n, {"log": []}) for n in next(rounds, [])], ["a", "b"])
    acts.run(builder.compile(checkpointer=acts.saver))

    assert [("a", (1,)), ("a", (1,)), ("a", (2,)), ("a", (2,))] == seen
    assert [("b", (1,)), ("b", (1,))] == sorted(others)
    ordinals = [
        (v.place, v.ordinal) for v in acts.saver.ledger.visits(acts.saver.ledger.runs()[0].run_id) if v.node == "a"
    ]
    assert [(0, 1), (0, 2), (1, 1), (1, 2)] == sorted(ordinals)


def test_l3_calls_of_a_task_are_counted(acts: Acts) -> None:
    """Each call of a `@task` by its workflow, by the function's name."""
    seen: list[Stood] = []

    def note(frame: Frame) -> None:
        seen.append((frame.node_path, frame.iteration_path))

    if acts.form == "sync":

        @task
        @durable
        def step(number: int, frame: Frame) -> int:
            note(frame)
            return number

        @entrypoint(checkpointer=acts.saver)
        def work(given: Any) -> Any:
            return [step(number).result() for number in range(3)]
    else:

        @task
        @durable
        async def step(number: int, frame: Frame) -> int:
            note(frame)
            return number

        @entrypoint(checkpointer=acts.saver)
        async def work(given: Any) -> Any:
            return [await step(number) for number in range(3)]

    acts.run(work, {"go": 1})

    assert [("step", (1,)), ("step", (2,)), ("step", (3,))] == seen
    assert [("step", 1), ("step", 2), ("step", 3)] == [each for each in visited(acts) if each[0] != "work"]


def test_l3_it_is_the_same_when_the_body_is_entered_again(acts: Acts) -> None:
    """By a resumption, and by the next attempt after a failure."""
    turns = iter(["asks", "fails", "ends"] * 2)

    def then() -> Any:
        for turn in turns:
            if turn == "asks":
                interrupt("sure?")
            if turn == "fails":
                raise Boom("later")
            return {"log": ["."]}

    node, seen = stands(acts, "in", then)
    app = looped(line(None, **{"in": node}), 3, "out").compile(checkpointer=acts.saver)
    acts.run(app)
    for _ in range(2):
        acts.run(app, Command(resume="yes"))
        acts.run(app, None)

    assert [("out/in", (1, 1))] * 3 == seen[:3]
    assert {("out/in", (2, 1))} == set(seen[3:6])


def charging(acts: Acts, charged: list[str], **named: Any) -> Any:
    def body(frame: Frame) -> Any:
        charged.append("asked")
        frame.once("charge", {}, charged.append, **named)
        return {"log": ["."]}

    async def abody(state: State, frame: Frame) -> Any:
        async def call(key: str) -> None:
            charged.append(key)

        charged.append("asked")
        await frame.aonce("charge", {}, call, **named)
        return {"log": ["."]}

    return acts.node("a", body, effect="write") if acts.form == "sync" else durable(effect="write")(abody)


def test_l29_with_a_base_key_each_round_acts_once_whatever_the_run(acts: Acts) -> None:
    """The second run's rounds are the first's: it is given their receipts, and acts in the one that it has beyond."""
    charged: list[str] = []
    node = charging(acts, charged, base_key="order-7")
    acts.run(looped(node, 2).compile(checkpointer=acts.saver))
    acts.run(looped(node, 3).compile(checkpointer=acts.saver), config={"configurable": {"thread_id": "u"}})

    assert [base_key("order-7", (each,), "charge", None) for each in (1, 2, 3)] == [k for k in charged if k != "asked"]
    assert 5 == charged.count("asked")
    assert {(1,), (2,), (3,)} == {effect.iteration_path for effect in acts.saver.ledger.effects()}
    assert {"a"} == {effect.node_path for effect in acts.saver.ledger.effects()}


def test_l29_a_base_key_and_a_key_are_not_given_together(acts: Acts) -> None:
    with pytest.raises(InvalidArgument, match="both given"):
        acts.run(line(acts.saver, a=charging(acts, [], base_key="order-7", key="order-7")))


def test_l28_one_name_twice_in_an_attempt_needs_a_part(acts: Acts) -> None:
    """Refused before it acts a second time; with a part each acts. What the first use came to stays on record."""
    acted: list[str] = []
    parts: list[str | None] = [None, None]

    def body(frame: Frame) -> Any:
        for part in parts:
            frame.once("charge", {}, acted.append, part=part)
        return {"log": ["."]}

    async def abody(state: State, frame: Frame) -> Any:
        async def call(key: str) -> None:
            acted.append(key)

        for part in parts:
            await frame.aonce("charge", {}, call, part=part)
        return {"log": ["."]}

    node = acts.node("a", body, effect="write") if acts.form == "sync" else durable(effect="write")(abody)
    app = line(acts.saver, a=node)
    with pytest.raises(InvalidArgument, match="part="):
        acts.run(app)
    assert (1, ["committed"]) == (len(acted), [str(each.status) for each in acts.saver.ledger.effects()])
    parts[1] = "2"
    acts.run(app, None)

    assert (2, 2) == (len(acted), len(set(acted)))
    assert [(None, "committed"), ("2", "committed")] == [(e.part, str(e.status)) for e in acts.saver.ledger.effects()]
