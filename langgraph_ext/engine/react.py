"""ReAct: one role that calls its model and tools in turn, phase by phase (rules E12 to E17).

    prepare_context ─▶ prepare_model ─▶ call_model ─▶ interpret_response ─┬─▶ wait_batch ─▶ consume_results ─▶ (again)
                         ▲    │ too large                                 │      ▲
                         └── compact_context                              ├─▶ wait_approval, if a person decides
                                                                          └─▶ validate_output ─▶ completed
                                                                                └─▶ (again, with what is wrong)

A task stands at `call_model`, `compact_context`, `wait_approval` or `wait_batch`, where it waits; or at
`prepare_model`, if its history is too large. The other phases are gone through at once: what they decide is committed
with where they lead to. So a round is two outcomes: a decision with its tool calls, and their results with the next
model operation. Everything is prepared here and committed by the driver.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from langgraph_ext.engine import compacting, conditions
from langgraph_ext.engine.answer_checks import checked_answer, feedback
from langgraph_ext.engine.applying import Change
from langgraph_ext.engine.approvals import asked_about, decided
from langgraph_ext.engine.batches import (
    BatchRow,
    Consume,
    ConsumeBatch,
    DecideBatch,
    FreezeBatch,
    Member,
    result_entries,
)
from langgraph_ext.engine.contexts import Append, entry
from langgraph_ext.engine.granting import ConsumeTicket
from langgraph_ext.engine.messages import (
    answer_text,
    asked_for,
    begun_messages,
    input_messages,
    is_truncated,
    revived,
    text_message,
    tokens_of,
)
from langgraph_ext.engine.operation_changes import Begin
from langgraph_ext.engine.outcomes import PROTOCOL, Complete, Fail, Outcome, Progress, Wait
from langgraph_ext.engine.requests import OpenRequest
from langgraph_ext.engine.rows import Operation
from langgraph_ext.engine.runtimes import Runtime
from langgraph_ext.engine.states import BatchState, RequestState
from langgraph_ext.engine.tool_calls import beyond_limit, member_of, rejected

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
        start = {"protocol": PROTOCOL, "phase": "prepare_context", "role": runtime.task.role, "n": 0}
        at = dict(continuation or start)
        while True:
            outcome = _PHASES[at["phase"]](input, at, runtime)
            yield outcome
            if not isinstance(outcome, Progress):
                return
            at = dict(outcome.continuation)


def _prepare_context(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """Its input, which begins its history."""
    entries = tuple(entry("input", each) for each in begun_messages(input))
    return _next_model(at, runtime, entries)


def _prepare_model(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """A history that is too large, or has just been compacted."""
    return _next_model(at, runtime, ())


def _next_model(
    at: dict[str, Any],
    runtime: Runtime,
    entries: tuple[dict[str, Any], ...],
    *changes: Change,
    key: str | None = None,
) -> Outcome:
    """The next model operation, or a step of the compaction that it needs first.

    Args:
        at: Where the task stands.
        runtime: What it may look at.
        entries: What its history grows by.
        changes: What is committed with that.
        key: The commit's.
    """
    task, head = runtime.task, runtime.context
    if entries:
        append = Append(agent_task_id=task.agent_task_id, after=head.upto, entries=entries)
        head = head.grown(len(entries), sum(each["tokens"] for each in entries))
        changes = (*changes, append)
    role = runtime.spec["roles"][at["role"]]
    steering = [each for each in runtime.steering if not each.claimed]  # up to here: what comes later waits
    tokens = head.tokens + sum(tokens_of(each.message) for each in steering)
    tokens += compacting.tokens_of_text(role["system_prompt"] or "")
    if compacting.is_too_large(runtime.spec["compaction"], tokens):
        if entries:  # where it may be cut is read behind that
            return Progress(continuation=_on(at, "prepare_model"), changes=changes, key=key)
        cut = compacting.cut_of(runtime.spec["compaction"], head, runtime.sizes)
        if cut is not None:
            return _compact(at, runtime, cut)
    n = at["n"] + 1
    purpose = f"business-model:{n}"
    request = {
        "role": at["role"],
        "task": task.context_id,
        "covers": head.covers,
        "summary": head.summary,
        "upto": head.upto,
        "steering": [each.entry for each in steering],
        "tools": role["tools"],
        "tokens": tokens,
    }
    hard = runtime.spec["compaction"]["hard_tokens"]
    begin = Begin(
        agent_task_id=task.agent_task_id,
        purpose=purpose,
        kind="model",
        name=role["model"],
        request=request,
        dispatch=not runtime.spec["hooks"]["before_model"] and (hard is None or tokens <= hard),
        claims_upto=max((each.entry for each in steering), default=None),
    )
    return _waiting(_on(at, "call_model", n=n, purpose=purpose), purpose, *changes, begin, key=key)


def _compact(at: dict[str, Any], runtime: Runtime, cut: int) -> Outcome:
    """A step of a compaction: the rows up to the cut become a summary."""
    compaction, role = runtime.spec["compaction"], runtime.spec["roles"][at["role"]]
    purpose = f"compaction:{at['n'] + 1}:{runtime.context.upto}"
    begin = Begin(
        agent_task_id=runtime.task.agent_task_id,
        purpose=purpose,
        kind="compaction",
        name=compaction["model"] or role["model"],
        request=compacting.request_of(runtime, at["role"], cut),
    )
    return _waiting(_on(at, "compact_context", purpose=purpose), purpose, begin)


def _compact_context(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """A summary has come: it is the context's next revision."""
    operation = runtime.operations[at["purpose"]]
    if not operation.state.ended:
        return _waiting(at, at["purpose"])
    if "error" in operation.outcome:
        return Fail(code="compaction_failed", message=_told(operation), continuation=_on(at, "completed"))
    if not answer_text(_answer_in(operation)):
        message = "the summary holds no text"
        return Fail(code="compaction_failed", message=message, continuation=_on(at, "completed"))
    summary = _held("summary", operation, covers=operation.request["upto"])
    append = Append(agent_task_id=runtime.task.agent_task_id, after=runtime.context.upto, entries=(summary,))
    changes = (append, Consume(operation_id=operation.operation_id))
    return Progress(continuation=_on(at, "prepare_model"), changes=changes)


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
    accepted = (*_steering_in(operation, runtime), _held("decision", operation))
    consume = ConsumeTicket(operation_id=operation.operation_id)
    key, batch = f"accept-model:{operation.operation_id}", operation.operation_id
    calls = asked_for(answer)
    if not calls:
        return _validate_output(answer, operation, at, runtime, accepted, consume, key)
    append = Append(agent_task_id=runtime.task.agent_task_id, after=runtime.context.upto, entries=accepted)
    cut_off = is_truncated(answer)
    members = tuple(member_of(each, number, at, runtime, cut_off) for number, each in enumerate(calls))
    if too_many := beyond_limit(members, runtime):
        members = tuple(rejected(each, too_many) for each in members)
    shown = asked_about(members, runtime)
    freeze = FreezeBatch(
        operation_id=batch,
        agent_task_id=runtime.task.agent_task_id,
        members=members,
        asked=() if shown is None else tuple(shown["tool_call_ids"]),
        **_admission(runtime),
    )
    if too_many:  # before any of them is made: nothing is stopped half-way
        return Fail(**too_many, continuation=_on(at, "completed"), changes=(append, consume, freeze))
    if shown is not None:
        ask = OpenRequest(agent_task_id=runtime.task.agent_task_id, kind="approval", subject=batch, payload=shown)
        return Wait(
            continuation=_on(at, "wait_approval", batch=batch, request=ask.request_id),
            condition=conditions.answered(ask.request_id),
            changes=(append, consume, freeze, ask),
            key=key,
        )
    return Wait(
        continuation=_on(at, "wait_batch", batch=batch),
        condition=conditions.batch_settled(batch),
        changes=(append, consume, freeze),
        key=key,
    )


def _admission(runtime: Runtime) -> dict[str, bool]:
    """How the members of a batch begin."""
    return {
        "serial": not runtime.spec["parallel_tools"],
        "dispatch": not runtime.spec["hooks"]["before_tool"],
    }


def _wait_approval(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """What a person has decided on a decision's calls: those that they let pass begin."""
    request, batch = runtime.request, runtime.batch
    assert request is not None, "the continuation names it, and it was opened with that"
    assert batch is not None, "and it was frozen then"
    if request.state is not RequestState.ANSWERED:
        return Wait(continuation=at, condition=conditions.answered(request.request_id))
    decide = DecideBatch(
        operation_id=batch.batch_id,
        agent_task_id=runtime.task.agent_task_id,
        decided=tuple(decided(batch.members, request.payload, request.answer, runtime)),
        **_admission(runtime),
    )
    return Wait(
        continuation=_on({name: each for name, each in at.items() if name != "request"}, "wait_batch"),
        condition=conditions.batch_settled(batch.batch_id),
        changes=(decide,),
        key=f"decide-batch:{batch.batch_id}",
    )


def _wait_batch(input: Any, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """All results, in their order, once every slot has one."""
    batch = runtime.batch
    assert batch is not None, "the continuation names it, and it was frozen with that"
    if batch.state is BatchState.OPEN:
        return Wait(continuation=at, condition=conditions.batch_settled(batch.batch_id))
    return _consume_results(batch, at, runtime)


def _consume_results(batch: BatchRow, at: dict[str, Any], runtime: Runtime) -> Outcome:
    """The results, in the decision's order, become part of the history; once."""
    entries, consume = result_entries(batch), ConsumeBatch(operation_id=batch.batch_id)
    if _are_the_answer(batch.members, runtime) or any(map(_ends, batch.members)):
        append = Append(agent_task_id=runtime.task.agent_task_id, after=runtime.context.upto, entries=entries)
        last = revived([batch.members[-1].result or {}])[0]
        return Complete(output=last.content, continuation=_on(at, "completed"), changes=(append, consume))
    return _next_model(_round_over(at), runtime, entries, consume, key=f"consume-batch:{batch.batch_id}")


def _are_the_answer(members: tuple[Member, ...], runtime: Runtime) -> bool:
    """Whether the tools' results are given back as they are: all of them are of tools that say so, and none failed."""
    tools = runtime.spec["tools"]
    return all(_has_worked(each) and tools[each.name]["return_direct"] for each in members)


def _ends(member: Member) -> bool:
    """Whether the agent is over with this call: it leads elsewhere."""
    return bool(((member.outcome or {}).get("value") or {}).get("ends"))


def _has_worked(member: Member) -> bool:
    """Whether its tool has answered; one that says of itself that it has failed has not."""
    if member.outcome is None or "value" not in member.outcome:
        return False
    return bool(member.outcome["value"]["message"]["data"].get("status") != "error")


def _validate_output(
    answer: AIMessage,
    operation: Operation,
    at: dict[str, Any],
    runtime: Runtime,
    accepted: tuple[dict[str, Any], ...],
    consume: ConsumeTicket,
    key: str,
) -> Outcome:
    """The answer, if it is what the spec says it is to be; else what is wrong with it is fed back (rule E16)."""
    text, schema = answer_text(answer), runtime.spec["output_schema"]
    over = Consume(operation_id=operation.operation_id)
    value, diagnostics = text, list[str]()
    if schema is not None:
        value, diagnostics = checked_answer(text, schema, None if runtime.live is None else runtime.live.output_type)
    if not diagnostics:
        append = Append(agent_task_id=runtime.task.agent_task_id, after=runtime.context.upto, entries=accepted)
        return Complete(output=value, continuation=_on(at, "completed"), changes=(append, consume, over))
    message = text_message(feedback(diagnostics))
    told = entry("feedback", message)
    return _next_model(_round_over(at), runtime, (*accepted, told), consume, over, key=key)


_PHASES = {
    "prepare_context": _prepare_context,
    "prepare_model": _prepare_model,
    "compact_context": _compact_context,
    "call_model": _call_model,
    "wait_approval": _wait_approval,
    "wait_batch": _wait_batch,
}

_ROUND = ("purpose", "batch", "request")
"""What a continuation names of one round."""


def _on(at: Mapping[str, Any], phase: str, **more: Any) -> dict[str, Any]:
    """The continuation of another phase."""
    return {**at, "phase": phase, **more}


def _round_over(at: Mapping[str, Any]) -> dict[str, Any]:
    """The same continuation, with nothing of its round: another one begins."""
    return {name: value for name, value in at.items() if name not in _ROUND}


def _waiting(at: dict[str, Any], purpose: str, *changes: Change, key: str | None = None) -> Wait:
    return Wait(continuation=at, condition=conditions.operations_ended(purpose), changes=changes, key=key)


def _answer_in(operation: Operation) -> AIMessage:
    [answer] = revived([operation.outcome["value"]["message"]])
    assert isinstance(answer, AIMessage), "a model's answer was looked at before it was stored"
    return answer


def _held(kind: str, operation: Operation, **more: Any) -> dict[str, Any]:
    """A message that an operation holds, as its context names it."""
    return entry(kind, operation.outcome["value"]["message"], operation_id=operation.operation_id, **more)


def _steering_in(operation: Operation, runtime: Runtime) -> list[dict[str, Any]]:
    """What of the inbox was in a frozen request: it is part of the history that the answer belongs to."""
    sent = set(operation.request["steering"])
    told = [each.message for each in runtime.steering if each.entry in sent and each.claimed]
    return [entry("steering", each) for each in told]


def _told(operation: Operation) -> str:
    error = operation.outcome["error"]
    return f"{error['code']}: {error['message']}"
