"""A simulated ReAct agent: its releases, its models, which decide as the seed has it, and its tools of every policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Annotated, Any

from langchain_core.messages import AIMessage, ToolMessage

from langgraph_ext.engine import AgentSpec, Compaction, InjectedIdempotencyKey, ReAct, ToolPolicy, compile_spec
from langgraph_ext.engine.messages import fault_of, plain, told_outcome, with_call_ids
from langgraph_ext.engine.program import Allowed, Denied, Failed, NotKnown
from langgraph_ext.engine.react import React
from langgraph_ext.engine.releases import Release
from langgraph_ext.engine.rows import Operation
from langgraph_ext.ledger.not_done import EffectNotDone
from tests.support.simulated.program import CallFailed, SimulatedProgram, Watched

__all__ = ["Clerk", "release_of", "story_of"]

_TEXTS = ("I see.", "Let me think about all of this once more, at some length, as there is no hurry. " * 6)


def look(number: int) -> str:
    """Look."""
    return str(number)


def pay(number: int) -> str:
    """Pay; a person is asked what came of it."""
    return str(number)


def send(number: int) -> str:
    """Send; a function finds out what came of it."""
    return str(number)


def tell(number: int) -> str:
    """Tell; the model hears that nobody knows."""
    return str(number)


def book(number: int, key: Annotated[str, InjectedIdempotencyKey]) -> str:
    """Book, under a key."""
    return str(number)


_POLICIES = {
    "look": ToolPolicy(effect="repeatable"),
    "pay": ToolPolicy(effect="once"),
    "send": ToolPolicy(effect="once", on_unknown=lambda args, key: None),
    "tell": ToolPolicy(effect="once", on_unknown="error"),
    "book": ToolPolicy(effect="keyed"),
}


@cache
def release_of(parallel: bool, soft_tokens: int | None, schema: bool) -> Release:
    """One of the agents."""
    return compile_spec(
        AgentSpec(
            model="simulated:model",
            strategy=ReAct(),
            system_prompt="Do it.",
            tools=[look, pay, send, tell, book],
            tool_policies=_POLICIES,
            parallel_tools=parallel,
            compaction=Compaction(soft_tokens=soft_tokens, model="simulated:summary"),
            output_schema={"type": "object", "required": ["done"]} if schema else None,
        )
    )


def story_of(rng: Random) -> dict[str, Any]:
    """One agent run."""
    rounds = rng.randrange(1, 4)
    limits: dict[str, int] = {}
    if rng.random() < 0.3:
        limits = {rng.choice(("model_calls", "tool_calls")): rng.randrange(1, 6)}
    elif rng.random() < 0.15:
        limits = {"tokens": rng.randrange(50, 1500)}
    return {
        "behaviour": "react",
        "input": "Go.",
        "limit": rng.choice((100, 100, 100, rounds)),
        "run_us": rng.choice((None, None, None, None, 8_000_000, 30_000_000)),
        "limits": limits or None,
        "rounds": rounds,
        "release": (rng.random() < 0.6, rng.choice((None, None, 300)), rng.random() < 0.2),
    }


class Clerk(SimulatedProgram):
    """The program of one process for one ReAct run.

    Args:
        story: Of the run.
        process: Its number.
        shared: As of any simulated program.
    """

    def __init__(self, story: Mapping[str, Any], process: int, *shared: Any) -> None:
        super().__init__(process, *shared)
        release = release_of(*story["release"])
        self.spec, self.live = release.descriptor, release.live
        self._story = story
        self._behaviours = {"react": Watched(React(), self._process, self._database, self._witness)}

    def needs_ticket(self, operation: Operation) -> bool:
        return operation.kind == "model"

    async def before(self, operation: Operation) -> Allowed | Denied:
        self._database.transact(self._witness.asked_hooks, operation.operation_id, "before", self._process)
        await self._take_time()
        if self._rng.random() < self._moods["deny"] / (1 if operation.kind == "tool" else 6):
            return Denied(["no"], "denied", "a hook has forbidden it")
        upto = max(operation.request.get("steering") or (), default=None)
        return Allowed(operation.request, ["yes"], upto)

    async def call(self, operation: Operation, number: int, ahead: Any = None) -> Any:
        answer = self._tool if operation.kind == "tool" else self._model
        with self._flying(operation, number):
            await self._take_time()
            if self._rng.random() < self._moods["retry"]:
                raise Failed("call_failed", "try again", retryable=True)
            value = await answer(operation)
        return {"value": {"message": value}}

    def retry_after(self, operation: Operation, number: int, error: Exception) -> float | None:
        if not getattr(error, "retryable", isinstance(error, CallFailed)) or number > 2:
            return None
        return self._rng.choice((0.0, 2.0))

    def usage_of(self, operation: Operation, outcome: Any) -> dict[str, Any] | None:
        if operation.kind == "tool" or "value" not in outcome:
            return None
        return {"tokens_in": self._rng.randrange(100), "tokens_out": self._rng.randrange(50), "estimated": True}

    async def reconcile(self, operation: Operation) -> Any:
        """It knows, unless a call is under way yet."""
        await self._take_time()
        if self._witness.is_flying(operation.operation_id):
            return None
        if self._rng.random() < 0.2:
            raise ValueError("it cannot find out")
        if not self._witness.acted[operation.operation_id]:
            raise EffectNotDone
        return told_outcome(operation.request["id"], operation.name, "it was done")

    # -- calls

    async def _tool(self, operation: Operation) -> dict[str, Any]:
        chance = self._rng.random()
        if chance < self._moods["fail"] / 2:
            raise ValueError("it never goes well")
        self._witness.act(operation.operation_id, may_repeat=_POLICIES[operation.name].effect != "once")
        for _ in range(self._rng.choice((0, 0, 5, 40))):  # done, and nobody has heard of it yet
            await asyncio.sleep(0)
        await self._take_time()
        if chance < self._moods["fail"]:
            raise ValueError("it has gone wrong at the end")
        if chance > (0.85 if operation.on_unknown != "error" else 0.97):
            raise NotKnown("it took too long")
        text = self._rng.choice(_TEXTS)
        return plain(ToolMessage(text, tool_call_id=operation.request["id"], name=operation.name))

    async def _model(self, operation: Operation) -> dict[str, Any]:
        if self._rng.random() < self._moods["fail"] / 4:
            raise Failed("model_protocol_error", "it has said nothing")
        await self._take_time()
        if operation.kind == "compaction":
            return plain(AIMessage("All of it, in short."))
        answer = with_call_ids(self._decision(int(operation.purpose.split(":")[1])), operation.operation_id)
        assert fault_of(answer) is None
        return plain(answer)

    def _decision(self, number: int) -> AIMessage:
        rng = self._rng
        ends = number > self._story["rounds"] or rng.random() < 0.1
        told = {"response_metadata": {"finish_reason": "length" if rng.random() < 0.06 else "stop"}}
        if ends:
            return AIMessage(rng.choice(("Done.", json.dumps({"done": True}), json.dumps({"done": True}))), **told)
        asked = [self._asked(rng) for _ in range(rng.choice((1, 1, 2, 3, 5)))]
        calls = [each for each in asked if each["args"] is not None]
        invalid = [{**each, "args": "{", "error": None} for each in asked if each["args"] is None]
        return AIMessage(rng.choice(("", *_TEXTS)), tool_calls=calls, invalid_tool_calls=invalid, **told)

    def _asked(self, rng: Random) -> dict[str, Any]:
        name = rng.choice((*_POLICIES, *_POLICIES, "pay", "send", "nobody"))
        args = rng.choice(({"number": 1},) * 8 + ({"number": "one"}, None))
        return {"name": name, "args": args, "id": rng.choice((None, "a", "b", "c"))}
