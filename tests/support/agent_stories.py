"""Scenarios of agents in graphs: each an app that any process opens, and what one does that is killed in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command

from langgraph_ext import AgentNode, LedgerSaver, with_ledger
from langgraph_ext.engine import Hooks, Limits, Replace
from langgraph_ext.errors import AgentRunFailed
from langgraph_ext.nodes.agent_node import AgentResult
from langgraph_ext.testing import ScriptedChatModel, call, calls, exits, say
from tests.support import react_processes as tools
from tests.support.apps import CONFIG, graph_of
from tests.support.faults import kill_myself
from tests.support.react_processes import note, noted

__all__ = [
    "DECISIONS",
    "GO",
    "act_and_die",
    "approve_and_die",
    "ask_and_die",
    "crew",
    "end_and_die",
    "four",
    "go",
    "opened",
    "replacing",
]

GO = {"messages": [HumanMessage("Go.", id="go")]}

DECISIONS = [
    {"type": "approve"},
    {"type": "reject", "message": "not this one"},
    {"type": "approve"},
    {"type": "edit", "edited_action": {"name": "act", "args": {"number": 30}}},
]
"""What a person says of four calls."""


@contextmanager
def opened(path: str, node: AgentNode) -> Iterator[Any]:
    """The graph of one agent, attached."""
    with LedgerSaver(path) as saver:
        yield with_ledger(graph_of(node).compile(checkpointer=saver))


def go(path: str, node: AgentNode, given: Any = GO) -> Any:
    """Run it until it ends or asks."""
    with opened(path, node) as app:
        return app.invoke(given, CONFIG, durability="sync")


def crew(path: str, effect: Any, *, stored: int | None = None) -> AgentNode:
    """Eight tools that act at once; with `stored` their process dies with the last, when that many have results."""
    beside = [] if stored is None else [tools.dies_with_the_last(path, stored)]
    return AgentNode(name="crew", **tools.eight_at_once(f"{path}.log", effect, *beside))


def act_and_die(path: str, effect: Any, stored: int) -> None:
    """Let the eight act, and die with the last."""
    go(path, crew(path, effect, stored=stored))


def four(path: str, *, dies: bool = False) -> AgentNode:
    """Four calls in turn that a person decides on; if so, its process dies right behind the second that acts."""

    def act(number: int) -> str:
        """Act on the outside world."""
        note(f"{path}.log", f"act {number}")
        if dies and len(noted(f"{path}.log")) == 2:
            kill_myself()
        return f"acted {number}"

    asked = calls(*(call("act", {"number": number}) for number in range(4)))
    model = ScriptedChatModel(script=[asked, "done"])
    return AgentNode(name="four", model=model, tools=[act], interrupt_on={"act": True}, parallel_tools=False)


def approve_and_die(path: str) -> None:
    """Decide on the four, and die behind the second effect."""
    go(path, four(path, dies=True), Command(resume={"decisions": DECISIONS}))


def dying(path: str, moment: Any) -> AgentNode:
    """A model that may be asked three times; each time its process dies with it."""
    step = exits(moment, say("a long answer", during=partial(note, f"{path}.log", "model")))
    return AgentNode(name="dying", model=ScriptedChatModel(script=[step]), limits=Limits(model_calls=3))


def ask_and_die(path: str, moment: str, nth: int) -> str:
    """Ask it, or go on; why it ended, if it did not die."""
    try:
        go(path, dying(path, moment), GO if nth == 0 else None)
    except AgentRunFailed as failed:
        return failed.code
    return "it answered"


def replacing(path: str, *, dies: bool = False) -> AgentNode:
    """An agent whose hooks replace what its tool and its model have answered; if so, it dies when it has ended."""

    def look() -> str:
        """Look."""
        note(f"{path}.log", "look")
        return "raw"

    def update(result: AgentResult) -> Any:
        if dies:
            kill_myself()
        return {"messages": result.messages}

    model = ScriptedChatModel(script=[call("look"), say("raw answer", during=partial(note, f"{path}.log", "model"))])
    hooks = Hooks(after_tool=[_effective], after_model=[_effective])
    return AgentNode(name="looker", model=model, tools=[look], hooks=hooks, output=update)


def _effective(outcome: Any) -> Replace | None:
    """A hook: another text in place of a raw one."""
    message = outcome["value"]["message"]["data"]
    if not message["content"].startswith("raw"):
        return None
    message["content"] = message["content"].replace("raw", "effective")
    return Replace(outcome)


def end_and_die(path: str) -> None:
    """Run it, and die when the agent has ended and its node has returned nothing yet."""
    go(path, replacing(path, dies=True))
