"""Release program: a release's live objects, as the driver calls them: models, tools and hooks of langchain-core."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, get_buffer_string
from langchain_core.runnables import RunnableConfig

from langgraph_ext.database import Tx
from langgraph_ext.engine import compacting, hooks
from langgraph_ext.engine.argument_checks import argument_fault
from langgraph_ext.engine.around_models import ModelCall
from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.calling_models import call_model, usage_of
from langgraph_ext.engine.calling_tools import call_tool, is_async
from langgraph_ext.engine.contexts import messages_of
from langgraph_ext.engine.finding_out import find_out
from langgraph_ext.engine.instructions import of_answer
from langgraph_ext.engine.limits import limits_of
from langgraph_ext.engine.messages import (
    fault_of,
    plain,
    revived,
    storable,
    tokens_of,
    told_outcome,
    with_call_ids,
)
from langgraph_ext.engine.moves import error_outcome, outcome_of
from langgraph_ext.engine.outcomes import Behaviour
from langgraph_ext.engine.program import Allowed, Answered, AskedAgain, Denied, Failed
from langgraph_ext.engine.releases import Release
from langgraph_ext.engine.retries import retry_after
from langgraph_ext.engine.rows import Operation, encoded
from langgraph_ext.engine.starting import Entry
from langgraph_ext.engine.store import Store
from langgraph_ext.engine.visiting import Caller
from langgraph_ext.engine.windows import Ahead, Windows
from langgraph_ext.errors import AdmissionError, InvalidArgument
from langgraph_ext.ledger.texts import message_of

__all__ = ["ReleaseProgram", "entry_of"]

_MAY_REPLACE = ("messages", "tools", "args")
"""What of a request a hook may make another one."""


def entry_of(release: Release) -> Entry:
    """How runs of a release begin.

    Raises:
        InvalidArgument: It asks for what nothing enforces yet (`spec_unsupported`).
    """
    descriptor = release.descriptor
    models = sorted({each for each in release.live.models.values() if isinstance(each, str)})
    if wanted := _not_enforced(descriptor) + [f"model {each!r}: it is a name; give a chat model" for each in models]:
        instead = "; a graph's Budget(cost_usd=…, price=…) bounds cost" if "limits.cost_usd" in wanted else ""
        raise InvalidArgument(
            f"agent {descriptor['name']!r} asks for what this version does not enforce; leave it out: "
            f"{', '.join(wanted)}{instead}",
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
        limits=limits_of(descriptor),
    )


class ReleaseProgram:
    """What runs beside the behaviours of one release.

    A model's request names its messages by the context they stand in (react.py), or holds them: `{"messages": […],
    "tools": [names]}`; its answer is `{"message": …}`. Messages are plain, as langchain-core's `message_to_dict` writes
    them. A tool's request is `{"id": …, "args": {…}}`, and its answer is its tool message. An operation's `name` is the
    model's or the tool's.

    Args:
        release: The release.
        behaviours: Where it finds what drives its roles.
        store: Where contexts are read.
        caller: Who drives the run, as far as models and tools see that.

    Raises:
        AdmissionError: A behaviour that it names is not in this process (`node_abi_unavailable`).
    """

    def __init__(self, release: Release, behaviours: Behaviours, store: Store, *, caller: Caller | None = None) -> None:
        self.spec: Mapping[str, Any] = release.descriptor
        self.live = release.live
        self._factories = behaviours.require(self.spec)
        self._made: dict[tuple[str, int], Behaviour] = {}
        self._windows = Windows(store)
        self._caller = caller or Caller({})
        self._store = store

    def behaviour(self, name: str, version: int) -> Behaviour:
        """As `Program.behaviour`."""
        if (name, version) not in self._made:
            factory = self._factories.get((name, version))
            if factory is None:
                raise AdmissionError(
                    f"behaviour {name!r} version {version} is not one of this release's; drive the run with its own",
                    code="node_abi_unavailable",
                    details={"name": name, "version": version},
                )
            self._made[name, version] = factory()
        return self._made[name, version]

    def needs_ticket(self, operation: Operation) -> bool:
        """Decisions are units of the loop limit; summaries are not (rule E17)."""
        return operation.kind == "model"

    async def before(self, operation: Operation) -> Allowed | Denied:
        """As `Program.before`; what is too large for the hard limit even so is never sent."""
        request, named = operation.request, self._hooks("before", operation)
        upto = max(request.get("steering") or (), default=None)
        if not named:
            too_large = self._too_large(operation, request.get("tokens", 0))
            return too_large or Allowed(request, [], upto)
        shown = await self._shown(operation)
        asked = await hooks.ask(named, shown, self._fits(operation))
        if asked.denied is not None:
            return Denied(asked.decisions, "denied", asked.denied)
        if any(each["decision"] == "replaced" for each in asked.decisions):
            request = {**request, **{name: asked.value[name] for name in _MAY_REPLACE if name in asked.value}}
        tokens = 0 if operation.kind == "tool" else sum(map(tokens_of, asked.value["messages"]))
        return self._too_large(operation, tokens, asked.decisions) or Allowed(request, asked.decisions, upto)

    def ahead(self, tx: Tx, operation: Operation) -> Ahead | None:
        """As `Program.ahead`: the messages that a model is sent, as far as they are not known here."""
        if operation.kind != "model" or "messages" in operation.request:
            return None
        return self._windows.ahead(tx, operation)

    async def call(self, operation: Operation, number: int, ahead: Ahead | None = None) -> Any:
        """As `Program.call`."""
        if operation.kind == "tool":
            return {"value": await self._call_tool(operation)}
        return {"value": {"message": plain(await self._call_model(operation, number, ahead))}}

    def goes_on(self, operation: Operation) -> bool:
        """As `Program.goes_on`."""
        return operation.kind == "tool" and not is_async(self.live.tools[operation.name])

    def usage_of(self, operation: Operation, outcome: Any) -> dict[str, Any] | None:
        """As `Program.usage_of`."""
        if operation.kind == "tool" or "value" not in outcome:
            return None
        return usage_of(operation.request, outcome["value"]["message"])

    async def reconcile(self, operation: Operation) -> Any:
        """Ask the tool's function, with its arguments and its idempotency key; what it returns is the tool's result."""
        function = self.live.reconcile.get(operation.name)
        if function is None:
            return None
        given = dict(operation.request["args"]), operation.idempotency_key
        found = await find_out(function, *given, self._tool_seconds(operation))
        return None if found is None else told_outcome(operation.request["id"], operation.name, found)

    def retry_after(self, operation: Operation, number: int, error: Exception) -> float | None:
        """Another call of what says that one may help, if the release has any (rule E23)."""
        if isinstance(error, AskedAgain):
            return 0.0
        return retry_after(self.spec["retry"], number, error)

    def asks_after(self, operation: Operation) -> bool:
        """As `Program.asks_after`."""
        return bool(self._hooks("after", operation))

    async def after(self, operation: Operation) -> Answered:
        """As `Program.after`. An answer that a hook has made of another one is looked at as that was."""
        kind = ToolMessage if operation.kind == "tool" else AIMessage

        def fits(value: Any) -> None:
            if "value" in outcome_of(value) and not isinstance(revived([value["value"]["message"]])[0], kind):
                raise TypeError(f"what came of a {operation.kind} is a {kind.__name__}, plain")

        named = self._hooks("after", operation)
        if operation.kind == "model" and any(hasattr(each.call, "behind") for each in named):
            named = hooks.behind(named, await self._messages(operation))
        asked = await hooks.ask(named, operation.raw, fits)
        if asked.denied is not None:
            return Answered(asked.decisions, error_outcome("denied", asked.denied))
        outcome = asked.value
        if operation.kind == "model" and "value" in outcome:
            [answer] = revived([outcome["value"]["message"]])
            assert isinstance(answer, AIMessage), "that fits"
            if (fault := fault_of(answer)) is not None:
                return Answered(asked.decisions, error_outcome("model_protocol_error", f"a hook's answer: {fault}"))
            outcome = {"value": {"message": plain(with_call_ids(answer, operation.operation_id))}}
        return Answered(asked.decisions, outcome)

    # -- requests

    def _hooks(self, moment: str, operation: Operation) -> list[hooks.Named]:
        if operation.kind not in ("model", "tool"):
            return []
        kind = f"{moment}_{operation.kind}"
        named = [(each["name"], each["required"]) for each in self.spec["hooks"][kind]]
        return [hooks.Named(name, required, self.live.hooks[kind, name]) for name, required in named]

    async def _shown(self, operation: Operation) -> dict[str, Any]:
        """A request as hooks see it: whole."""
        if operation.kind == "tool":
            return {"name": operation.name, **operation.request}
        messages = [plain(each) for each in await self._messages(operation)]
        return {"messages": messages, "tools": list(operation.request.get("tools", ()))}

    def _fits(self, operation: Operation) -> Any:
        """Raises if a request cannot be sent in place of an operation's own."""

        def fits(value: Any) -> None:
            if not isinstance(value, dict):
                raise TypeError(f"a request is a dict, and not a {type(value).__name__}")
            encoded(value, "request")
            if operation.kind == "tool":
                hooks.check_same_call(value, operation.name, operation.request["id"])
                fault = argument_fault(self.live.tools[operation.name], value["args"], self._injected(operation))
                if fault is not None:
                    raise TypeError(fault)
            else:
                revived(value["messages"])
                if not set(value.get("tools", ())) <= self.live.tools.keys():
                    raise TypeError("a model is offered tools of its spec alone")

        return fits

    def _too_large(self, operation: Operation, tokens: int, decisions: Any = ()) -> Denied | None:
        hard = self.spec["compaction"]["hard_tokens"]
        if operation.kind != "model" or hard is None or tokens <= hard:
            return None
        told = f"the request has about {tokens} tokens, and hard_tokens is {hard}"
        return Denied(list(decisions), "context_window_exceeded", told)

    async def _messages(self, operation: Operation, ahead: Ahead | None = None) -> list[Any]:
        """What a model is sent."""
        request = operation.request
        if "messages" in request:
            return revived(request["messages"])
        if operation.kind == "compaction":
            stored = await self._store.read(messages_of, operation, self._store.serde)
            prompt = self.spec["compaction"]["system_prompt"] or compacting.PROMPT
            return [SystemMessage(prompt), HumanMessage(get_buffer_string(revived(stored)))]
        prompt = self.spec["roles"][request["role"]]["system_prompt"]
        if self.spec["output_schema"] is not None:
            prompt = "\n\n".join(filter(None, (prompt, of_answer(self.spec["output_schema"]))))
        return [*([SystemMessage(prompt)] if prompt else []), *await self._windows.messages(operation, ahead)]

    # -- calls

    async def _call_model(self, operation: Operation, number: int, ahead: Ahead | None) -> AIMessage:
        model = self.live.models[operation.name]
        if not isinstance(model, BaseChatModel):
            raise AdmissionError(
                f"model {operation.name!r} is a name, and nobody has made it; give the spec a chat model",
                code="model_not_made",
                details={"model": operation.name},
            )
        call = ModelCall(
            operation.operation_id,
            number,
            model,
            await self._messages(operation, ahead),
            [self.live.tools[name] for name in operation.request.get("tools", ())],
            tags=("nostream",) if operation.kind == "compaction" else (),  # LangGraph's word for what no stream shows
        )
        around = self._caller.around_model
        if around is None or operation.kind != "model":
            return await self._send(operation, call)
        return _whole(await around(call, partial(self._send_other, operation)), operation)

    async def _send(self, operation: Operation, call: ModelCall) -> AIMessage:
        deadlines = self.spec["deadlines"]
        return await call_model(
            call.model,
            call.messages,
            call.tools,
            operation.operation_id,
            settings=call.settings,
            first_seconds=deadlines["model_seconds"],
            idle_seconds=deadlines["model_idle_seconds"],
            config=self._config(operation, *call.tags),
        )

    async def _send_other(self, operation: Operation, call: ModelCall) -> AIMessage:
        """As `_send`, of a call that may have been made another one: what is too large is not sent even so."""
        if self.spec["compaction"]["hard_tokens"] is not None:
            too_large = self._too_large(operation, sum(tokens_of(plain(each)) for each in call.messages))
            if too_large is not None:
                raise Failed(too_large.code, too_large.message)
        return await self._send(operation, call)

    async def _call_tool(self, operation: Operation) -> dict[str, Any]:
        return await call_tool(
            self.live.tools[operation.name],
            operation.request,
            injected=self._injected(operation),
            given=self._given(operation),
            keys=self.live.keys[operation.name],
            idempotency_key=operation.idempotency_key,
            policy=operation.policy,
            seconds=self._tool_seconds(operation),
            config=self._config(operation),
            take=self._caller.take,
        )

    def _given(self, operation: Operation) -> dict[str, Any]:
        """What only the caller knows of a tool's arguments."""
        inject, request = self._caller.inject, operation.request
        tool = self.live.tools[operation.name]
        return {} if inject is None else inject(tool, request["args"], request["id"])

    def _config(self, operation: Operation, *tags: str) -> RunnableConfig:
        """The caller's, with what the engine tells of a call."""
        around = self._caller.config
        named = {"agent_run_id": operation.agent_run_id, "operation_id": operation.operation_id}
        found: RunnableConfig = {**around, "tags": [*around.get("tags", ()), *tags]}
        found["metadata"] = {**around.get("metadata", {}), **named}
        return found

    def _tool_seconds(self, operation: Operation) -> float | None:
        deadlines = self.spec["deadlines"]
        seconds: float | None = deadlines["per_tool"].get(operation.name, deadlines["tool_seconds"])
        return seconds

    def _injected(self, operation: Operation) -> list[str]:
        names: list[str] = self.spec["tools"][operation.name]["injected"]
        return names


def _whole(answer: AIMessage, operation: Operation) -> AIMessage:
    """An answer that something else than its model may have written, looked at as a model's is.

    Raises:
        Failed: It is none.
    """
    if (fault := fault_of(answer)) is not None:
        raise Failed("model_protocol_error", f"the answer of what runs around the model is not one: {fault}")
    try:
        return storable(with_call_ids(answer, operation.operation_id))
    except TypeError as error:
        raise Failed("model_protocol_error", f"the answer cannot be stored: {message_of(error)}") from None


def _not_enforced(descriptor: Mapping[str, Any]) -> list[str]:
    """What of a spec its user would rely on in vain: what is promised and not kept is refused, not passed over."""
    limits = descriptor["limits"]
    wanted = ["limits.cost_usd"] if limits["cost_usd"] is not None else []
    return wanted + [name for name in ("subagents", "plan") if descriptor[name]]
