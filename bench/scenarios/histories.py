"""Histories: answers of the model that were cut off, and turns that were cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.scenarios.acting import Act
from bench.scenarios.cases import Case
from bench.scenarios.sides import Form, Side
from bench.scenarios.stage import Found, Stage, counted
from langgraph_ext.testing import call, calls, calls_of, say, truncated

__all__ = ["cancelled", "cut_off", "killed", "without_result"]


def cuts_off(case: Case) -> list[Any]:
    """A model whose answer reaches its limit of output in the middle of the last call's arguments."""
    first, last = case.orders
    whole = call("pay", {"order": first})
    return [truncated(whole, call("pay", '{"order": "' + last[: len(last) // 2])), say("done")]


def cut_off(side: Side, folder: Path, form: Form) -> Found:
    """Two payments are asked for, and the answer is cut off in the middle of the second one's arguments."""
    case = Case(orders=("12", "3456"), seconds=(0.0,), script=cuts_off)
    stage = Stage(side, case, folder / side.name, form)
    seen = stage.seen(Act(say="Pay the orders.", stream=True))
    executed = sorted(stage.place.effects.counts())
    told = f"{len(executed)} of 2 calls run"
    told += f", with {' and '.join(map(repr, executed))}" if executed else ""
    if seen.error:
        told += f"; it ended with {seen.error}"
    elif not executed:
        told += "; the model was told so, and asked again"
    return Found(told=told, counts={"executed": len(executed), "with_cut_arguments": stage.strange}, sound=not executed)


def batch(case: Case) -> list[Any]:
    """A model that asks for all payments at once, and says something else in the next turn."""
    return [calls(*(call("pay", {"order": order}) for order in case.orders)), say("well"), say("well")]


def cancelled(side: Side, folder: Path, form: Form) -> Found:
    """The turn is cancelled between two payments of a batch; then the user says something else."""
    del form  # a sync invocation cannot be cancelled
    case = Case(orders=("quick", "slow"), seconds=(0.1, 5.0), script=batch)
    stage = Stage(side, case, folder / side.name, "async")
    stage.seen(Act(say="Pay the orders.", cancel_after=1))
    return _says_something_else(stage)


def killed(side: Side, folder: Path, form: Form) -> Found:
    """The process is killed right after the first of two payments; then the user says something else."""
    case = Case(orders=("quick", "slow"), seconds=(0.1, 5.0), script=batch)
    stage = Stage(side, case, folder / side.name, form)
    stage.killed(Act(say="Pay the orders.", kill_after=1))
    return _says_something_else(stage)


def _says_something_else(stage: Stage) -> Found:
    """The next turn of a thread whose last one was left in the middle of a batch."""
    seen = stage.seen(Act(say="Never mind. What is paid?", operator=True))
    asked = calls_of(stage.place.model_log)[-1].messages
    missing, made = without_result(asked), sum(len(each.get("tool_calls", ())) for each in asked)
    new_message = any(each["content"] == "Never mind. What is paid?" for each in asked)
    if not new_message:
        told = f"the model was not asked again ({seen.error or 'no error'})"
    elif missing:
        told = f"invalid: {counted(len(missing), 'tool call')} of {made} without a result in the next request"
    else:
        told = "valid: each tool call has a result"
    told += f"; {counted(stage.repeated, 'payment')} made twice" if stage.repeated else ""
    return Found(
        told=told,
        counts={"without_result": len(missing), "repeated": stage.repeated, "ended": int(seen.ended)},
        sound=new_message and not missing and stage.repeated == 0 and seen.ended,
    )


def without_result(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tool calls that have no result right behind the message that makes them, as OpenAI and Anthropic want it."""
    missing: list[str] = []
    open_calls: list[str] = []
    for each in messages:
        if each["type"] == "tool":
            open_calls = [found for found in open_calls if found != each["tool_call_id"]]
            continue
        missing += open_calls
        open_calls = [str(made["id"]) for made in each.get("tool_calls", ())]
    return missing + open_calls
