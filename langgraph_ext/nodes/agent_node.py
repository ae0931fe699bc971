"""AgentNode: a durable ReAct agent as a node of a LangGraph (40-nodes: A1 to A12, A15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages

from langgraph_ext import canonical
from langgraph_ext.engine import AgentRunRecord, AgentSpec, AgentStatus, ReAct, compile_spec
from langgraph_ext.engine.release_program import entry_of
from langgraph_ext.engine.visits import Came
from langgraph_ext.errors import AdmissionError, AgentRunFailed, InvalidArgument
from langgraph_ext.nodes.agent_tools import commands_of
from langgraph_ext.nodes.agent_visits import AgentVisit
from langgraph_ext.nodes.driven_node import DrivenNode
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.middleware import Middlewares
from langgraph_ext.nodes.models import with_models
from langgraph_ext.saver import host
from langgraph_ext.saver.refusals import refuse

__all__ = ["AgentNode", "AgentResult"]

OnFailure = Literal["raise", "return"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What an agent run has come to, as a node's `output` function is given it."""

    run: AgentRunRecord
    messages: list[BaseMessage]
    """Those that it has added, in their order, with ids that stay the same."""

    @property
    def output(self) -> Any:
        """Its answer: text, or a value of `response_format`; None unless it succeeded."""
        return self.run.output


class AgentNode(DrivenNode[AgentVisit]):
    """A ReAct agent as a node: `builder.add_node(AgentNode(name="support", model=…, tools=[…]))`.

    It reads and appends `state["messages"]`. Each visit has one agent run, whose model answers and tool results are
    committed as they come: whoever goes on with the thread, in whichever process, goes on with it. What a person
    has to decide suspends the graph through an interrupt; `Command(resume={"decisions": […]})` goes on. The graph's
    checkpointer is a `LedgerSaver`.

    Args:
        name: The node's name.
        model: A chat model, or the name of one for LangChain's `init_chat_model` (extra `langchain`).
        tools: langchain-core tools, or functions with a docstring.
        system_prompt: What the model is told first.
        strategy: `ReAct()`.
        response_format: What the answer is to be: a pydantic model or a JSON Schema; `structured_response` then.
        interrupt_on: By tool name, what a person decides before each call: True, or an `Approval`; as LangChain's
            HumanInTheLoopMiddleware, a dict with `allowed_decisions`, `description` and `when` will do.
        input: Makes the agent's input of the state: text, messages, or `{"messages": […]}`. By default the state's
            messages.
        output: Makes the node's update of an `AgentResult`. By default the new messages, and `structured_response` and
            `agent_runs` where the graph has these keys.
        middleware: LangChain's AgentMiddleware (extra `langchain`), the outermost first: `wrap_model_call`,
            `before_model` and `after_model` that change messages alone, and `tools`. Each call of a model that one
            makes is on record before it is made, and counts.
        on_failure: What an agent run that ends without an answer is: an error of the node, or an update with what there
            is, and a last message that says so.
        options: `limits`, `deadlines`, `tool_policies`, `hooks`, `compaction`, `retry`, `parallel_tools`,
            `description`; as in `AgentSpec`. With `Limits(on_limit="ask")` a person is asked at a limit, with
            `"finish"` an agent run that has reached one ends as with `on_failure="return"`.

    Raises:
        SpecInvalid: The agent cannot be compiled; every reason is told.
        InvalidArgument: An argument is none, or asks for what this version does not do (`spec_unsupported`).
            A middleware does what an agent node does not (`middleware_unsupported`).
        AdmissionError: A model that is named cannot be made (`model_not_made`), or LangChain is not installed
            (`extra_missing`).
    """

    _KIND = "agent"

    def __init__(
        self,
        *,
        name: str,
        model: BaseChatModel | str,
        tools: Sequence[Any] = (),
        system_prompt: str | None = None,
        strategy: ReAct | None = None,
        response_format: Any = None,
        interrupt_on: Mapping[str, Any] | None = None,
        input: Callable[[Any], Any] | None = None,
        output: Callable[[AgentResult], Any] | None = None,
        middleware: Sequence[Any] = (),
        on_failure: OnFailure = "raise",
        **options: Any,
    ) -> None:
        if type(name) is not str or not name:
            raise InvalidArgument(f"name is {name!r}; an agent node has a name, which is its graph's node's")
        if on_failure not in ("raise", "return"):
            raise InvalidArgument(f'on_failure is {on_failure!r}; it must be "raise" or "return"')
        if strategy is not None and not isinstance(strategy, ReAct):
            raise InvalidArgument("strategy is ReAct(); others are to come")
        self.name = name
        self._middleware = Middlewares(middleware)
        self.spec = AgentSpec(
            name=name,
            model=model,
            tools=(*tools, *self._middleware.tools),
            system_prompt=system_prompt,
            strategy=strategy or ReAct(),
            output_schema=response_format,
            interrupt_on=interrupt_on or {},
            **options | {"hooks": self._middleware.hooks(options.get("hooks"))},
        )
        self._middleware.check(self.spec)
        self.release = self._middleware.in_release(with_models(compile_spec(self.spec)))
        entry_of(self.release)  # what it asks for, and this version does not do, is told now
        self._input, self._output, self._on_failure = input, output, on_failure
        self._become_durable({"release": self.release.digest}, effect="none", on_unknown="stop")

    def _arrive(self, state: Any, frame: Frame | None, *, in_loop: bool) -> AgentVisit:
        place = self._place("run its agent with AgentGraphEngine")
        if place.durability != "exit" and not place.saver.loops.has(place.thread_id, place.checkpoint_ns):
            refuse(
                AdmissionError(
                    f"agent node {self.name!r} runs in a graph that hands nothing to the saver; compile that subgraph "
                    "without checkpointer=False",
                    code="durability_required",
                )
            )
        around = self._middleware.around
        return AgentVisit(str(self.name), self.release, place, frame, self._given(state), state, around)

    def _given(self, state: Any) -> list[BaseMessage]:
        """The agent's input, of the state, as messages."""
        given = self._input(state) if self._input is not None else _part(state, "messages")
        given = given.get("messages") if isinstance(given, Mapping) else given
        if isinstance(given, str):
            return [HumanMessage(given)]
        if not isinstance(given, Sequence) or not given:
            raise InvalidArgument(
                f"agent node {self.name!r} has nothing to begin with: the state holds no messages; give it some, or "
                "say with input= what its input is"
            )
        return convert_to_messages(given)

    def _update(self, at: AgentVisit) -> Any:
        return self._made(at, at.came())

    async def _aupdate(self, at: AgentVisit) -> Any:
        return self._made(at, await at.acame())

    def _made(self, at: AgentVisit, came: Came) -> Any:
        """What the node returns; with commands of its tools, if there are any.

        Raises:
            AgentRunFailed: The agent run has ended without an answer.
        """
        run, messages = at.seen, came.messages
        if run.status is not AgentStatus.SUCCEEDED:
            finishes = run.status is AgentStatus.EXHAUSTED and self.spec.limits.on_limit == "finish"
            if self._on_failure == "raise" and not finishes:
                raise AgentRunFailed(
                    f"agent {self.name!r} ended {run.status} ({run.reason}): {run.message or 'no more is known'}; see "
                    f"langgraph-ext show {run.agent_run_id}",
                    code=run.reason or str(run.status),
                    details={"agent_run_id": run.agent_run_id, "status": str(run.status)},
                )
            told = f"The agent ended without an answer: {run.message or run.reason}"
            messages = [*messages, AIMessage(told, id=f"{run.agent_run_id}:end", name=self.name)]
        at.settles({"agent_run_id": run.agent_run_id, "output": canonical.digest(canonical.encode(run.output))})
        result = AgentResult(run=run, messages=messages)
        update = self._output(result) if self._output is not None else self._own_update(at, result)
        commands = commands_of(came.commands, at.serde)
        return [update, *commands] if commands else update

    def _own_update(self, at: AgentVisit, result: AgentResult) -> dict[str, Any]:
        known = host.channels_in(at.config)
        update: dict[str, Any] = {"messages": result.messages}
        if "structured_response" in known and self.spec.output_schema is not None:
            update["structured_response"] = result.output
        if "agent_runs" in known:
            update["agent_runs"] = [result.run.agent_run_id]
        return update


def _part(state: Any, name: str) -> Any:
    return state.get(name) if isinstance(state, Mapping) else getattr(state, name, None)
