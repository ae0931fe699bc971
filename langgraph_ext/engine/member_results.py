"""Member results: what a model is told of one tool call of its decision, once that is settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph_ext.database import Row
from langgraph_ext.engine.messages import result_message, with_note
from langgraph_ext.engine.rows import decoded

__all__ = ["member_result"]

_EDITED = (
    "A person has changed the arguments of this call before it was made, which was intended; the result is that of the "
    "changed call. Do not make the original one."
)


def member_result(row: Row, outcome: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the model is told, a plain message.

    Args:
        row: Of the member, with `call_id`, `name`, `result` and `decision`.
        outcome: Of its operation; None if it has none.
    """
    told: dict[str, Any] | None = decoded(row["result"])
    if told is not None:  # nothing was called
        return told
    message = result_message(row["call_id"], row["name"], outcome)
    decision = decoded(row["decision"]) or {}
    return with_note(message, _EDITED) if decision.get("type") == "edit" else message
