"""Questions: what an agent node, or a capability node, asks a person, and how the answer gets there (rules A2, A3).

A question is the payload of a LangGraph interrupt: what is to be approved, or a call of which nobody knows whether it
did anything, in LangChain's human-in-the-loop shape. It has a `request_id`, and is answered for that one only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from langgraph_ext.engine import OperationRecord, RequestRecord
from langgraph_ext.errors import ConflictError, InvalidArgument, LangGraphExtError
from langgraph_ext.ledger import RunLedger

__all__ = [
    "Doubted",
    "Question",
    "again",
    "asked_of_doubt",
    "doubt_of",
    "drain",
    "of_doubt",
    "of_request",
    "read_answer",
    "was_shown",
]

Question = dict[str, Any]

_PAGE = 200
"""Questions that are read at a time."""

_DECIDES = ("approve", "reject", "respond")


class Doubted(NamedTuple):
    """What a person says of a call in doubt."""

    happened: bool | None
    """None: nobody will find out, and it is not called again."""
    result: Any = None


def of_request(request: RequestRecord, agent: str) -> Question:
    """The question that a request of an agent run is."""
    return {
        "kind": request.kind,
        "request_id": request.request_id,
        "agent": agent,
        "agent_run_id": request.agent_run_id,
        **request.payload,
    }


def of_doubt(operation: OperationRecord, agent: str) -> Question:
    """The question what came of a call of which nobody knows; if it is rejected, the model is told."""
    return {
        "kind": "doubt",
        "request_id": doubt_of(operation),
        "agent": agent,
        "agent_run_id": operation.agent_run_id,
        "operation_id": operation.operation_id,
        **asked_of_doubt(operation.name, operation.request["args"], operation.request["id"], operation.idempotency_key),
    }


def asked_of_doubt(name: str, args: Any, call_id: str, key: str) -> Question:
    """What is asked of a call of which nobody knows.

    `respond`: it was done, and the message is what it would have returned. `approve`: it was not, or may be done
    again: it is called again, with the same idempotency key. `reject`: nobody knows; it is not called again.
    """
    told = (
        f"Nobody knows whether this call of {name} was made: it was interrupted. Find out. Respond with its "
        "result if it was; approve to call it again, with the same idempotency key; reject to leave it at that."
    )
    return {
        "idempotency_key": key,
        "action_requests": [{"name": name, "args": args, "description": told}],
        "review_configs": [{"action_name": name, "allowed_decisions": list(_DECIDES)}],
        "tool_call_ids": [call_id],
    }


def doubt_of(operation: OperationRecord) -> str:
    """By what a doubt is named: an operation may come to be in doubt several times."""
    return f"doubt:{operation.operation_id}:{len(operation.calls)}"


def read_answer(question: Question, value: Any, was_shown: Callable[[], bool]) -> Any:
    """What an answer says, if it is one to this question.

    Args:
        question: What is asked.
        value: What the graph was resumed with.
        was_shown: Whether anybody has seen the question. What does not name its question was said before that, then:
            to another one.

    Returns:
        Of a request the answer, without the name of the request; of a doubt what a person says of it.

    Raises:
        InvalidArgument: It names another request, or is none (`answer_invalid`).
    """
    named = value.get("request_id") if isinstance(value, Mapping) else None
    if named is not None and named != question["request_id"]:
        raise InvalidArgument(
            f"nothing was decided: the answer is for request {named!r}, and this is {question['request_id']!r}",
            code="answer_invalid",
        )
    if named is None and not was_shown():
        raise InvalidArgument(
            "nothing was decided: the answer names no request_id, and it came before this question was shown",
            code="answer_invalid",
        )
    if question["kind"] != "doubt":
        return {name: part for name, part in value.items() if name != "request_id"} if named is not None else value
    decisions = value.get("decisions") if isinstance(value, Mapping) else None
    one = decisions[0] if isinstance(decisions, list | tuple) and len(decisions) == 1 else None
    decision = one if isinstance(one, Mapping) else {}
    kind = decision.get("type")
    if kind not in _DECIDES or (kind == "respond" and not isinstance(decision.get("message"), str)):
        raise InvalidArgument(
            'nothing was decided: answer with {"decisions": [{"type": "respond", "message": …}]} if it was done, '
            '{"type": "approve"} to call it again, or {"type": "reject"}',
            code="answer_invalid",
        )
    if kind == "respond":
        return Doubted(True, decision["message"])
    return Doubted(False) if kind == "approve" else Doubted(None)


def was_shown(ledger: RunLedger, thread_id: str, run_id: str | None, question: Question) -> bool:
    """Whether a question has come to the record of the graph's before.

    Args:
        ledger: The graph's.
        thread_id: Its thread.
        run_id: Its run, if that is known.
        question: What is asked.
    """
    after: str | None = None
    while True:
        page = ledger.interrupts(thread_id=thread_id, run_id=run_id, kind=question["kind"], limit=_PAGE, after=after)
        if any(
            isinstance(each.value, Mapping) and each.value.get("request_id") == question["request_id"] for each in page
        ):
            return True
        if len(page) < _PAGE:
            return False
        after = page[-1].interrupt_id


def drain(question: Question) -> None:
    """Take what somebody has resumed with, and do nothing with it: its question was answered before (rule A2)."""
    try:
        interrupt(question)
    except GraphInterrupt:
        return


def again(question: Question, error: LangGraphExtError) -> Question | None:
    """What is asked again, with what was wrong with the answer; None if somebody else has answered meanwhile."""
    if isinstance(error, ConflictError):
        return None
    return {**question, "error": str(error.args[0])}
