"""What must hold of the batches and histories of a ReAct run: after each commit, and when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.contexts import stored_messages
from langgraph_ext.engine.messages import revived

__all__ = ["Histories", "check_transcript"]

_MEMBERS = """
SELECT member.*, batch.agent_task_id, batch.serial, batch.state AS batch_state, batch.size, batch.settled,
    called.state AS called_state, called.on_unknown AS called_unknown, called.consumed_us AS called_consumed_us
FROM agent_batch AS batch JOIN agent_member AS member ON member.batch_id = batch.batch_id
LEFT JOIN agent_operation AS called ON called.operation_id = member.operation_id
WHERE batch.root_id = :root_id ORDER BY batch.batch_id, member.ordinal
"""

_MESSAGES = "SELECT * FROM agent_message WHERE root_id = :root_id ORDER BY agent_task_id, seq"

Slots = dict[str, list[Row]]
Rows = dict[tuple[str, int], tuple[Any, ...]]


class Histories:
    """Looks at the trees of ReAct runs, and remembers what it has seen.

    Args:
        say: Is told what does not hold.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._settled: dict[str, Rows] = {}
        self._messages: dict[str, Rows] = {}

    def see(self, tx: Tx, root_id: str, key: str) -> None:
        """Look at a tree behind a commit."""
        slots: Slots = {}
        for row in _rows(tx, _MEMBERS, root_id):
            slots.setdefault(row["batch_id"], []).append(row)
        messages = _rows(tx, _MESSAGES, root_id)
        settled = {
            (each["batch_id"], each["ordinal"]): (each["call_id"], each["operation_id"], each["result"])
            for batch in slots.values()
            for each in batch
            if each["state"] == "settled"
        }
        for found in (
            *_lost("slot", self._settled.get(root_id, {}), settled),
            *_lost("message", self._messages.get(root_id, {}), held := _held(messages)),
            *_of_batches(slots),
            *_of_messages(messages),
            *_of_results(slots, messages),
        ):
            self._say(f"{key}: {found}")
        self._settled[root_id], self._messages[root_id] = settled, held


def check_transcript(tx: Tx, root_id: str) -> Iterator[str]:
    """What is wrong with the histories of a run that has ended: each call has one result, behind it and in order."""
    for task in tx.all("agent_tasks_of_tree", root_id=root_id):
        owed: list[str] = []
        for seq, kind, plain, _ in stored_messages(tx, task["agent_task_id"]):
            [message] = revived([plain])
            if isinstance(message, ToolMessage):
                if not owed or message.tool_call_id != owed.pop(0):
                    yield f"message {seq} is a result of {message.tool_call_id!r}, which was not next"
            elif owed and kind != "summary":
                yield f"message {seq} ({kind}) stands before the results of {owed}"
            if isinstance(message, AIMessage):
                owed = [str(each["id"]) for each in (*message.tool_calls, *message.invalid_tool_calls)]
        if owed:
            yield f"the history ends without the results of {owed}"
    open_ones = {(each["batch_id"], each["state"]) for each in _rows(tx, _MEMBERS, root_id)}
    for batch_id, state in sorted(open_ones):
        if state != "settled":
            yield f"a slot of batch {batch_id} is {state}"


def _of_batches(slots: Slots) -> Iterator[str]:
    """Slots are counted, and where they are serial, filled one behind the other."""
    for batch_id, members in slots.items():
        first = members[0]
        if [each["ordinal"] for each in members] != list(range(first["size"])):
            yield f"batch {batch_id} has slots {[each['ordinal'] for each in members]}, and is of {first['size']}"
        if len({each["call_id"] for each in members}) != len(members):
            yield f"two slots of batch {batch_id} are of one call"
        settled = [each for each in members if each["state"] == "settled"]
        if len(settled) != first["settled"] or (first["batch_state"] == "open") != (len(settled) < len(members)):
            yield f"batch {batch_id} is {first['batch_state']}, with {first['settled']} of {len(settled)} slots"
        admitted = [each["ordinal"] for each in members if each["state"] == "admitted"]
        if first["serial"] and (len(admitted) > 1 or any(each > admitted[0] for each in _begun(settled) if admitted)):
            yield f"slots {admitted} of the serial batch {batch_id} are admitted beside {_begun(settled)}"
        for each in settled:
            if each["operation_id"] and each["called_state"] not in ("completed", "cancelled", "unknown"):
                yield f"slot {each['ordinal']} of batch {batch_id} is settled, its call {each['called_state']}"


def _begun(settled: list[Row]) -> list[int]:
    """Those of slots whose calls were begun."""
    return [each["ordinal"] for each in settled if each["operation_id"] is not None]


def _of_messages(messages: list[Row]) -> Iterator[str]:
    """Revisions follow each other, and sizes add up."""
    seq, total, task_id = 0, 0, None
    for each in messages:
        if each["agent_task_id"] != task_id:
            seq, total, task_id = 0, 0, each["agent_task_id"]
        seq, total = seq + 1, total + (0 if each["kind"] == "summary" else each["tokens"])
        if (each["seq"], each["total"]) != (seq, total):
            yield f"message {each['seq']} of {task_id} has total {each['total']}; expected {seq} with {total}"


def _of_results(slots: Slots, messages: list[Row]) -> Iterator[str]:
    """A batch's slots come into the history together and in order, when it is consumed, and never again."""
    found: dict[str, list[tuple[int, int]]] = {}
    for each in messages:
        if each["kind"] == "result":
            found.setdefault(each["operation_id"], []).append((each["seq"], each["ordinal"]))
    for batch_id, members in slots.items():
        results = found.pop(batch_id, [])
        wanted = list(range(len(members))) if members[0]["batch_state"] == "consumed" else []
        if [ordinal for _, ordinal in results] != wanted:
            yield f"batch {batch_id} is {members[0]['batch_state']}, and has results {results} in the history"
        if results and results[-1][0] - results[0][0] != len(results) - 1:
            yield f"the results of batch {batch_id} do not stand together: {results}"
        for each in members:
            if wanted and each["operation_id"] is not None and each["called_consumed_us"] is None:
                yield f"batch {batch_id} is consumed, and its call {each['operation_id']} is not"
    for batch_id in found:
        yield f"there are results of {batch_id}, which is no batch"


def _lost(what: str, before: Rows, now: Rows) -> Iterator[str]:
    """What was seen before is there, and as it was."""
    for key, row in before.items():
        if now.get(key) != row:
            yield f"{what} {key} was {row!r} and is {now.get(key)!r}"


def _held(messages: list[Row]) -> Rows:
    return {(each["agent_task_id"], each["seq"]): tuple(each) for each in messages}  # type: ignore[call-overload]


def _rows(tx: Tx, query: str, root_id: str) -> list[Row]:
    found: list[Row] = tx._execute(query, {"root_id": root_id}).fetchall()
    return found
