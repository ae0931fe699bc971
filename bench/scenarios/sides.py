"""Sides: an agent of a case, by LangChain's `create_agent` on LangGraph's savers, and by `AgentNode` on LedgerSaver."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, ModelCallLimitMiddleware
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Interrupt

from bench.driver import config_of
from bench.scenarios.cases import Case, Place
from langgraph_ext import AgentNode, LedgerSaver, Limits

__all__ = ["AGENT_NODE", "CREATE_AGENT", "PER_CALL", "App", "Form", "Side", "opened"]

Form = Literal["sync", "async"]

CONFIG = config_of("thread")


@dataclass(frozen=True, slots=True)
class Side:
    """Whose agent it is, and how it asks for approvals."""

    name: str
    """For a folder, and for programs."""
    label: str
    ours: bool
    per_call: bool = False
    """`interrupt_mode="per_call"` of HumanInTheLoopMiddleware: a question for each call, instead of one for all."""

    @property
    def mode(self) -> str:
        """Which of two ways it is to ask, in words; empty where there is one."""
        return '`interrupt_mode="per_call"`' if self.per_call else ""

    def approval(self, asked: Sequence[Interrupt]) -> Any:
        """What a person resumes with who approves everything that is asked."""
        yes = {"type": "approve"}
        if self.per_call:
            return {each.id: yes for each in asked}
        [one] = asked
        return {"decisions": [yes for _ in one.value["action_requests"]]}


CREATE_AGENT = Side("create_agent", "create_agent", ours=False)
PER_CALL = Side("per_call", 'create_agent, interrupt_mode="per_call"', ours=False, per_call=True)
AGENT_NODE = Side("agent_node", "AgentNode", ours=True)


class App:
    """An agent that is compiled with an open saver, called in one form."""

    def __init__(self, app: Any, runner: asyncio.Runner | None) -> None:
        self.graph = app
        self._runner = runner

    def run(self, given: Any) -> dict[str, Any]:
        """Invoke it on its thread."""
        if self._runner is None:
            return dict(self.graph.invoke(given, CONFIG, durability="sync"))
        return dict(self._runner.run(self.graph.ainvoke(given, CONFIG, durability="sync")))

    def streamed(self, given: Any) -> None:
        """As `run`; its tokens are shown to somebody meanwhile."""
        options = {"durability": "sync", "stream_mode": "messages"}
        if self._runner is None:
            for _ in self.graph.stream(given, CONFIG, **options):
                pass
            return

        async def all_of_it() -> None:
            async for _ in self.graph.astream(given, CONFIG, **options):
                pass

        self._runner.run(all_of_it())

    def state(self) -> Any:
        """The newest state of its thread."""
        if self._runner is None:
            return self.graph.get_state(CONFIG)
        return self._runner.run(self.graph.aget_state(CONFIG))

    def cancelled(self, given: Any, ready: Callable[[], bool], seconds: float) -> None:
        """Invoke it, and cancel that some time after something is so."""
        assert self._runner is not None, "a sync invocation cannot be cancelled"

        async def both() -> None:
            running = asyncio.ensure_future(self.graph.ainvoke(given, CONFIG, durability="sync"))
            while not ready() and not running.done():
                await asyncio.sleep(0.02)
            await asyncio.sleep(seconds)
            running.cancel()
            await asyncio.wait([running])

        self._runner.run(both())


@contextmanager
def opened(side: Side, case: Case, place: Place, form: Form, kill_after: int | None = None) -> Iterator[App]:
    """The agent of a side, in this process."""
    model, tools = case.model(place), [case.tool(place, kill_after)]
    if form == "sync":
        with _saver(side, place) as saver:
            yield App(_built(side, case, model, tools, saver), None)
        return
    with asyncio.Runner() as runner:
        opening = LedgerSaver(place.database) if side.ours else AsyncSqliteSaver.from_conn_string(place.database)
        saver = runner.run(opening.__aenter__())
        try:
            yield App(_built(side, case, model, tools, saver), runner)
        finally:
            runner.run(opening.__aexit__(None, None, None))


def _saver(side: Side, place: Place) -> Any:
    return LedgerSaver(place.database) if side.ours else SqliteSaver.from_conn_string(place.database)


def _built(side: Side, case: Case, model: Any, tools: list[Any], saver: Any) -> Any:
    return _agent_node(case, model, tools, saver) if side.ours else _create_agent(side, case, model, tools, saver)


def _create_agent(side: Side, case: Case, model: Any, tools: list[Any], saver: Any) -> Any:
    middleware: list[AgentMiddleware[Any, Any, Any]] = []
    if case.approval:
        mode: Any = "per_call" if side.per_call else "batched"
        middleware.append(HumanInTheLoopMiddleware(interrupt_on={"pay": True}, interrupt_mode=mode))
    if case.model_calls is not None:
        middleware.append(ModelCallLimitMiddleware(thread_limit=case.model_calls, run_limit=case.model_calls))
    return create_agent(model, tools, middleware=middleware, checkpointer=saver)


def _agent_node(case: Case, model: Any, tools: list[Any], saver: Any) -> Any:
    options: dict[str, Any] = {}
    if case.model_calls is not None:
        options["limits"] = Limits(model_calls=case.model_calls)
    if case.approval:
        options["interrupt_on"] = {"pay": True}
    node = AgentNode(name="clerk", model=model, tools=tools, **options)
    builder: Any = StateGraph(MessagesState)
    builder.add_node(node)
    builder.add_edge(START, "clerk")
    return builder.compile(checkpointer=saver)
