"""ReAct: one role that calls its model and tools in turn, phase by phase (rules E12 to E17).

    prepare_context ─▶ prepare_model ─▶ call_model ─▶ interpret_response ─┬─▶ wait_batch ─▶ consume_results ─▶ (again)
                         ▲    │ too large                                 └─▶ validate_output ─▶ completed
                         └── compact_context                                    └─▶ (again, with what is wrong)

`interpret_response` and `consume_results` are gone through at once when the answer, or the last result, is there: what
is committed with them is where they lead to. Everything is prepared here and committed by the driver.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from langgraph_ext.engine import compacting, conditions
from langgraph_ext.engine.answer_checks import checked_answer, feedback
from langgraph_ext.engine.applying import Change
from langgraph_ext.engine.batches import BatchRow, Consume, ConsumeBatch, FreezeBatch, Member, result_entries
from langgraph_ext.engine.contexts import Append
from langgraph_ext.engine.granting import ConsumeTicket
from langgraph_ext.engine.messages import (
    answer_text,
    asked_for,
    input_messages,
    is_truncated,
    revived,
    text_message,
    tokens_of,
)
from langgraph_ext.engine.operation_changes import Begin
from langgraph_ext.engine.outcomes import PROTOCOL, Complete, Fail, Outcome, Progress, Wait
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.runtimes import Runtime
from langgraph_ext.engine.tool_calls import member_of

__all__ = ["React"]

_KEPT = frozenset({"model_protocol_error", "context_window_exceeded"})
"""Codes of a model operation's failure that say more than that it has failed."""


class React:
    """The `react` behaviour, version 1."""

    reads_context = True

    def check_input(self, input: Any) -> None:
        """See that an input can be this agent's.

        Raises:
            InvalidArgument: It is neither text nor messages.
        """
        input_messages(input)

    async def activate(
        self, input: Any, continuation: Mapping[str, Any] | None, runtime: Runtime
    ) -> AsyncGenerator[Outcome, dict[str, Any]]:
        """Go on from where the task stands."""
        at = dict(continuation or {"protocol": PROTOCOL, "phase": "prepare_context", "role": runtime.task.role, "n": 0})
        while True:
            outcome = _PHASES[at["phase"]](input, at, runtime)
            yield outcome
            if not isinstance(outcome, Progress):
                return
            at = dict(outcome.continuation)


def _prepare_context(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """Its own history, and what it was told since: chosen here, up to a watermark."""
    changes: tuple[Change, ...] = ()
    upto = runtime.context.upto
    if upto == 0:
        entries = tuple({"kind": "input", "message": each, "tokens": tokens_of(each)} for each in input_messages(input))
        changes = (Append(agent_task_id=runtime.task.agent_task_id, after=0, entries=entries),)
        upto = len(entries)
    steering = [each.entry for each in runtime.steering if not each.claimed]
    return Progress(continuation=_on(at, "prepare_model", context=upto, steering=steering), changes=changes)


def _prepare_model(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """The next model operation, or a step of the compaction that it needs first."""
    task_id, role = runtime.task.agent_task_id, runtime.spec["roles"][at["role"]]
    steering = [each for each in runtime.steering if each.entry in at["steering"]]
    tokens = runtime.context.tokens + sum(tokens_of(each.message) for each in steering)
    tokens += compacting.tokens_of_text(role["system_prompt"] or "")
    cut = compacting.cut_of(runtime.spec["compaction"], runtime.context, runtime.sizes, tokens)
    n = at["n"] + 1
    if cut is not None:
        purpose = f"compaction:{n}:{runtime.context.upto}"
        request = compacting.request_of(runtime, at["role"], cut)
        name = runtime.spec["compaction"]["model"] or role["model"]
        begin = Begin(agent_task_id=task_id, purpose=purpose, kind="compaction", name=name, request=request)
        return _waiting(_on(at, "compact_context", purpose=purpose), purpose, begin)
    purpose = f"business-model:{n}"
    request = {
        "role": at["role"],
        "task": task_id,
        "covers": runtime.context.covers,
        "summary": runtime.context.summary,
        "upto": runtime.context.upto,
        "steering": at["steering"],
        "tools": role["tools"],
        "tokens": tokens,
    }
    begin = Begin(agent_task_id=task_id, purpose=purpose, kind="model", name=role["model"], request=request)
    return _waiting(_on(at, "call_model", n=n, purpose=purpose), purpose, begin)


def _compact_context(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """A summary has come: it is the context's next revision."""
    operation = runtime.operations[at["purpose"]]
    if not operation.state.ended:
        return _waiting(at, at["purpose"])
    if "error" in operation.outcome:
        return Fail(code="compaction_failed", message=_told(operation), continuation=_on(at, "completed"))
    entry = {
        "kind": "summary",
        "operation_id": operation.operation_id,
        "tokens": tokens_of(operation.outcome["value"]["message"]),
        "covers": operation.request["upto"],
    }
    append = Append(agent_task_id=runtime.task.agent_task_id, after=runtime.context.upto, entries=(entry,))
    now = _on(at, "prepare_model", context=runtime.context.upto + 1)
    return Progress(continuation=now, changes=(append, Consume(operation_id=operation.operation_id)))


def _call_model(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """The answer, once it is complete: from here on it counts, and is never asked for again."""
    operation = runtime.operations[at["purpose"]]
    if not operation.state.ended:
        return _waiting(at, at["purpose"])
    if "error" in operation.outcome:
        code = operation.outcome["error"]["code"]
        code = code if code in _KEPT else "model_call_failed"
        return Fail(code=code, message=_told(operation), continuation=_on(at, "completed"))
    return _interpret_response(operation, at, runtime)


def _interpret_response(operation: Operation, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """Accept a decision: what it says, its ticket, and its tool calls as a batch."""
    answer = _answer_in(operation)
    accepted = [*_steering_in(operation, runtime), _decision(operation)]
    changes: list[Change] = [
        Append(agent_task_id=runtime.task.agent_task_id, after=runtime.context.upto, entries=tuple(accepted)),
        ConsumeTicket(operation_id=operation.operation_id),
    ]
    calls, batch = asked_for(answer), operation.operation_id
    key = f"accept-model:{operation.operation_id}"
    if not calls:
        return Progress(continuation=_on(at, "validate_output"), changes=tuple(changes), key=key)
    cut_off = is_truncated(answer)
    members = tuple(member_of(each, number, at, runtime, cut_off) for number, each in enumerate(calls))
    freeze = FreezeBatch(
        operation_id=batch,
        agent_task_id=runtime.task.agent_task_id,
        members=members,
        serial=not runtime.spec["parallel_tools"],
    )
    return Wait(
        continuation=_on(at, "wait_batch", batch=batch),
        condition=conditions.batch_settled(batch),
        changes=(*changes, freeze),
        key=key,
    )


def _wait_batch(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """All results, in their order, once every slot has one."""
    batch = runtime.batch
    assert batch is not None, "the continuation names it, and it was frozen with that"
    if batch.state == "open":
        return Wait(continuation=at, condition=conditions.batch_settled(batch.batch_id))
    return _consume_results(batch, at, runtime)


def _consume_results(batch: BatchRow, at: dict[str, Any], runtime: Runtime) -> Outcome:
    append = Append(agent_task_id=runtime.task.agent_task_id, after=runtime.context.upto, entries=result_entries(batch))
    changes = (append, ConsumeBatch(operation_id=batch.batch_id))
    if _are_the_answer(batch.members, runtime):
        last = revived([batch.members[-1].result or {}])[0]
        return Complete(output=last.content, continuation=_on(at, "completed"), changes=changes)
    key = f"consume-batch:{batch.batch_id}"
    return Progress(continuation=_on(at, "prepare_context"), changes=changes, key=key)


def _are_the_answer(members: tuple[Member, ...], runtime: Runtime) -> bool:
    """Whether the tools' results are given back as they are: all of them are of tools that say so, and none failed."""
    tools = runtime.spec["tools"]
    return all(
        each.outcome is not None and "value" in each.outcome and tools[each.name]["return_direct"] for each in members
    )


def _validate_output(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """The answer, if it is what the spec says it is to be; else what is wrong with it is fed back (rule E16)."""
    operation = runtime.operations[at["purpose"]]
    text, schema = answer_text(_answer_in(operation)), runtime.spec["output_schema"]
    consume = Consume(operation_id=operation.operation_id)
    if schema is None:
        return Complete(output=text, continuation=_on(at, "completed"), changes=(consume,))
    checked = checked_answer(text, schema, None if runtime.live is None else runtime.live.output_type)
    if not checked.diagnostics:
        return Complete(output=checked.value, continuation=_on(at, "completed"), changes=(consume,))
    message = text_message(feedback(checked.diagnostics))
    entry = {"kind": "feedback", "message": message, "tokens": tokens_of(message)}
    append = Append(agent_task_id=runtime.task.agent_task_id, after=runtime.context.upto, entries=(entry,))
    return Progress(continuation=_on(at, "prepare_context"), changes=(append, consume))


_PHASES = {
    "prepare_context": _prepare_context,
    "prepare_model": _prepare_model,
    "compact_context": _compact_context,
    "call_model": _call_model,
    "wait_batch": _wait_batch,
    "validate_output": _validate_output,
}

_ROUND = ("purpose", "batch", "steering")
"""What a continuation names of one round."""


def _on(at: Mapping[str, Any], phase: str, **more: Any) -> dict[str, Any]:
    """The continuation of the next phase; a new round begins with nothing of the last."""
    kept = {name: value for name, value in at.items() if phase != "prepare_context" or name not in _ROUND}
    return kept | {"phase": phase} | more


def _waiting(at: dict[str, Any], purpose: str, *changes: Change) -> Wait:
    return Wait(continuation=at, condition=conditions.operations_ended(purpose), changes=changes)


def _answer_in(operation: Operation) -> AIMessage:
    [answer] = revived([operation.outcome["value"]["message"]])
    assert isinstance(answer, AIMessage), "a model's answer was looked at before it was stored"
    return answer


def _decision(operation: Operation) -> dict[str, Any]:
    tokens = tokens_of(operation.outcome["value"]["message"])
    return {"kind": "decision", "operation_id": operation.operation_id, "tokens": tokens}


def _steering_in(operation: Operation, runtime: Runtime) -> list[dict[str, Any]]:
    """What of the inbox was in a frozen request: it is part of the history that the answer belongs to."""
    sent = set(operation.request["steering"])
    told = [each.message for each in runtime.steering if each.entry in sent and each.claimed]
    return [{"kind": "steering", "message": each, "tokens": tokens_of(each)} for each in told]


def _told(operation: Operation) -> str:
    error = operation.outcome["error"]
    return f"{error['code']}: {error['message']}"
