"""CapabilityNode: one tool, or one runnable, as a node of a LangGraph (40-nodes)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langgraph.pregel import Pregel
from langgraph.types import Command

from langgraph_ext.engine import Approval, Hooks, Retry, ToolPolicy
from langgraph_ext.engine.capabilities import CapabilitySpec, compile_capability
from langgraph_ext.errors import CapabilityFailed, InvalidArgument
from langgraph_ext.nodes.callables import check_takes, is_async
from langgraph_ext.nodes.capability_visits import CapabilityVisit
from langgraph_ext.nodes.driven_node import DrivenNode
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.saver import host

__all__ = ["CapabilityNode"]


class CapabilityNode(DrivenNode[CapabilityVisit]):
    """One tool or runnable as a node: `builder.add_node("refund", CapabilityNode(refund, input=…, output="receipt"))`.

    Its call is an effect on record, treated as an agent's tool call is: hooks, policy, timeout, retries and approval,
    without an agent. A call that has returned is not made again for its visit, and what hooks and persons have decided
    is not asked again. The graph's checkpointer is a `LedgerSaver`.

    Args:
        capability: A langchain-core tool, a function with a docstring, or another runnable.
        name: What it is called; by default its own name. It is the node's, unless `add_node` is given one.
        input: Makes a tool's arguments, or a runnable's input, of the state. A tool call (`{"type": "tool_call", …}`)
            has a tool answer with its message. A runnable's is the state by default.
        output: The key of the state that takes the result, or a function that makes the node's update of that. By
            default the result is the update. A `Command` in the result is returned as it is.
        policy: What a call does outside, and what happens when nobody knows whether it was done. By default as a tool
            says itself, else `once`, but for a model alone, which may be called again.
        timeout_seconds: How long one call may take. None: as long as it likes.
        retry: Whether a call that has failed is made again, if its error says that this may help.
        hooks: `before_tool` and `after_tool` are asked of its calls.
        interrupt_on: What a person decides before a tool is called: True, an `Approval`, or a dict of its fields.

    Raises:
        SpecInvalid: An option has the wrong shape, or cannot be kept; every reason is told.
        InvalidArgument: `input` or `output` can be none, or it is a graph, or a node like this one.
    """

    _KIND = "capability"

    def __init__(
        self,
        capability: Any,
        *,
        name: str | None = None,
        input: Callable[[Any], Any] | None = None,
        output: str | Callable[[Any], Any] | None = None,
        policy: ToolPolicy | Mapping[str, Any] | None = None,
        timeout_seconds: float | None = 60.0,
        retry: Retry | Mapping[str, Any] | None = None,
        hooks: Hooks | Mapping[str, Any] | None = None,
        interrupt_on: Approval | Mapping[str, Any] | bool = False,
    ) -> None:
        if isinstance(capability, Pregel | DrivenNode):
            raise InvalidArgument("a graph, or an agent node, is a node as it is: give it to add_node")
        if name is not None and (type(name) is not str or not name):
            raise InvalidArgument(f"name is {name!r}; it must be text, and not empty, or left out")
        given: dict[str, Any] = {"policy": policy, "hooks": hooks, "retry": retry, "interrupt_on": interrupt_on}
        given = {option: each for option, each in given.items() if each is not None}
        spec = CapabilitySpec(timeout_seconds=timeout_seconds, **given)
        self._capability = compile_capability(capability, name, spec)
        self.name = self._capability.name
        _check_mappers(self.name, input, output, is_tool=self._capability.tool is not None)
        self._input, self._output = input, output
        self._become_durable(self._capability.told, effect="write", on_unknown="retry")

    def _arrive(self, state: Any, frame: Frame | None, *, in_loop: bool) -> CapabilityVisit:
        place = self._place("call it as it is")
        assert frame is not None, "what has effects has an attempt"
        known, output = host.channels_in(place.config), self._output
        if isinstance(output, str) and known and output not in known:
            raise InvalidArgument(
                f"capability node {self.name!r}: output is {output!r}, and the graph's state has no such key"
            )
        return CapabilityVisit(self._capability, place, frame, self._input or _as_it_is, state, in_loop=in_loop)

    def _update(self, at: CapabilityVisit) -> Any:
        """What the node returns.

        Raises:
            CapabilityFailed: There is no result.
        """
        outcome = at.outcome
        assert outcome is not None, "it was driven to its end"
        if "error" in outcome:
            error = outcome["error"]
            raise CapabilityFailed(
                f"{self.name!r} has no result: {error['message']}",
                code=error["code"],
                details={"capability": self.name},
            )
        value = outcome["value"]
        if isinstance(value, list) and any(isinstance(each, Command) for each in value):
            return [each if isinstance(each, Command) else self._mapped(each) for each in value]
        return value if isinstance(value, Command) else self._mapped(value)

    async def _aupdate(self, at: CapabilityVisit) -> Any:
        return self._update(at)

    def _mapped(self, value: Any) -> Any:
        if isinstance(self._output, str):
            return {self._output: value}
        return value if self._output is None else self._output(value)


def _as_it_is(state: Any) -> Any:
    return state


def _check_mappers(name: str, input: Any, output: Any, *, is_tool: bool) -> None:
    if input is None and is_tool:
        raise InvalidArgument(f"capability node {name!r}: say with input= what of the state the tool's arguments are")
    for word, mapper in (("input", input), ("output", output)):
        if mapper is None or (word == "output" and isinstance(mapper, str) and mapper):
            continue
        check_takes(mapper, f"capability node {name!r}: {word}", "one value")
        if is_async(mapper):
            raise InvalidArgument(
                f"capability node {name!r}: {word} is async, and nobody would await it; give a plain function"
            )
