"""What a reader is told of real graphs, sync and async, with each durability: visits, events, errors, questions.

Under durability `exit` LangGraph tells a saver nothing of tasks that are over; there, only what must hold always does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.ledger import InterruptStatus, RunStatus, Visit, VisitKind, VisitStatus
from tests.support.apps import CONFIG, Boom, State, asks, fails, fan, line, says
from tests.support.driver import Form
from tests.support.reader import Reader

TOLD = ("sync", "async")
"""Durabilities under which a saver is told what each task wrote."""


class Story:
    """A graph that runs in one form with one durability, and what the ledger says of it from another connection."""

    def __init__(self, saver: LedgerSaver, reader: Reader, durability: str) -> None:
        self.saver, self.reader, self.durability = saver, reader, durability

    @property
    def told(self) -> bool:
        """Whether the saver is told what each task wrote."""
        return self.durability in TOLD

    def run(self, app: Any, given: Any = ("in",), config: Any = CONFIG) -> None:
        """Run until it ends, fails or asks; then whatever must hold always does."""
        if isinstance(given, tuple):
            given = {"log": list(given)}
        try:
            if self.reader.form == "sync":
                app.invoke(given, config, durability=self.durability)
            else:
                self.reader.loop.run_until_complete(app.ainvoke(given, config, durability=self.durability))
        except Boom:
            pass
        self.check()

    def check(self) -> None:
        """Every run is numbered without gaps, its events are the last of all of its, and what is counted agrees."""
        assert [] == self.reader.verify()
        of_all = self.reader.events(limit=10_000)
        assert sorted(event.cursor for event in of_all) == [event.cursor for event in of_all]
        for run in self.reader.runs():
            events, visits = self.reader.events(run.run_id, limit=10_000), self.reader.visits(run.run_id)
            first = events[0].run_seq or 0
            assert list(range(first, first + len(events))) == [event.run_seq for event in events]
            cursors = [event.cursor for event in of_all if event.run_id == run.run_id]
            assert cursors[-len(events) :] == [event.cursor for event in events]
            assert (first == 1) == (len(cursors) == len(events))
            assert list(range(1, len(visits) + 1)) == [visit.transition for visit in visits]
            seen = self.reader.snapshot(run.run_id)
            assert (len(visits), Counter(visit.status for visit in visits)) == (seen.transitions, seen.visits)
            assert events[-1].cursor == seen.cursor
            assert events == self.reader.follow(run.run_id, idle_seconds=0)
            pending = self.reader.interrupts(run_id=run.run_id, pending=True)
            assert (tuple(pending), run.status is RunStatus.PAUSED) == (seen.pending, bool(pending))

    def visits(self, run_id: str | None = None, **options: Any) -> list[Visit]:
        """Of the newest run, or of this one."""
        found: list[Visit] = self.reader.visits(run_id or self.reader.runs()[0].run_id, **options)
        return found

    def counted(self, run_id: str | None = None) -> list[tuple[str, int]]:
        """Node path and ordinal of each visit."""
        return [(visit.node_path, visit.ordinal) for visit in self.visits(run_id)]

    def status(self) -> str:
        """Of the newest run."""
        return str(self.reader.runs()[0].status)

    def names(self) -> list[str]:
        """Names of the newest run's events."""
        return [event.name for event in self.reader.events(self.reader.runs()[0].run_id, limit=1000)]


@pytest.fixture
def story(saver: LedgerSaver, form: Form, durability: str, loop: asyncio.AbstractEventLoop) -> Any:
    saver.setup()
    with RunLedger(saver.database.name) as ledger:
        yield Story(saver, Reader(ledger, form, loop), durability)


def test_l3_a_line_of_nodes(story: Story) -> None:
    story.run(line(story.saver, first=says("a"), second=says("b"), third=says("c")))

    assert "succeeded" == story.status()
    if story.told:
        assert [("first", 1), ("second", 1), ("third", 1)] == story.counted()
        names = ["run.started", *["visit.succeeded"] * 3, "run.succeeded"]
        assert Counter(names) == Counter(story.names())


def test_l3_a_loop_of_three_rounds(story: Story) -> None:
    """A node's ordinal is the round it is in."""
    builder = StateGraph(State).add_node("think", says("think")).add_node("act", says("act"))
    builder.add_edge(START, "think").add_edge("act", "think")
    builder.add_conditional_edges("think", lambda state: "act" if len(state["log"]) < 6 else "__end__")
    story.run(builder.compile(checkpointer=story.saver))

    if story.told:
        assert [("think", 1), ("act", 1), ("think", 2), ("act", 2), ("think", 3)] == story.counted()
        assert [3] == [visit.ordinal for visit in story.visits(node_path="think", after=4)]


def test_l3_a_fan_out(story: Story) -> None:
    """Each task stands at its place; a place is a node by the order of the Sends."""
    app = fan(story.saver, "left", "right", "left", left=says("l"), right=says("r"))
    story.run(app)
    places = {visit.place: visit.node for visit in story.visits() if visit.place is not None}

    if story.told:
        assert {0: "left", 1: "right", 2: "left"} == places
        assert {1} == {visit.ordinal for visit in story.visits()}


def nested(saver: Any, leaf: Callable[..., Any]) -> Any:
    """A graph in a graph in a graph; the middle one runs twice."""
    inner = StateGraph(State).add_node("leaf", leaf).add_edge(START, "leaf").compile()
    middle = StateGraph(State).add_node("inner", inner).add_node("after", says("after"))
    middle.add_edge(START, "inner").add_edge("inner", "after")
    outer = StateGraph(State).add_node("middle", middle.compile()).add_edge(START, "middle")
    outer.add_conditional_edges("middle", lambda state: "middle" if state["log"].count("again") < 2 else "__end__")
    return outer.compile(checkpointer=saver)


def test_l3_graphs_in_graphs(story: Story) -> None:
    """A node path is that of the enclosing visits; inside each of them counting begins anew."""
    story.run(nested(story.saver, lambda state: {"log": ["again"]}))
    found = story.visits()
    rounds = [visit for visit in found if visit.node_path == "middle"]

    if story.told:
        paths = ["middle/inner/leaf", "middle/inner", "middle/after", "middle"]
        assert Counter(paths * len(rounds)) == Counter(visit.node_path for visit in found)
        assert list(range(1, len(rounds) + 1)) == [visit.ordinal for visit in rounds]
        assert {1} == {visit.ordinal for visit in found if visit.node_path != "middle"}
        scopes = {visit.scope for visit in found if visit.node_path in ("middle/inner", "middle/after")}
        assert {visit.task_id for visit in rounds} == scopes


def test_l24_a_question_deep_inside(story: Story) -> None:
    """The graphs around it pause too; answered, every visit has succeeded and the question has one record."""
    app = nested(story.saver, lambda state: {"log": [str(interrupt({"kind": "deep"})), "again", "again"]})
    story.run(app)
    [asked] = story.reader.interrupts()
    paused = [visit.node_path for visit in story.visits(status="paused")]
    story.run(app, Command(resume="yes"))

    # At its exit LangGraph hands over the writes of the outermost graph first, and the first to ask is recorded.
    assert ("deep", {"kind": "deep"}) == (asked.kind, asked.value)
    assert "leaf" == asked.node
    assert {"middle/inner/leaf", "middle/inner", "middle"} == set(paused)
    [closed] = story.reader.interrupts()
    assert (InterruptStatus.ANSWERED, "succeeded") == (closed.status, story.status())
    if story.told:
        assert {VisitStatus.SUCCEEDED} == {visit.status for visit in story.visits()}


def test_l9_an_error_and_going_on(story: Story) -> None:
    """The failed visit succeeds when it is run again; its error stays on record."""
    app = line(story.saver, first=says("a"), shaky=fails(2, "shaky"))
    story.run(app)
    failed = story.reader.runs()[0]
    story.run(app, None)
    story.run(app, None)
    run = story.reader.runs()[0]

    assert (RunStatus.FAILED, "Boom", "shaky failed") == (failed.status, failed.error_type, failed.error_message)
    assert (failed.run_id, RunStatus.SUCCEEDED, "Boom") == (run.run_id, run.status, run.error_type)
    if story.told:
        assert ["shaky failed"] * 2 == [error.error_message for error in story.reader.errors(run.run_id)]
        [shaky] = story.visits(node_path="shaky")
        assert (VisitStatus.SUCCEEDED, 3, "Boom") == (shaky.status, shaky.attempts, shaky.error_type)


def test_l9_a_router_that_raises(story: Story) -> None:
    """Its node's visit has failed, though it had written; it runs again."""
    left = iter(range(1))

    def route(state: State) -> str:
        for _ in left:
            raise Boom("no way")
        return "end"

    builder = StateGraph(State).add_node("node", says("node")).add_node("end", says("end")).add_edge(START, "node")
    builder.add_conditional_edges("node", route, ["end"])
    app = builder.compile(checkpointer=story.saver)
    story.run(app)
    before = story.status()
    story.run(app, None)

    assert ("failed", "succeeded") == (before, story.status())
    if story.told:
        assert [("node", 2), ("end", 1)] == [(visit.node_path, visit.attempts) for visit in story.visits()]


def test_l9_an_error_handler(story: Story) -> None:
    """The node's visit has failed, the handler's has succeeded, and so has the run."""
    builder = StateGraph(State).add_edge(START, "shaky")
    builder.add_node("shaky", fails(9, "shaky"), error_handler=lambda state: {"log": ["handled"]})
    story.run(builder.compile(checkpointer=story.saver))

    assert "succeeded" == story.status()
    if story.told:
        failed, handler = story.visits()
        assert (VisitKind.NODE, VisitStatus.FAILED, "Boom") == (failed.kind, failed.status, failed.error_type)
        assert (VisitKind.ERROR_HANDLER, VisitStatus.SUCCEEDED) == (handler.kind, handler.status)
        assert ("shaky", "shaky") == (failed.node, handler.node)


def test_l24_two_questions_of_one_node(story: Story) -> None:
    """One after the other, each with its place in the task; one visit that paused twice."""
    app = line(story.saver, ask=asks({"kind": "first"}, "second"))
    story.run(app)
    story.run(app, Command(resume="1"))
    between = [(each.kind, each.ordinal, str(each.status)) for each in story.reader.interrupts()]
    story.run(app, Command(resume="2"))
    [visit] = story.visits() if story.told else [None]

    assert [("first", 0, "answered"), (None, 1, "pending")] == between
    assert ["answered", "answered"] == [str(each.status) for each in story.reader.interrupts()]
    assert "succeeded" == story.status()
    if visit is not None:
        assert (VisitStatus.SUCCEEDED, 3) == (visit.status, visit.attempts)


def test_l24_questions_of_a_fan_out(story: Story) -> None:
    """Several open at once; each names the node that asks."""
    app = fan(story.saver, "left", "right", left=asks("l?"), right=asks("r?"))
    story.run(app)
    open_ones = {each.node: each for each in story.reader.interrupts(pending=True)}
    story.run(app, Command(resume={each.interrupt_id: "yes" for each in open_ones.values()}))

    assert {"left": "l?", "right": "r?"} == {str(node): each.value for node, each in open_ones.items()}
    assert ([], "succeeded") == (story.reader.interrupts(pending=True), story.status())


def test_l47_a_fork_and_what_it_inherited(story: Story) -> None:
    """Replayed from its middle: a new run, which shows the visits before it when asked."""
    app = line(story.saver, first=says("a"), second=says("b"), third=says("c"))
    story.run(app)
    if not story.told:
        return
    [middle] = [found.config for found in app.get_state_history(CONFIG) if found.next == ("second",)]
    story.run(app, None, middle)
    new, old = story.reader.runs()
    inherited = story.visits(inherited=True)

    assert old.run_id == new.fork_of
    assert [("second", 1), ("third", 1)] == story.counted()
    assert [("first", True, 0), ("second", False, 1), ("third", False, 2)] == [
        (visit.node_path, visit.inherited, visit.transition) for visit in inherited
    ]
    assert [("first", 1), ("second", 1), ("third", 1)] == story.counted(old.run_id)


def test_l3_the_functional_api(story: Story) -> None:
    """Tasks are visits without a name; called in the entrypoint, they stand beside it."""

    @task
    def add(number: int) -> int:
        return number + 1

    @entrypoint(checkpointer=story.saver)
    def main(given: dict[str, list[str]]) -> int:
        return add(add(1).result()).result()

    story.run(main)

    assert "succeeded" == story.status()
    if story.told:
        kinds = Counter((visit.kind, visit.node) for visit in story.visits())
        assert {(VisitKind.TASK, None): 2, (VisitKind.NODE, "main"): 1} == kinds


def test_l3_two_turns_of_a_thread_are_two_runs(story: Story) -> None:
    app = line(story.saver, first=says("a"), second=says("b"))
    story.run(app)
    story.run(app)

    assert ["succeeded"] * 2 == [str(run.status) for run in story.reader.runs()]
    assert [run.run_id for run in story.reader.runs(limit=1)] == [run.run_id for run in story.reader.runs()[:1]]
    if story.told:
        assert [[("first", 1), ("second", 1)]] * 2 == [story.counted(run.run_id) for run in story.reader.runs()]


def test_l48_a_follower_beside_a_running_graph(story: Story) -> None:
    """It gets, while the graph runs, what a reader finds afterwards."""

    def split(state: State) -> list[Send]:
        return [Send("work", {"log": []}) for _ in range(8)]

    inner = StateGraph(State).add_node("leaf", says("leaf")).add_edge(START, "leaf").compile()
    builder = StateGraph(State).add_node("split", says("split")).add_node("work", inner).add_edge(START, "split")
    builder.add_conditional_edges("split", split, ["work"])
    app = builder.compile(checkpointer=story.saver)
    loop = story.reader.loop

    async def both() -> list[Any]:
        run = app.ainvoke({"log": []}, CONFIG, durability=story.durability)
        running = asyncio.ensure_future(run)
        events = story.reader.ledger.afollow(poll_seconds=0.001)
        found: list[Any] = []
        async for event in events:
            found.append(event)
            if event.name == "run.succeeded":
                break
        await events.aclose()
        await running
        return found

    followed = loop.run_until_complete(both())
    story.check()

    assert [(e.cursor, e.name, e.task_id) for e in story.reader.events(limit=1000)] == [
        (event.cursor, event.name, event.task_id) for event in followed
    ]


def test_a_ledger_stays_sound_when_checkpoints_are_taken_away(story: Story) -> None:
    """Whatever is pruned, copied or deleted: nothing is left that belongs to nobody, and a cursor goes on."""
    app = line(story.saver, first=says("a"), ask=asks("?"), last=says("c"))
    for thread in ("t", "u", "v"):
        where: Any = {"configurable": {"thread_id": thread}}
        story.run(app, config=where)
        story.run(app, Command(resume="yes"), where)
        story.run(app, config=where)
    cursor = story.reader.events(limit=1000)[-1].cursor
    story.saver.prune(["t"])
    story.check()
    story.saver.copy_thread("u", "copy")
    story.check()
    story.saver.delete_thread("u")
    story.saver.delete_for_runs([run.run_id for run in story.reader.runs(thread_id="v")])
    story.check()

    assert {"thread.pruned", "thread.deleted"} <= {event.name for event in story.reader.events(after=cursor)}
    assert [] == story.reader.runs(thread_id="u")
