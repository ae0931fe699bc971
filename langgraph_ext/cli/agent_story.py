"""An agent run as a tree: its tasks, what they called, the slots of each decision; its transcript, and its doubts."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langgraph_ext.cli.plain import iso
from langgraph_ext.ledger.agent_threads import is_of_visit
from langgraph_ext.render import Node, duration, first_line

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langgraph_ext.engine.records import (
        AgentRunRecord,
        AgentTaskRecord,
        OperationRecord,
        RequestRecord,
        SlotRecord,
        TicketRecord,
        TranscriptEntry,
    )

__all__ = ["AgentStory", "Shown", "agent_node", "doubt_node", "operation_node", "transcript_node"]

Shown = Callable[[object], str]
"""How a payload is shown; empty text hides it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStory:
    """What there is to tell of an agent run."""

    run: AgentRunRecord
    tasks: Sequence[AgentTaskRecord]
    operations: Sequence[OperationRecord]
    slots: Sequence[SlotRecord]
    tickets: Sequence[TicketRecord]
    doubts: Sequence[OperationRecord]
    requests: Sequence[RequestRecord]
    """What it has asked people, the oldest first."""
    transcript: Sequence[TranscriptEntry] | None
    """None: it was not asked for."""


def agent_node(story: AgentStory, *, now: datetime, shown: Shown) -> Node:
    """An agent run with all that it has done.

    Args:
        story: What there is to tell.
        now: For how long one that goes on has been going on.
        shown: How results are shown.
    """
    run = story.run
    notes = (
        duration((run.ended_at or max(now, run.started_at)) - run.started_at),
        f"started {iso(run.started_at, digits=0)}",
        f"key {run.key}" if run.key is not None and not is_of_visit(run.key) else "",
        _error(run.reason, run.message),
        "" if run.paused_at is None else f"paused since {iso(run.paused_at, digits=0)}",
        f"{len(story.doubts)} call{'s' if len(story.doubts) > 1 else ''} in doubt" if story.doubts else "",
        *_used(story),
    )
    teller = _Teller(story, shown)
    return Node(
        label=f"agent run {run.agent_run_id}",
        status=run.status,
        notes=notes,
        children=(*map(teller.task, story.tasks), *(_request_node(each, shown) for each in story.requests)),
    )


def _request_node(request: RequestRecord, shown: Shown) -> Node:
    """What a person is asked, or was; and what they have decided."""
    asked = [{"name": each["name"], "args": each["args"]} for each in request.payload["action_requests"]]
    decided = [each["type"] for each in (request.answer or {}).get("decisions", ())]
    return Node(
        label=f"request {request.kind}",
        status=request.state,
        notes=(f"id {request.request_id}", ", ".join(decided) or shown(asked)),
    )


def _used(story: AgentStory) -> Iterator[str]:
    run = story.run
    reserved = f" (+{run.loops_reserved} reserved)" if run.loops_reserved else ""
    yield f"loops {run.loops_used}/{run.loop_limit}{reserved}"
    counts = Counter(str(each.state) for each in story.tickets)
    yield f"tickets {', '.join(f'{count} {state}' for state, count in counts.items())}" if counts else ""
    yield f"model calls {run.model_calls}"
    yield f"tool calls {run.tool_calls}"
    yield _tokens(run.tokens_in, run.tokens_out, story.operations)


def _tokens(tokens_in: int, tokens_out: int, operations: Iterable[OperationRecord]) -> str:
    about = "about " if any(call.tokens_estimated for each in operations for call in each.calls) else ""
    return f"tokens {about}{tokens_in} in, {tokens_out} out" if tokens_in or tokens_out else ""


def _error(code: str | None, message: str | None) -> str:
    if code is None:
        return ""
    return f"{code}: {first_line(message)}" if message and message.strip() else code


class _Teller:
    """Says of every task what is to be read."""

    def __init__(self, story: AgentStory, shown: Shown) -> None:
        self._shown = shown
        self._doubts = {each.operation_id for each in story.doubts}
        self._operations = {each.operation_id: each for each in story.operations}
        self._of_task: dict[str, list[OperationRecord]] = defaultdict(list)
        self._of_decision: dict[str, list[SlotRecord]] = defaultdict(list)
        for slot in story.slots:
            self._of_decision[slot.batch_id].append(slot)
        in_slots = {slot.operation_id for slot in story.slots}
        for each in story.operations:
            if each.operation_id not in in_slots:
                self._of_task[each.agent_task_id].append(each)

    def task(self, task: AgentTaskRecord) -> Node:
        """A task, and what it has called."""
        error: Mapping[str, str] = task.error or {}
        return Node(
            label=task.role,
            status=task.state,
            notes=(task.phase or "", f"id {task.agent_task_id}", _error(error.get("code"), error.get("message"))),
            children=tuple(map(self._operation, self._of_task[task.agent_task_id])),
        )

    def _operation(self, operation: OperationRecord) -> Node:
        """A call that stands in no slot; a decision with its slots."""
        slots = self._of_decision[operation.operation_id]
        in_doubt = operation.operation_id in self._doubts
        return operation_node(operation, in_doubt=in_doubt, children=tuple(map(self._slot, slots)))

    def _slot(self, slot: SlotRecord) -> Node:
        operation = self._operations.get(slot.operation_id or "")  # None, too, if it has begun since they were read
        return Node(
            label=f"slot {slot.call_id} {slot.name}",
            status=slot.state,
            notes=(
                "" if operation is None or slot.state == "settled" else str(operation.state),
                "in doubt" if slot.operation_id in self._doubts else "",
                "rejected" if slot.operation_id is None and slot.state == "settled" else "",
                "" if slot.operation_id is None else f"id {slot.operation_id}",
                _calls(operation),
                "" if slot.result is None else self._shown(_said_in(slot.result)),
            ),
        )


def operation_node(operation: OperationRecord, *, in_doubt: bool = False, children: tuple[Node, ...] = ()) -> Node:
    """One logical call, where it stands, and what went wrong."""
    outcome = operation.outcome if isinstance(operation.outcome, Mapping) else {}
    error = outcome.get("error") or {}
    tokens_in = sum(call.tokens_in or 0 for call in operation.calls)
    tokens_out = sum(call.tokens_out or 0 for call in operation.calls)
    return Node(
        label=f"{operation.kind} {operation.name if operation.kind == 'tool' else operation.purpose}",
        status=operation.state,
        notes=(
            "in doubt" if in_doubt else "",
            f"id {operation.operation_id}",
            _calls(operation),
            _tokens(tokens_in, tokens_out, [operation]),
            _error(error.get("code"), error.get("message")),
        ),
        children=children,
    )


def _calls(operation: OperationRecord | None) -> str:
    return f"{len(operation.calls)} calls" if operation is not None and len(operation.calls) > 1 else ""


def _said_in(message: BaseMessage) -> object:
    """The text of a message; what it holds, if that is no text."""
    return str(message.text) or message.content


def doubt_node(run_id: str, operation: OperationRecord, database: str | None) -> Node:
    """A call in doubt, and what to do about it.

    Args:
        run_id: Its agent run.
        operation: The call.
        database: The database that was named by an option, which the next command needs as well.
    """
    begun = max((call.started_at for call in operation.calls), default=None)
    asked = operation.on_unknown == "reconcile"
    option = [] if database is None else ["--db", database]
    command = ["langgraph-ext", "resolve-operation", run_id, operation.operation_id]
    return Node(
        label=f"in doubt: {operation.name}",
        notes=(
            f"id {operation.operation_id}",
            "" if begun is None else f"called {iso(begun, digits=0)}",
            "its function is asked when the run is driven; or look outside" if asked else "look outside",
        ),
        children=(
            Node(label=f"if it happened: {shlex.join([*command, *option])} --result JSON"),
            Node(label=f"if not, and it is to be called again: {shlex.join([*command, *option])} --did-not-happen"),
        ),
    )


def transcript_node(entries: Sequence[TranscriptEntry], shown: Shown) -> Node:
    """The history of the first role, message by message."""
    children = tuple(
        Node(label=f"{entry.seq} {entry.kind}", notes=tuple(_notes(entry.message, shown))) for entry in entries
    )
    return Node(label="transcript", children=children)


def _notes(message: BaseMessage, shown: Shown) -> Iterator[str]:
    calls: list[dict[str, Any]] = [
        each for name in ("tool_calls", "invalid_tool_calls") for each in getattr(message, name, ())
    ]
    if message.type == "tool":
        yield str(message.name or "")
    if message.content or not calls:
        yield shown(_said_in(message))
    for each in calls:
        yield f"calls {each['name']} {shown(each['args'])}".rstrip()
