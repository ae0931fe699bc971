"""Agent tools: what LangGraph gives to tools, and takes from them: its injections, and `Command` (rule A11).

The engine knows langchain-core's tools. This is the one place where those of LangGraph are made to work in it: an
argument that is annotated with `InjectedState`, `InjectedStore` or `ToolRuntime` is filled in, and a `Command` that
a tool returns is stored with its result, and returned by the node when its agent has ended.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.runtime import Runtime
from langgraph.types import Command

from langgraph_ext.engine.spec_tools import annotations_of
from langgraph_ext.engine.visiting import Taken

__all__ = ["commands_of", "injecting", "taking"]


def injecting(state: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Callable[..., dict[str, Any]]:
    """What fills in the arguments of LangGraph's.

    Args:
        state: The graph's state, as the node was given it.
        config: The node's.
        runtime: LangGraph's, of the node.
    """

    def inject(tool: BaseTool, args: Mapping[str, Any], call_id: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, annotation in annotations_of(tool).items():
            if (mark := _mark(annotation, InjectedState)) is not None:
                field = getattr(mark, "field", None)
                found[name] = state if field is None else _field(state, field, tool.name)
            elif _mark(annotation, InjectedStore) is not None:
                if runtime.store is None:
                    raise ValueError(f"tool {tool.name!r} wants a store, and the graph is compiled without one")
                found[name] = runtime.store
            elif _mark(annotation, ToolRuntime) is not None:
                found[name] = ToolRuntime(
                    state=state,
                    context=runtime.context,
                    config=config,
                    stream_writer=runtime.stream_writer,
                    tool_call_id=call_id,
                    store=runtime.store,
                    execution_info=runtime.execution_info,
                    server_info=runtime.server_info,
                )
        return found

    return inject


def _mark(annotation: Any, kind: type) -> Any:
    """The mark of a kind in an annotation: a class, an instance, or a generic of it; None if there is none."""
    for each in (annotation, get_origin(annotation), *get_args(annotation)):
        if isinstance(each, kind) or (isinstance(each, type) and issubclass(each, kind)):
            return each
        if each is not annotation and get_origin(each) is not None and (found := _mark(each, kind)) is not None:
            return found
    return None


def _field(state: Any, name: str, tool: str) -> Any:
    if isinstance(state, Mapping):
        if name not in state:
            raise ValueError(f"tool {tool!r} wants {name!r} of the state, which has no such key yet")
        return state[name]
    return getattr(state, name)


def taking(serde: SerializerProtocol) -> Callable[[Any, str, str], Taken | None]:
    """What makes a tool's result of what else it returns: a `Command`, or a list that holds one message and more.

    Args:
        serde: Stores what of a command is no message.
    """

    def take(answer: Any, call_id: str, tool: str) -> Taken | None:
        given = answer if isinstance(answer, list) else [answer]
        if not given or not all(isinstance(each, Command | ToolMessage) for each in given):
            return None
        messages = [each for each in given if isinstance(each, ToolMessage)]
        commands = []
        for command in (each for each in given if isinstance(each, Command)):
            update = dict(command.update) if isinstance(command.update, Mapping) else command.update
            own = update.pop("messages", []) if isinstance(update, dict) else []
            messages += [each for each in own if isinstance(each, ToolMessage)]
            rest = [each for each in own if not isinstance(each, ToolMessage)]
            if rest and isinstance(update, dict):
                update["messages"] = rest
            commands.append(Command(graph=command.graph, update=update or None, goto=command.goto))
        mine = [each for each in messages if each.tool_call_id == call_id]
        if len(mine) > 1 or len(messages) > len(mine):
            return None
        if not mine:
            mine = [ToolMessage("done", tool_call_id=call_id, name=tool)]
        useful = [each for each in commands if each.update or each.goto]
        kind, data = serde.dumps_typed(useful)
        more = {"type": kind, "data": base64.b64encode(data).decode()} if useful else None
        return Taken(mine[0], more, ends=any(each.goto for each in useful))

    return take


def commands_of(stored: list[Any], serde: SerializerProtocol) -> list[Command[Any]]:
    """The commands that an agent run's tools have returned, as `taking` has stored them."""
    return [each for more in stored for each in serde.loads_typed((more["type"], base64.b64decode(more["data"])))]
