"""L18, L45: a tree of graphs, three deep, is cancelled from another connection while its innermost node works."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph.errors import GraphDrained
from langgraph.graph import START, StateGraph

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.errors import AdmissionError
from langgraph_ext.nodes import Frame, durable
from langgraph_ext.saver.callbacks import with_ledger
from langgraph_ext.testing import EffectLog
from tests.support.acted import Acts
from tests.support.apps import CONFIG, State, line
from tests.support.driver import Form

MODES = pytest.mark.parametrize("mode", ["now", "after_call", "after_batch"])


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


class Tree:
    """Graphs of durable nodes that act outside, one in the other, of which the innermost is cancelled at its work."""

    def __init__(self, acts: Acts, folder: Path, mode: str) -> None:
        self.acts, self.mode, self.log = acts, mode, EffectLog(folder / "effects")
        self.ledger = RunLedger(Path(acts.saver.database.name))
        self.asked = threading.Event()

    def node(self, name: str) -> Any:
        """One that acts once, outside; the one named `cancels` is cancelled while it does."""

        def call(key: str) -> str:
            if name == "cancels":
                self.ledger.cancel(self.run_id(), mode=self.mode, reason="enough")
                self.asked.set()
            self.log.record(name)
            return name

        @durable(effect="write")
        def node(state: State, frame: Frame) -> Any:
            return {"log": [frame.once("act", {}, call)]}

        @durable(effect="write")
        async def anode(state: State, frame: Frame) -> Any:
            return {"log": [await frame.aonce("act", {}, call)]}

        return node if self.acts.form == "sync" else anode

    def late(self, name: str) -> Any:
        """A node beside the one that is cancelled: it comes to its durable body behind that."""
        body = self.node(name)

        def node(state: State) -> Any:
            assert self.asked.wait(30)
            return body(state)

        async def anode(state: State) -> Any:
            while not self.asked.is_set():
                await asyncio.sleep(0)
            return await body(state)

        return node if self.acts.form == "sync" else anode

    def around(self, inner: Any, how: str = "nodes") -> Any:
        """The two graphs around the innermost one, attached; which are nodes, or called by one."""
        before, after = self.node("mid before"), self.node("mid after")
        mid = line(None, mid_before=before, inner=self._held(inner, how), mid_after=after)
        nodes = {"before": self.node("before"), "mid": self._held(mid, how), "after": self.node("after")}
        return with_ledger(line(self.acts.saver, **nodes))

    def _held(self, graph: Any, how: str) -> Any:
        def call(state: State) -> Any:
            return graph.invoke(state)

        async def acall(state: State) -> Any:
            return await graph.ainvoke(state)

        return graph if how == "nodes" else call if self.acts.form == "sync" else acall

    def run_id(self) -> str:
        """The run, as soon as it is on record."""
        while not (found := self.ledger.runs()):
            pass
        return found[0].run_id

    def behind_the_end(self) -> set[str]:
        """Names of the run's events behind its cancellation."""
        self.acts.saver.database.transact(lambda tx: None)  # which an event loop does not wait for
        names = [event.name for event in self.ledger.events(self.run_id(), limit=1000)]
        return set(names[names.index("run.cancelled") + 1 :])

    def attempts(self) -> dict[str, str]:
        """How those of each node stand."""
        return {each.node: str(each.status) for each in self.ledger.attempts(self.run_id())}

    def checkpoints(self) -> int:
        """How many the thread has, in all of its graphs."""
        return len(list(self.acts.saver.list(CONFIG)))


@pytest.fixture
def tree(acts: Acts, tmp_path: Path, mode: str) -> Any:
    made = Tree(acts, tmp_path, mode)
    yield made
    made.ledger.close()


@MODES
@pytest.mark.parametrize("how", ["nodes", "called"])
def test_l45_of_a_cancelled_tree_nothing_is_committed_behind_its_next_boundary(
    acts: Acts, tree: Tree, how: str
) -> None:
    """What was running is finished and stored; no graph of the three begins anything more, or stores anything."""
    inner = line(None, first=tree.node("first"), cancels=tree.node("cancels"), last=tree.node("last"))
    app = tree.around(inner, how)
    with pytest.raises((GraphDrained, AdmissionError)):
        acts.run(app)

    begun = ["before", "mid before", "first", "cancels"]
    assert set() == tree.behind_the_end()
    assert dict.fromkeys(begun, 1) == tree.log.counts()
    assert dict.fromkeys((name.replace(" ", "_") for name in begun), "succeeded") == tree.attempts()
    stored = tree.checkpoints()
    with pytest.raises(AdmissionError) as refused:
        acts.run(app, None)
    assert ("cancelled", stored, set()) == (refused.value.code, tree.checkpoints(), tree.behind_the_end())
    assert [] == tree.ledger.verify()


@MODES
def test_l45_beside_what_is_cancelled_in_a_tree_begins_what_its_mode_says(acts: Acts, tree: Tree) -> None:
    """Of the innermost graph's step all, or nothing; behind it nothing, in none of the three. What ran, ends."""
    beside = {"cancels": tree.node("cancels"), "n1": tree.late("n1"), "n2": tree.late("n2")}
    builder = StateGraph(State).add_node("first", tree.node("first")).add_edge(START, "first")
    for name, node in beside.items():
        builder.add_node(name, node).add_edge("first", name)
    builder.add_node("last", tree.node("last")).add_edge(list(beside), "last")
    with pytest.raises((GraphDrained, AdmissionError)):
        acts.run(tree.around(builder.compile()))

    begun = {"before", "mid before", "first", "cancels"} | ({"n1", "n2"} if tree.mode == "after_batch" else set())
    assert dict.fromkeys(begun, 1) == tree.log.counts()
    assert {name.replace(" ", "_") for name in begun} == set(tree.attempts())
    assert not {name for name in tree.behind_the_end() if name.endswith((".started", ".requested", ".resumed"))}
    assert [] == tree.ledger.verify()
