"""Agent visits: how one attempt of an agent node drives its agent run, and what it asks for it (rules A1 to A5).

A visit has one agent run, whatever it is interrupted by: its key is made of thread, checkpoint and task.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from langgraph_ext import canonical
from langgraph_ext.database import Tx
from langgraph_ext.engine import AgentGraphEngine, AgentRunRecord, Release
from langgraph_ext.engine.around_models import AroundModel
from langgraph_ext.engine.carrying import Given
from langgraph_ext.engine.commits import Held
from langgraph_ext.engine.from_sync import from_sync
from langgraph_ext.engine.messages import plain
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.engine.visiting import Caller, Visit
from langgraph_ext.engine.visits import Came, Done, Named, Started
from langgraph_ext.errors import AdmissionError, ConflictError, InvalidArgument, LangGraphExtError
from langgraph_ext.ledger.agent_threads import beginning_of_keys
from langgraph_ext.ledger.control import ask_whether_to_end
from langgraph_ext.ledger.frames import check_frame
from langgraph_ext.ledger.runs import Parent
from langgraph_ext.nodes.agent_events import telling
from langgraph_ext.nodes.agent_tools import injecting, taking
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.place import Place
from langgraph_ext.nodes.questions import (
    Question,
    again,
    doubt_of,
    drain,
    of_doubt,
    of_request,
    read_answer,
    was_shown,
)
from langgraph_ext.saver import host
from langgraph_ext.saver.refusals import refused

__all__ = ["AgentVisit"]

_CANCELLED = "the graph was cancelled"


class AgentVisit:
    """One attempt of an agent node.

    Args:
        name: The node's agent.
        release: What it is.
        place: Where it stands.
        frame: Its attempt; None where there are none (durability `exit`), and the agent run holds a lease of its own.
        given: The messages it begins with, if its agent run is new.
        state: The graph's, as the node was given it.
        around: Makes what runs around its model calls, of the config that they are made with.
    """

    def __init__(
        self,
        name: str,
        release: Release,
        place: Place,
        frame: Frame | None,
        given: list[BaseMessage],
        state: Any,
        around: Callable[[RunnableConfig], AroundModel | None],
    ) -> None:
        self._name, self._release = name, release
        self._frame = frame
        self._ledger = place.saver.ledger
        self._thread_id = place.thread_id
        self.engine = AgentGraphEngine(self._ledger)
        self._given = Given.of(_with_ids(given))
        self._ids = {each.id for each in self._given.messages if each.id is not None}
        self._named = _named(name, place, frame, self._given)
        self.serde = place.saver.serde
        called_with = place.called_with
        runtime = get_runtime()
        self._write = runtime.stream_writer if host.streams_custom(runtime) else None
        inject = injecting(state, called_with, runtime)
        caller = Caller(called_with, inject, taking(self.serde), around(called_with))
        self._visit = caller if frame is None else _visit(place, frame, caller)
        self.config = place.config
        self.run: AgentRunRecord | None = None
        """The agent run as it was seen last."""
        self._came: Came | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the agent run was seen to have ended, by this attempt."""
        return self.run is not None and self.run.status.ended

    @property
    def was_asked(self) -> bool:
        """Whether the graph was resumed behind a question of this visit: what with is that question's (rule A2).

        Under durability `exit` nothing on record says so.
        """
        return self._frame is not None and self._frame.goes_on

    # -- sync

    def drive(self) -> Question | None:
        """Drive the agent run as far as it goes; what a person is asked then, if anything."""
        try:
            found = self.engine.start_in(self._visit, self._release, self._given, self._named)
        except LangGraphExtError as error:
            raise refused(error) from error
        agent_run_id = found.agent_run_id
        while True:
            try:
                self.run, self._came = from_sync(partial(self._driven, found))
            except LangGraphExtError as error:
                if error.code == "cancelled":
                    self.engine.stop_in(self._visit, agent_run_id, _CANCELLED)
                raise refused(error) from error
            if self.run.status.ended:
                if self._may_be_cancelled and self._ledger.database.read(self._asks_whether_to_end()):
                    raise refused(self._cancelled())
                return None
            requests = self.engine.requests(agent_run_id, pending=True)
            doubts = [] if requests else self.engine.doubts(agent_run_id)
            if requests or doubts:  # else somebody has answered just now
                return self._question(requests, doubts)
            found = Started(agent_run_id)

    def ask(self, question: Question) -> Question | None:
        """Ask, and commit the answer; what is asked again, if it was none."""
        agent_run_id, engine = question["agent_run_id"], self.engine
        asks_of_doubt = question["kind"] == "doubt"
        found = engine.doubts(agent_run_id) if asks_of_doubt else engine.requests(agent_run_id, pending=True)
        if not self._is_open(question, found):
            drain(question)
            return None
        value = interrupt(question)
        try:
            read = read_answer(question, value, partial(self._was_shown, question))
            if question["kind"] == "doubt":
                self.engine.resolve(question["agent_run_id"], question["operation_id"], **read._asdict())
            else:
                self.engine.answer(question["agent_run_id"], question["request_id"], read)
        except (InvalidArgument, ConflictError) as error:
            return again(question, error)
        return None

    # -- async

    async def adrive(self) -> Question | None:
        """As `drive`. Cancelling it stops the agent run for good: each of its tool calls has a result then."""
        try:
            found = await self.engine.astart_in(self._visit, self._release, self._given, self._named)
        except LangGraphExtError as error:
            raise refused(error) from error
        agent_run_id = found.agent_run_id
        while True:
            try:
                self.run, self._came = await self._driven(found)
            except asyncio.CancelledError:
                stopping = self.engine.astop_in(self._visit, agent_run_id, _CANCELLED)
                await asyncio.shield(asyncio.ensure_future(stopping))
                raise
            except LangGraphExtError as error:
                if error.code == "cancelled":
                    await self.engine.astop_in(self._visit, agent_run_id, _CANCELLED)
                raise refused(error) from error
            if self.run.status.ended:
                if self._may_be_cancelled and await self._ledger.database.aread(self._asks_whether_to_end()):
                    raise refused(self._cancelled())
                return None
            requests = await self.engine.arequests(agent_run_id, pending=True)
            doubts = [] if requests else await self.engine.adoubts(agent_run_id)
            if requests or doubts:
                return self._question(requests, doubts)
            found = Started(agent_run_id)

    async def aask(self, question: Question) -> Question | None:
        """As `ask`."""
        agent_run_id, engine = question["agent_run_id"], self.engine
        asks_of_doubt = question["kind"] == "doubt"
        found = await (engine.adoubts(agent_run_id) if asks_of_doubt else engine.arequests(agent_run_id, pending=True))
        if not self._is_open(question, found):
            drain(question)
            return None
        value = interrupt(question)
        try:
            read = await asyncio.to_thread(read_answer, question, value, partial(self._was_shown, question))
            if question["kind"] == "doubt":
                await self.engine.aresolve(question["agent_run_id"], question["operation_id"], **read._asdict())
            else:
                await self.engine.aanswer(question["agent_run_id"], question["request_id"], read)
        except (InvalidArgument, ConflictError) as error:
            return again(question, error)
        return None

    # -- who cancels the graph's run has asked its agent run to stop

    @property
    def _may_be_cancelled(self) -> bool:
        """Whether the agent run was stopped, maybe with the graph's."""
        return self._frame is not None and self.seen.status is AgentStatus.CANCELLED

    def _asks_whether_to_end(self) -> Callable[[Tx], bool]:
        assert self._frame is not None, "without one there is no run above"
        return ask_whether_to_end(self._frame.run_id)

    def _cancelled(self) -> AdmissionError:
        return AdmissionError(
            f"agent {self._name!r}: the run of its graph was cancelled, and agent run {self.seen.agent_run_id!r} was "
            "stopped with it; new input begins another run",
            code="cancelled",
            details={"thread_id": self._thread_id, "agent_run_id": self.seen.agent_run_id},
        )

    async def _driven(self, started: Started) -> Done:
        """Drive it; with its events in the graph's stream, if somebody listens."""
        driving = self.engine.adrive_in(self._visit, started, self._release, self._ids)
        if self._write is None:
            return await driving
        return await telling(self.engine, started.agent_run_id, driving, self._write)

    # -- its end

    def came(self) -> Came:
        """What the agent run has added to the messages that it was given, and its tools' commands."""
        return self._came or self.engine.came_of(self.seen.agent_run_id, self._ids)

    async def acame(self) -> Came:
        """As `came`."""
        return self._came or await self.engine.acame_of(self.seen.agent_run_id, self._ids)

    def settles(self, told: Mapping[str, Any]) -> None:
        """Have the attempt's settlement say this of the agent run (rule A5)."""
        if self._frame is not None:
            self._frame._actor.notes = canonical.encode(dict(told)).decode()

    @property
    def seen(self) -> AgentRunRecord:
        """The agent run, once it was driven."""
        assert self.run is not None, "it was driven"
        return self.run

    def _question(self, requests: list[Any], doubts: list[Any]) -> Question:
        """The oldest that is open. Nothing else keeps an agent run from going on."""
        if requests:
            return of_request(requests[0], self._name)
        return of_doubt(doubts[0], self._name)

    def _was_shown(self, question: Question) -> bool:
        run_id = self._frame.run_id if self._frame is not None else None
        return was_shown(self._ledger, self._thread_id, run_id, question)

    def _is_open(self, question: Question, found: Sequence[Any]) -> bool:
        """Whether nobody has answered a question yet, in whichever process: it is among those that are open."""
        if question["agent_run_id"] != self.seen.agent_run_id:  # one that came to nothing had asked
            return False
        name = doubt_of if question["kind"] == "doubt" else attrgetter("request_id")
        return question["request_id"] in map(name, found)


def _with_ids(given: list[BaseMessage]) -> list[BaseMessage]:
    """Messages, each with an id: by that it is known again, in later turns too."""
    seen = Counter[str]()
    return [_with_id(each, seen) if each.id is None else each for each in given]


def _with_id(message: BaseMessage, seen: Counter[str]) -> BaseMessage:
    """A message with an id by what it holds, and by how many the same there were before it."""
    digest = canonical.digest(canonical.encode(plain(message), where="messages")).removeprefix("sha256:")[:32]
    seen[digest] += 1
    return message.model_copy(update={"id": f"given:{digest}:{seen[digest] - 1}"})


def _named(name: str, place: Place, frame: Frame | None, given: Given) -> Named:
    """What a visit is called. Where nothing of it is stored before its end, what it is given is all there is of it."""
    node = place.node if frame is None else frame.node_path
    part = place.part if frame is None else frame._actor.part
    visit = f"{part.checkpoint_id}:{part.task_id}:{part.ordinal}"
    content = canonical.digest(canonical.encode(given.names, where="messages"))
    names = (visit, content) if frame is not None else (content, visit)
    beginning, _ = beginning_of_keys(part.thread_id)
    return Named(f"{beginning}{quote(node, safe='')}:{quote(name, safe='')}:", *names)


def _visit(place: Place, frame: Frame, caller: Caller) -> Visit:
    return Visit(
        held=Held(place.thread_id, frame.epoch),
        parent=Parent(frame.run_id, frame.attempt_id),
        guard=partial(check_frame, frame=frame._actor.key),
        place=(place.checkpoint_ns, place.checkpoint_id),
        caller=caller,
    )
