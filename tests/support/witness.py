"""A thread and its ledger: graphs run over a LedgerSaver, and what LangGraph says of the thread must be told.

What should be in the ledger is worked out from the actions (`_attribute`: whose are the checkpoints an action made) and
from LangGraph's own `get_state` and `get_state_history` (`_status`: how a run stands at its head). Where the saver
alone cannot know, the model says so:

- Under durability `exit` it is handed the last checkpoint only, whose source may be `loop` whatever the action was. So
  new input on an open run, and a replay of its very head, look as if the run went on; of the steps it knows nothing.
  A subgraph that ended hands it nothing at all, and one that stopped behind its answer no more than where: what was
  asked in there stays pending until the root graph goes on.
  With what its tasks did it is handed again what `update_state` had given at that checkpoint: these count as visits.
- An error says that a run failed; that somebody tries again is seen when a task has written. What an invocation does
  before its first write is not known.
- Where one task asks and another fails at one checkpoint, in the root graph or in a subgraph, LangGraph shows both, and
  the error also after its task was tried again: the run is paused, as an answer takes it on (rule L27), or failed, by
  what came last. One task of the root graph that failed and asks now is paused.
- A task that is replayed at the head of its own fork asks its first question anew, and LangGraph shows that. The
  answers it was given are still stored, and the next one goes to the question behind them: that one is pending, if it
  was asked; if not, the run stands as it did.
- `update_state` behind a stop leaves something to run and nobody who runs it: the run is idle, or as it was when it
  failed; its questions are gone.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.types import Command

from langgraph_ext import LedgerSaver
from langgraph_ext.ledger import Event
from tests.support.driver import Form
from tests.support.reader import Reader
from tests.support.shapes import Boom, shape
from tests.support.stored import (
    answered_in,
    answers_of,
    encloses,
    finished_at,
    finished_inside,
    handled_in,
    is_current,
    newest_in,
    pending_at,
    questions_in,
    space_of,
)

__all__ = ["Thread"]

THREAD = "t"
HEAD: Any = {"configurable": {"thread_id": THREAD}, "recursion_limit": 80}
MANY = 100_000


@dataclass
class Ran:
    """A run, as the actions made it."""

    fork_of: int | None
    superseded: bool = False
    status: frozenset[str] = frozenset(("running",))
    """How it may stand."""


class Thread:
    """One thread on a database of its own. Each action is followed by a comparison."""

    def __init__(self, parts: Sequence[Any], form: Form, durability: str) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.form, self.durability = form, durability
        self.saver = LedgerSaver(str(self.folder / "runs.db"), fsync="normal")
        self.ledger = Reader(self.saver.ledger, form, self.loop)
        self.graph = shape(parts, form, self.saver)
        self.runs: list[Ran] = []
        self.run_of: dict[str, int | None] = {}
        """Of each root checkpoint."""
        self.parents: dict[str, str | None] = {}
        self.given: set[tuple[str, str]] = set()
        """Tasks whose results `update_state` gave."""
        self.places: dict[Any, Any] = {}
        """Of each visit, what must never change."""
        self.events: list[Event] = []
        self.asked: dict[tuple[str, int], tuple[str, Any]] = {}
        """Id and value of each question, by task and number."""

    def close(self) -> None:
        self.saver.close()
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        shutil.rmtree(self.folder)

    # -- actions

    def invoke(self, what: str, pick: int = 0, *, at_old: bool = False) -> None:
        """Run the graph: with new input, on from where it stands, or with an answer, plain or by id."""
        base = self._picked(pick) if at_old else None
        given = self._given(what, pick, base)
        config = HEAD if base is None else {**HEAD, "configurable": {**HEAD["configurable"], "checkpoint_id": base}}
        with suppress(Boom, EmptyInputError, RuntimeError):  # the last: more than one question is open
            self._call("invoke", given, config, durability=self.durability)
        self._attribute(base or self._head(), is_input=what == "input")
        self.compare()

    def update(self, pick: int = 0, *, at_old: bool = False) -> None:
        """Call `update_state`."""
        base = self._picked(pick) if at_old else None
        config = HEAD if base is None else {**HEAD, "configurable": {**HEAD["configurable"], "checkpoint_id": base}}
        before = self._finished()
        nodes = [None, *sorted(name for name in self.graph.nodes if not name.startswith("__"))]
        with suppress(InvalidUpdateError):
            self._call("update_state", config, {"log": ["edited"]}, as_node=nodes[pick % len(nodes)])
        self.given |= self._finished() - before
        self._attribute_update(base or self._head())
        self.compare()

    def _given(self, what: str, pick: int, base: str | None) -> Any:
        if what == "input":
            return {"log": ["in"]}
        pending = sorted(self._pending(base or self._head()))
        if what == "go" or not pending:
            return None
        if what == "answer" and len(pending) == 1:
            return Command(resume="yes")
        return Command(resume=dict.fromkeys(pending[: 1 + pick % len(pending)], "yes"))

    def _call(self, method: str, *args: Any, **options: Any) -> Any:
        if self.form == "sync":
            return getattr(self.graph, method)(*args, **options)
        return self.loop.run_until_complete(self._acall(getattr(self.graph, f"a{method}"), *args, **options))

    async def _acall(self, method: Any, *args: Any, **options: Any) -> Any:
        """LangGraph does not wait for what a cancelled task writes; we do."""
        try:
            return await method(*args, **options)
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)

    def _picked(self, pick: int) -> str:
        ids = sorted(self.run_of)
        return ids[pick % len(ids)]

    # -- what LangGraph says

    def _head(self) -> str:
        return max(self.run_of, default="")

    def _snapshots(self) -> dict[str, Any]:
        """Every root checkpoint, by its id."""
        if self.form == "sync":
            found = list(self.graph.get_state_history(HEAD))
        else:

            async def collect() -> list[Any]:
                return [each async for each in self.graph.aget_state_history(HEAD)]

            found = self.loop.run_until_complete(collect())
        return {_id(each.config): each for each in found}

    def _finished(self) -> set[tuple[str, str]]:
        """Checkpoints and tasks of the root graph whose results LangGraph holds."""
        return {
            (each, task.id)
            for each, snapshot in self._snapshots().items()
            for task in snapshot.tasks
            if task.result is not None and task.name != "__start__"
        }

    def _stored(self) -> list[Any]:
        """Every checkpoint in every namespace."""
        return list(self.saver.list({"configurable": {"thread_id": THREAD}}))

    def _pending(self, root_id: str) -> dict[str, Any]:
        """Questions that nobody has answered, in subgraphs too, by their ids."""
        stored = self._stored()
        return pending_at(stored, root_id, self._newest(stored)) | self._passed_over(stored, root_id)

    def _newest(self, stored: list[Any]) -> dict[str, str]:
        return newest_in(stored, silent=self.durability != "exit")

    def _passed_over(self, stored: list[Any], root_id: str) -> dict[str, Any]:
        """Questions that are pending behind answered ones which their tasks asked anew."""
        found: dict[str, Any] = {}
        answered, spaces, newest = answered_in(stored), {space_of(each) for each in stored}, self._newest(stored)
        for each in stored:
            for task_id, channel, value in each.pending_writes if is_current(each, root_id, newest) else ():
                for question in value if channel == "__interrupt__" and not encloses(task_id, spaces) else ():
                    self.asked[task_id, question.value["number"]] = question.id, question.value
                    behind = self.asked.get((task_id, answers_of(each, task_id)))
                    if question.id in answered and behind is not None and task_id not in finished_at(each):
                        found[behind[0]] = behind[1]
        return found

    def _check_pending(self) -> None:
        """At the head, LangGraph says itself which questions are pending.

        Not under `exit`: what it shows of a subgraph that ended or failed behind its answer is out of date there.
        """
        if self.durability == "exit":
            return
        state = self._call("get_state", HEAD, subgraphs=True)
        stored = self._stored()
        answered = answered_in(stored)
        shown = {each.id for each in questions_in(state)} - answered
        assert shown == set(pending_at(stored, self._head(), self._newest(stored)))

    # -- what the ledger should say

    def _attribute(self, base: str, *, is_input: bool) -> None:
        """Whose are the checkpoints that an invocation made, all in one line."""
        before, snapshots = set(self.run_of), self._snapshots()
        new = sorted(set(snapshots) - before)
        if not new:
            return
        run = self.run_of.get(base)
        is_open = run is not None and not self.runs[run].status & {"succeeded", "cancelled"}
        source = snapshots[new[0]].metadata["source"]
        branches = source == "fork" or self._branches(base, before)
        begins = source == "input" or (is_input and self.durability != "exit")
        if begins or branches or not is_open:
            if is_open and not branches and run is not None:
                self.runs[run].superseded = True
            above = self._run_above(base) if branches else None
            self.runs.append(Ran(fork_of=above))
            run = len(self.runs) - 1
        self._adopt(new, snapshots, run)

    def _attribute_update(self, base: str) -> None:
        """At the head of an open run it corrects that one; elsewhere it begins one, if it leaves something to run."""
        snapshots = self._snapshots()
        new = sorted(set(snapshots) - set(self.run_of))
        run, before = self.run_of.get(base), set(self.run_of)
        is_open = run is not None and not self.runs[run].status & {"succeeded", "cancelled"}
        if new and not (is_open and not self._has_child(base, before)):
            above, branches = self._run_above(base), self._branches(base, before)
            run = None
            if snapshots[new[0]].tasks and above is not None:
                self.runs.append(Ran(fork_of=above if branches else None))
                run = len(self.runs) - 1
        self._adopt(new, snapshots, run)

    def _adopt(self, new: list[str], snapshots: dict[str, Any], run: int | None) -> None:
        for each in new:
            self.run_of[each] = run
            self.parents[each] = _id(snapshots[each].parent_config) if snapshots[each].parent_config else None

    def _has_child(self, base: str, among: set[str], but: str | None = None) -> bool:
        return any(self.parents[each] == base and each != but for each in among)

    def _branches(self, base: str | None, among: set[str]) -> bool:
        """Whether the nearest checkpoint that belongs to a run, or one in between, has another child."""
        branches, below = False, None
        while base is not None:
            branches = branches or self._has_child(base, among, but=below)
            if self.run_of.get(base) is not None:
                return branches
            below, base = base, self.parents.get(base)
        return False

    def _run_above(self, base: str | None) -> int | None:
        while base is not None and self.run_of[base] is None:
            base = self.parents[base]
        return None if base is None else self.run_of[base]

    def _status(self, number: int, snapshots: dict[str, Any]) -> frozenset[str]:
        """How a run may stand, by what LangGraph says of its head."""
        if self.runs[number].superseded:
            return frozenset(("cancelled",))
        head = max(each for each, run in self.run_of.items() if run == number)
        snapshot = snapshots[head]
        if not snapshot.tasks:
            return frozenset(("succeeded",)) if self._is_known_kind(head) else frozenset(("idle",))
        pending, handled = self._pending(head), handled_in(self._stored())
        ask = {task.id for task in snapshot.tasks for each in task.interrupts if each.id in pending and not task.state}
        fail = {
            task.id
            for task in snapshot.tasks
            if task.error and task.result is None and task.id not in ask and task.id not in handled
        }
        if pending or fail:
            return frozenset(word for word, some in (("paused", pending), ("failed", fail)) if some)
        stopped = frozenset(("idle", *self.runs[number].status & {"failed"}))
        return stopped if snapshot.metadata["source"] == "update" else frozenset(("running",))

    def _is_known_kind(self, head: str) -> bool:
        """Whether it shows that it is an end: an edit before the input was taken does not (rule L54)."""
        found = self.saver.get_tuple({"configurable": {"thread_id": THREAD, "checkpoint_id": head}})
        assert found is not None
        versions, seen = found.checkpoint["channel_versions"], found.checkpoint["versions_seen"]
        return "__start__" in seen or any(name.startswith("branch:to:") for name in versions)

    # -- comparing

    def compare(self) -> None:
        """Everything that the ledger says of this thread."""
        snapshots = self._snapshots()
        shown = list(reversed(self.ledger.runs(limit=MANY)))
        ids = [run.run_id for run in shown]
        assert len(self.runs) == len(shown), "one run for each input, and for each fork"
        for number, (ran, run) in enumerate(zip(self.runs, shown, strict=True)):
            mine = [each for each, owner in self.run_of.items() if owner == number]
            # Once another run has forked off a run's head, what is done at that head again is told of neither.
            is_forked = not run.status.ended and self._has_child(max(mine), set(self.run_of))
            ran.status = frozenset((str(run.status),)) if is_forked else self._status(number, snapshots)
            assert run.status in ran.status, f"run {number} is {run.status}, not {set(ran.status)}"
            assert (None if ran.fork_of is None else ids[ran.fork_of]) == run.fork_of
            assert min(mine) == run.first_checkpoint_id
            assert (run.ended_at is not None) == run.status.ended
            if not is_forked:
                self._compare_questions(ran, run.run_id, max(mine))
            self._compare_visits(run.run_id, [snapshots[each] for each in mine])
        self._check_pending()
        self._compare_events(ids)
        assert [] == self.ledger.verify()
        assert shown[::-1] == _paged(lambda last: self.ledger.runs(before=last, limit=2), lambda run: run.run_id, None)

    def _compare_questions(self, ran: Ran, run_id: str, head: str) -> None:
        expected = {} if ran.status & {"cancelled", "succeeded"} else self._pending(head)
        found = self.ledger.interrupts(run_id=run_id, pending=True, limit=MANY)
        assert expected == {each.interrupt_id: each.value for each in found}
        assert sorted(expected) == sorted(each.interrupt_id for each in self.ledger.snapshot(run_id).pending)

    def _compare_visits(self, run_id: str, mine: list[Any]) -> None:
        visits = self.ledger.visits(run_id)
        succeeded = {
            (v.checkpoint_id, v.task_id)
            for v in visits
            if v.status == "succeeded" and not v.checkpoint_ns and v.kind == "node"
        }
        roots = {_id(each.config) for each in mine}
        finished = {(each, task) for each, task in self._finished() if each in roots}
        assert finished - self.given == succeeded - (self.given if self.durability == "exit" else set())
        nested = {(v.checkpoint_id, v.task_id) for v in visits if v.status == "succeeded" and v.checkpoint_ns}
        assert finished_inside(self._stored(), roots) == nested
        names = {(task.id, task.name) for each in mine for task in each.tasks}
        assert [] == [
            v for v in visits if not v.checkpoint_ns and v.kind == "node" and (v.task_id, v.node) not in names
        ]
        assert list(range(1, len(visits) + 1)) == [v.transition for v in visits]
        assert visits == _paged(
            lambda last: self.ledger.visits(run_id, after=last, limit=2), lambda visit: visit.transition, 0
        )
        for visit in visits:
            place = (visit.transition, visit.ordinal, visit.kind, visit.node, visit.scope, visit.place)
            assert place == self.places.setdefault((run_id, visit.checkpoint_id, visit.task_id), place)

    def _compare_events(self, ids: list[str]) -> None:
        events = self.ledger.events(limit=MANY)
        bare = [replace(each, node_path=None) for each in events]  # what encloses a task may become known later
        assert self.events == bare[: len(self.events)], "what was shown has changed"
        self.events = bare
        cursors = [each.cursor for each in events]
        assert sorted(cursors) == cursors
        if self.durability == "sync":  # calls that came before their checkpoint share a place
            assert len(set(cursors)) == len(cursors)
        assert events == _paged(lambda last: self.ledger.events(after=last, limit=3), lambda each: each.cursor, 0)
        for run_id in ids:
            mine = [each for each in events if each.run_id == run_id]
            numbered = [replace(each, run_seq=number) for number, each in enumerate(mine, start=1)]
            assert numbered == self.ledger.events(run_id, limit=MANY)
            assert numbered == _paged(
                lambda last, run_id=run_id: self.ledger.events(run_id, after=last, limit=2),
                lambda each: each.cursor,
                0,
            )


def _id(config: Any) -> str:
    return str(config["configurable"]["checkpoint_id"])


def _paged(read: Any, mark: Any, start: Any) -> list[Any]:
    found: list[Any] = []
    while page := read(mark(found[-1]) if found else start):
        found += page
    return found
