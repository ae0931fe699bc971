"""Contexts: the private history of a role, one row a message, as revisions (rules E13 and E17).

A context only grows; its revision is the number of its rows. It is its first task's, and has its id; a task of a later
agent run may go on with it. A summary stands for all rows before some point, which
stay. What a model is sent is a window: the newest summary, and the rows behind what that covers. Rows name the
operation whose outcome holds a message instead of holding it once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.engine.applying import Applying, OfTask, moved, task_of
from langgraph_ext.engine.member_results import member_result
from langgraph_ext.engine.messages import said_of, steering_message, summary_message, tokens_of
from langgraph_ext.engine.rows import AgentTask, Operation, decoded, encoded
from langgraph_ext.ledger.encoded import Serde, value_of

__all__ = [
    "EMPTY",
    "Append",
    "Head",
    "Name",
    "Plain",
    "Steered",
    "append",
    "count_of",
    "end_of",
    "entry",
    "head_of",
    "messages_of",
    "names_of",
    "sizes_of",
    "steered",
    "stored_messages",
]

Plain = dict[str, Any]
"""A message as it is stored."""

KINDS = ("input", "steering", "decision", "result", "feedback", "summary")
"""Of messages."""


class Head(NamedTuple):
    """Where a context stands."""

    upto: int
    """Its revision: the last row."""
    covers: int
    """Rows up to this one are in the summary; 0: there is none."""
    summary: int | None
    """The row of the newest summary."""
    tokens: int
    """Of the window, estimated."""

    def grown(self, rows: int, tokens: int) -> Head:
        """Where it stands with so many more."""
        return self._replace(upto=self.upto + rows, tokens=self.tokens + tokens)


EMPTY = Head(0, 0, None, 0)


class Name(NamedTuple):
    """How a message of a context is known again."""

    seq: int
    kind: str
    message_id: str
    said: str | None
    """messages.said_of."""


class Steered(NamedTuple):
    """A message from the inbox."""

    entry: int
    message: dict[str, Any]
    """Plain."""
    claimed: bool
    """Whether an operation's frozen request holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append(OfTask):
    """Messages are added to an agent task's context, in their order."""

    after: int
    """The revision that they follow."""
    entries: tuple[dict[str, Any], ...]
    """As `entry` makes them."""

    def apply(self, at: Applying) -> None:
        """Add them.

        Raises:
            ConflictError: The context is at another revision (`revision_conflict`).
        """
        context_id = task_of(at.tx, self.agent_task_id).context_id
        last = at.tx.maybe("agent_message_last", context_id=context_id)
        seq = 0 if last is None else last["seq"]
        moved(int(seq == self.after), "context", context_id, f"at revision {seq}", "continued")
        _append(at, context_id, self.entries, last)


def entry(kind: str, message: Plain, **held: Any) -> dict[str, Any]:
    """A message as it is added to a context.

    Args:
        kind: One of `KINDS`.
        message: Plain.
        held: Where it is, if a row of its own does not hold it: the `operation_id` of its outcome; of a result its
            decision's, with `ordinal`. Of a summary also `covers`.
    """
    named = {"message_id": message["data"].get("id"), "said": said_of(message)}
    own = {} if "operation_id" in held else {"message": message}
    return {"kind": kind, "tokens": tokens_of(message), **named, **own, **held}


def append(at: Applying, agent_task_id: str, entries: Iterable[Mapping[str, Any]]) -> None:
    """Add messages to a context, wherever it stands."""
    context_id = task_of(at.tx, agent_task_id).context_id
    _append(at, context_id, entries, at.tx.maybe("agent_message_last", context_id=context_id))


def _append(at: Applying, context_id: str, entries: Iterable[Mapping[str, Any]], last: Row | None) -> None:
    seq, total = (0, 0) if last is None else (last["seq"], last["total"])
    for entry in entries:
        seq += 1
        total += 0 if entry["kind"] == "summary" else entry["tokens"]
        message = entry.get("message")
        at.tx.run(
            "agent_message_append",
            context_id=context_id,
            seq=seq,
            root_id=at.root_id,
            kind=entry["kind"],
            operation_id=entry.get("operation_id"),
            ordinal=entry.get("ordinal"),
            message=None if message is None else encoded(message, "message"),
            message_id=entry.get("message_id"),
            said=entry.get("said"),
            tokens=entry["tokens"],
            total=total,
            covers=entry.get("covers"),
            now_us=at.now_us,
        )
    at.result["context"] = seq


def head_of(tx: Tx, context_id: str, *, summaries: bool = True) -> Head:
    """Where a context stands; `summaries`: whether it may have any."""
    last = tx.maybe("agent_message_last", context_id=context_id)
    if last is None:
        return EMPTY
    summary = tx.maybe("agent_message_summary", context_id=context_id) if summaries else None
    if summary is None:
        return Head(last["seq"], 0, None, last["total"])
    covered = tx.one("agent_message_total", context_id=context_id, seq=summary["covers"])["total"]
    return Head(last["seq"], summary["covers"], summary["seq"], last["total"] - covered + summary["tokens"])


def sizes_of(tx: Tx, context_id: str, head: Head) -> list[tuple[int, str, int]]:
    """Seq, kind and tokens of the rows of a window, without its summary."""
    rows = tx.all("agent_message_sizes", context_id=context_id, covers=head.covers)
    return [(row["seq"], row["kind"], row["tokens"]) for row in rows]


def messages_of(tx: Tx, operation: Operation, serde: Serde | None, *, after: int | None = None) -> list[dict[str, Any]]:
    """The messages that an operation's request names: its window, and what of the inbox goes with it; plain.

    Args:
        tx: The transaction.
        operation: Its request holds `task` (the context's), `covers`, `summary`, `upto` and `steering`, as react.py
            writes it.
        serde: Decodes what of the inbox is no JSON.
        after: Only those behind this row: what is before it is known. None: from the window's beginning.
    """
    request = operation.request
    context_id, summary = request["task"], request["summary"]
    found = []
    if summary is not None and after is None:
        found += stored_messages(tx, context_id, after=summary - 1, upto=summary)
    behind = request["covers"] if after is None else after
    window = stored_messages(tx, context_id, after=behind, upto=request["upto"])
    found += [each for each in window if each[1] != "summary"]
    messages = [message for _, _, message, _ in found]
    if entries := request.get("steering"):
        run = tx.one("agent_run_get", agent_run_id=operation.agent_run_id)["run"]
        told = steered(tx, run, operation.operation_id, serde)
        messages += [each.message for each in told if each.entry in entries]
    return messages


def steered(tx: Tx, run: int, operation_id: str | None, serde: Serde | None) -> list[Steered]:
    """What the inbox holds that nobody has claimed, and what this operation's request holds of it."""
    rows = tx.all("agent_steering_open", run=run, operation_id=operation_id or "")
    return [_steered(row, serde) for row in rows]


def end_of(tx: Tx, task: AgentTask) -> int | None:
    """The last row of a task's part of its context; None if no later task goes on with that."""
    behind = tx.maybe("agent_task_behind", context_id=task.context_id, agent_task_id=task.agent_task_id)
    return None if behind is None else int(behind["context_from"])


def count_of(tx: Tx, context_id: str, *, upto: int) -> int:
    """How many messages a context has up to a row, without summaries."""
    return int(tx.one("agent_message_count", context_id=context_id, upto=upto)["n"])


def names_of(tx: Tx, context_id: str, *, after: int = 0, upto: int = GREATEST) -> list[Name]:
    """How the messages of a context are known again, without summaries, in their order."""
    rows = tx.all("agent_message_names", context_id=context_id, after=after, upto=upto)
    if any(row["said"] is None for row in rows):  # from before they had names
        stored = stored_messages(tx, context_id, after=after, upto=upto)
        return [
            Name(seq, kind, each["data"]["id"], said_of(each)) for seq, kind, each, _ in stored if kind != "summary"
        ]
    return [Name(row["seq"], row["kind"], row["message_id"] or _own_id(context_id, row), row["said"]) for row in rows]


def stored_messages(
    tx: Tx, context_id: str, *, after: int = 0, upto: int = GREATEST, size: int = GREATEST
) -> list[tuple[int, str, dict[str, Any], int]]:
    """Rows of a context in their order: seq, kind, the message (plain), and when it was stored (µs)."""
    rows = tx.all("agent_messages", context_id=context_id, after=after, upto=upto, size=size)
    return [(row["seq"], row["kind"], _message_of(row, context_id), row["created_us"]) for row in rows]


def _message_of(row: Row, context_id: str) -> dict[str, Any]:
    if row["message"] is not None:
        message: dict[str, Any] = decoded(row["message"])
    elif row["ordinal"] is not None:
        message = member_result(row, decoded(row["tool_outcome"]))
    else:
        message = decoded(row["outcome"])["value"]["message"]
    if row["kind"] == "summary":
        message = summary_message(message)
    if message["data"].get("id") is None:
        message["data"]["id"] = _own_id(context_id, row)
    return message


def _own_id(context_id: str, row: Row) -> str:
    """Of a message that has none: the same each time it is read."""
    return f"{context_id}:{row['seq']}"


def _steered(row: Row, serde: Serde | None) -> Steered:
    try:
        value = value_of(row["value_type"], row["value"], serde)
    except Exception as error:  # noqa: BLE001 - a serde's own; a run is not held up by what somebody has told it
        value = f"(a message that cannot be read here: {type(error).__name__})"
    return Steered(row["entry"], steering_message(value), row["attempt_id"] is not None)
