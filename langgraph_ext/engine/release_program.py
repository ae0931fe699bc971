"""Release program: a release's live objects, as the driver calls them: models, tools and hooks of langchain-core."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from langchain_core.exceptions import LangChainException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage, message_to_dict, messages_from_dict

from langgraph_ext.engine import hooks
from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.moves import outcome_of
from langgraph_ext.engine.outcomes import Behaviour
from langgraph_ext.engine.program import Allowed, Answered, Denied
from langgraph_ext.engine.releases import Release
from langgraph_ext.engine.rows import Operation, encoded
from langgraph_ext.engine.starting import Entry
from langgraph_ext.errors import AdmissionError, InvalidArgument, LangGraphExtError

__all__ = ["ReleaseProgram", "entry_of"]


def entry_of(release: Release) -> Entry:
    """How runs of a release begin.

    Raises:
        InvalidArgument: It asks for what nothing enforces yet (`spec_unsupported`).
    """
    descriptor = release.descriptor
    if wanted := _not_enforced(descriptor):
        raise InvalidArgument(
            f"agent {descriptor['name']!r} asks for what this version does not enforce; leave it out: "
            f"{', '.join(wanted)}",
            code="spec_unsupported",
            details={"parts": wanted},
        )
    behaviour = descriptor["roles"][descriptor["entry"]]["behaviour"]
    seconds = descriptor["deadlines"]["run_seconds"]
    return Entry(
        release=release.digest,
        descriptor=release.body,
        role=descriptor["entry"],
        behaviour=behaviour["name"],
        version=behaviour["version"],
        loop_limit=descriptor["limits"]["loops"],
        run_us=None if seconds is None else round(seconds * 1e6),
    )


class ReleaseProgram:
    """What runs beside the behaviours of one release.

    A model's request is `{"messages": […], "tools": [names]}`, its answer `{"message": …}`; messages are plain, as
    langchain-core's `message_to_dict` writes them. A tool's request is `{"id": …, "args": {…}}`, and its answer is its
    tool message. An operation's `name` is the model's or the tool's.

    Raises:
        AdmissionError: A behaviour that it names is not in this process (`node_abi_unavailable`).
    """

    def __init__(self, release: Release, behaviours: Behaviours) -> None:
        self.spec: Mapping[str, Any] = release.descriptor
        self._live = release.live
        self._factories = behaviours.require(self.spec)

    def behaviour(self, name: str, version: int) -> Behaviour:
        """As `Program.behaviour`."""
        factory = self._factories.get((name, version))
        if factory is None:
            raise AdmissionError(
                f"behaviour {name!r} version {version} is not one of this release's; drive the run with its own",
                code="node_abi_unavailable",
                details={"name": name, "version": version},
            )
        made: Behaviour = factory()
        return made

    def needs_ticket(self, operation: Operation) -> bool:
        """Decisions are units of the loop limit; summaries are not (rule E17)."""
        return operation.kind == "model"

    async def before(self, operation: Operation) -> Allowed | Denied:
        """As `Program.before`."""
        asked = await hooks.ask(self._hooks("before", operation), operation.request, _is_request)
        if asked.denied is not None:
            return Denied(asked.decisions, "denied", asked.denied)
        return Allowed(asked.value, asked.decisions)

    async def call(self, operation: Operation, number: int) -> Any:
        """As `Program.call`; `deadline_exceeded` when it takes longer than the release allows."""
        seconds = self._seconds(operation)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                if operation.kind == "tool":
                    return {"value": await self._call_tool(operation)}
                return {"value": await self._call_model(operation)}
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise LangGraphExtError(
                f"{operation.kind} {operation.name!r} took longer than {seconds:g} s; allow it more, or let it do less",
                code="deadline_exceeded",
            ) from error

    def retry_after(self, operation: Operation, number: int, error: Exception) -> float | None:
        """Another call of what says that one may help, if the release has any (rule E23)."""
        retry = self.spec["retry"]
        may_help = isinstance(error, LangChainException) and getattr(error, "is_retryable", False)
        if retry is None or number >= retry["calls"] or not may_help:
            return None
        seconds: float = retry["wait_seconds"]
        return seconds

    def asks_after(self, operation: Operation) -> bool:
        """As `Program.asks_after`."""
        return bool(self._hooks("after", operation))

    async def after(self, operation: Operation) -> Answered:
        """As `Program.after`."""
        asked = await hooks.ask(self._hooks("after", operation), operation.raw, outcome_of)
        if asked.denied is not None:
            return Answered(asked.decisions, {"error": {"code": "denied", "message": asked.denied}})
        return Answered(asked.decisions, asked.value)

    def _hooks(self, moment: str, operation: Operation) -> list[hooks.Named]:
        kind = f"{moment}_{'tool' if operation.kind == 'tool' else 'model'}"
        named = [(each["name"], each["required"]) for each in self.spec["hooks"][kind]]
        return [hooks.Named(name, required, self._live.hooks[kind, name]) for name, required in named]

    def _seconds(self, operation: Operation) -> float | None:
        deadlines = self.spec["deadlines"]
        if operation.kind == "tool":
            seconds = deadlines["per_tool"].get(operation.name, deadlines["tool_seconds"])
        else:
            seconds = deadlines["model_seconds"]
        return None if seconds is None else float(seconds)

    async def _call_model(self, operation: Operation) -> Any:
        model = self._live.models[operation.name]
        if not isinstance(model, BaseChatModel):
            raise AdmissionError(
                f"model {operation.name!r} is a name, and nobody has made it; give the spec a chat model",
                code="model_not_made",
                details={"model": operation.name},
            )
        offered = [self._live.tools[name] for name in operation.request.get("tools", ())]
        bound = model.bind_tools(offered) if offered else model
        answer = await bound.ainvoke(messages_from_dict(operation.request["messages"]))
        return {"message": message_to_dict(answer)}

    async def _call_tool(self, operation: Operation) -> Any:
        tool = self._live.tools[operation.name]
        request = operation.request
        call = {"type": "tool_call", "name": operation.name, "args": request["args"], "id": request["id"]}
        answer = await tool.ainvoke(call)
        assert isinstance(answer, ToolMessage), "a tool that is given a tool call answers with its message"
        return {"message": message_to_dict(answer)}


def _is_request(value: Any) -> None:
    """See that a request may be sent in place of another.

    Raises:
        TypeError: It may not.
    """
    if not isinstance(value, dict):
        raise TypeError(f"a request is a dict, and not a {type(value).__name__}")
    encoded(value, "request")


def _not_enforced(descriptor: Mapping[str, Any]) -> list[str]:
    """What of a spec its user would rely on in vain: what is promised and not kept is refused, not passed over."""
    limits, compaction = descriptor["limits"], descriptor["compaction"]
    wanted = [
        f"limits.{name}" for name in ("model_calls", "tool_calls", "tokens", "cost_usd") if limits[name] is not None
    ]
    wanted += ["limits.on_limit"] if limits["on_limit"] != "error" else []
    wanted += [f"compaction.{name}" for name in ("soft_tokens", "hard_tokens") if compaction[name] is not None]
    wanted += [name for name in ("interrupt_on", "subagents", "plan", "output_schema") if descriptor[name]]
    tools = descriptor["tools"].items()
    wanted += [f"tools.{name}: an idempotency key" for name, each in tools if each["effect"] == "keyed"]
    return wanted
