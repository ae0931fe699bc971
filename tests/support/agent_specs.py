"""Agent specs for tests: one with everything in it, in both forms, and a program that prints its digest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool, tool
from pydantic import BaseModel

from langgraph_ext.engine import (
    AgentSpec,
    Approval,
    Compaction,
    Deadlines,
    Executor,
    Hook,
    Hooks,
    InjectedIdempotencyKey,
    Limits,
    PlanExecute,
    Retry,
    ToolPolicy,
    compile_spec,
)
from langgraph_ext.errors import SpecInvalid

__all__ = ["Answer", "Scripted", "everything", "found_in", "graph", "pay", "search", "told"]


class Scripted(BaseChatModel):
    """A model of which only the parameters matter here: nothing calls it."""

    model: str = "scripted"
    max_tokens: int | None = None
    during: Callable[[], Any] | None = None
    """What a call would do."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise AssertionError("a compiler calls no model")


class Answer(BaseModel):
    """What the agent is to answer."""

    text: str
    tags: set[str] = {"a", "b", "c", "d"}


@tool
def search(query: str, places: set[str] = {"web", "mail", "files", "notes"}) -> str:  # noqa: B006 - its order is the point
    """Look something up."""
    return query + str(len(places))


def pay(order: str, key: Annotated[str, InjectedIdempotencyKey]) -> str:
    """Pay an order."""
    return order + key


def fetch(url: str) -> str:
    """Fetch a page."""
    return url


def allow(*_: Any) -> None:
    """A hook."""


def audit(*_: Any) -> None:
    """Another hook."""


def found_out(*_: Any) -> bool:
    """A function that finds out what came of a call."""
    return True


def everything() -> AgentSpec:
    """A plan agent in which nothing is left at its default."""
    helper = AgentSpec(name="helper", description="Helps.", model="openai:small", tools=[fetch])
    return AgentSpec(
        name="clerk",
        description="Does the books.",
        model=Scripted(max_tokens=7),
        system_prompt="Plan.",
        tools=[search, pay],
        strategy=PlanExecute(
            executors={
                "payer": Executor(description="Pays.", tools=[pay]),
                "reader": Executor(description="Reads.", model="openai:small", system_prompt="Read."),
            },
            parallel=True,
            max_parallel=3,
            review_plan=True,
            max_replans=1,
        ),
        output_schema=Answer,
        limits=Limits(model_calls=9, tool_calls=8, tokens=7000, cost_usd=0.5, loops=6, on_limit="ask"),
        deadlines=Deadlines(run_seconds=60, tool_seconds=None, per_tool={"pay": 5, "search": None}),
        retry=Retry(),
        tool_policies={
            "pay": ToolPolicy(effect="keyed", on_unknown=found_out),
            "search": ToolPolicy(on_unknown="error"),
        },
        interrupt_on={"pay": True, "payer": Approval(allowed_decisions={"approve", "reject"}, when=found_out)},
        hooks=Hooks(before_tool=[audit, Hook(call=allow, required=False)], after_model=[audit]),
        compaction=Compaction(soft_tokens=1000, hard_tokens=2000, model="openai:small", system_prompt="Shorten."),
        parallel_tools=False,
        subagents=[helper],
    )


def graph(**changed: Any) -> dict[str, Any]:
    """A sound plan agent in the explicit form, as a dict."""
    sound = {
        "kind": "plan",
        "entry": "boss",
        "roles": [
            {"name": "boss", "role": "planner", "model": "big", "tools": ["search"]},
            {"name": "hand", "role": "executor", "model": "big", "tools": ["pay"]},
        ],
        "bindings": [
            {"role": "boss", "behaviour": "planner", "version": 1},
            {"role": "hand", "behaviour": "executor", "version": 1},
        ],
        "dispatches": [{"source": "boss", "target": "hand"}],
        "models": {"big": "openai:big"},
        "tools": [search, pay],
    }
    return sound | changed


def found_in(spec: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    """Code, path and related paths of each diagnostic of a spec; none if it compiles."""
    try:
        compile_spec(spec)
    except SpecInvalid as error:
        return [(each.code, each.path, each.related) for each in error.diagnostics]
    return []


def told(make: Callable[[], Any]) -> list[tuple[str, str]]:
    """Path and message of each diagnostic of making a spec."""
    try:
        make()
    except SpecInvalid as error:
        return [(each.path, each.message) for each in error.diagnostics]
    return []


assert isinstance(search, BaseTool)

if __name__ == "__main__":
    print(compile_spec(everything()).digest)
