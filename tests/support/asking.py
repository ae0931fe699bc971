"""A behaviour and a spec for tests of the engine's door: a question to a model, and a tool if it says so."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel

from langgraph_ext.engine import Begin, Behaviours, Complete, ConsumeTicket, Wait, operations_ended
from langgraph_ext.engine.outcomes import Outcome, Runtime

__all__ = ["Asks", "asking", "behaviours"]


class Asks:
    """Asks the model once; gives back what it says, or what its tool has answered."""

    async def activate(
        self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime
    ) -> AsyncGenerator[Outcome, dict[str, Any]]:
        """Go on from where the task stands."""
        asked, acted = runtime.operations.get("ask"), runtime.operations.get("act")
        task_id = runtime.task.agent_task_id
        if asked is None:
            request = {
                "messages": [{"type": "human", "data": {"content": input}}],
                "tools": sorted(runtime.spec["tools"]),
            }
            begin = Begin(agent_task_id=task_id, purpose="ask", kind="model", name="chat", request=request)
            yield Wait(continuation=_at("call_model"), condition=operations_ended("ask"), changes=(begin,))
            return
        outcome = (asked if acted is None else acted).outcome
        if "error" in outcome:
            yield Complete(output=outcome, continuation=_at("completed"))
            return
        said = outcome["value"]["message"]["data"]
        calls = said.get("tool_calls") or ()
        consume = ConsumeTicket(operation_id=asked.operation_id)
        if acted is None and calls:
            request = {"id": calls[0]["id"], "args": calls[0]["args"]}
            name, policy = calls[0]["name"], runtime.spec["tools"][calls[0]["name"]]["effect"]
            act = Begin(agent_task_id=task_id, purpose="act", kind="tool", name=name, request=request, policy=policy)
            yield Wait(continuation=_at("act"), condition=operations_ended("act"), changes=(consume, act))
            return
        changes = () if acted is not None else (consume,)
        yield Complete(output=said["content"], continuation=_at("completed"), changes=changes)


def _at(phase: str) -> dict[str, Any]:
    return {"protocol": 1, "phase": phase}


def behaviours() -> Behaviours:
    """With the one of this file."""
    found = Behaviours()
    found.register("asks", 1, Asks)
    return found


def asking(model: BaseChatModel, **more: Any) -> dict[str, Any]:
    """A spec that it drives."""
    role = {"name": "asker", "role": "react", "model": "chat", "tools": [each.name for each in more.get("tools", ())]}
    binding = {"role": "asker", "behaviour": "asks", "version": 1}
    return {"kind": "react", "entry": "asker", "roles": [role], "bindings": [binding], "models": {"chat": model}} | more
