"""Sealed columns: what of the tables is a payload, and which row's it is.

Ids, names of nodes and channels, states, times and counts stay plain: by them rows are found and counted. A query says
in a comment whose columns it gives or takes, and a transaction with keys (sealed_tx.py) seals and opens them:

    -- sealed: effect
    -- sealed: agent_message (agent_task_id = context_id)                      a key column by another name
    -- sealed: agent_operation.outcome as tool_outcome (operation_id = tool)   a column by another name

What checkpoints and tasks' writes hold is laid out, and sealed, by the saver (saver/sealing.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from langgraph_ext.database.sealing import name_place

__all__ = ["TABLES", "Form", "Named", "Table", "named_in"]

Form = Literal["blob", "text", "metadata", "details"]
"""How a column is sealed: as bytes, as text, or with some of it left plain (sealed_json.py)."""


class Table(NamedTuple):
    """Of one table, the columns that name a row, and those that are sealed."""

    key: tuple[str, ...]
    columns: Mapping[str, Form]


def _table(key: str, *, blob: str = "", text: str = "", **others: Form) -> Table:
    columns: dict[str, Form] = {**dict.fromkeys(blob.split(), "blob"), **dict.fromkeys(text.split(), "text"), **others}
    return Table(tuple(key.split()), columns)


TABLES: Mapping[str, Table] = {
    "checkpoint": _table("thread_id checkpoint_ns checkpoint_id", metadata="metadata"),
    "event": _table("thread_id checkpoint_ns checkpoint_id event stored_us", details="details"),
    "run": _table("run", text="error_message input_digest"),
    "request": _table("run_key", text="input_digest"),
    "interrupt": _table("thread_id interrupt_id", blob="value answer", text="kind answered_by"),
    "attempt": _table("attempt_id", blob="marker writes", text="digest arguments"),
    "effect": _table("effect_id", blob="receipt", text="payload_digest"),
    "effect_fork": _table("key", blob="receipt", text="payload_digest"),
    "inbox": _table("run kind requested_us", blob="value", text="reason"),
    "memo": _table("run scope place node_path key", blob="value"),
    "agent_release": _table("digest", blob="descriptor"),
    "agent_run": _table("agent_run_id", blob="input output", text="input_digest message"),
    "agent_task": _table("agent_task_id", blob="input continuation output", text="error"),
    "agent_operation": _table("operation_id", blob="request raw outcome", text="before after"),
    "agent_call": _table("operation_id number", blob="answer"),
    "agent_commit": _table("root_id commit_key", blob="result", text="digest"),
    "agent_message": _table("agent_task_id seq", blob="message", text="said"),
    "agent_member": _table("batch_id ordinal", blob="arguments result", text="decision"),
    "agent_request": _table("request_id", blob="payload answer"),
}
"""`checkpoint` are the puts of checkpoint_log, `event` all of its rows that are told as events."""

for _name, _sealed in TABLES.items():
    for _column in _sealed.columns:
        name_place(f"{_name}.{_column}", *_sealed.key)


_COMMENT = re.compile(
    r"^-- sealed: (?P<table>\w+)(?:\.(?P<column>\w+)(?: as (?P<name>\w+))?)?(?: \((?P<keys>[^)]*)\))?$", re.MULTILINE
)


class Named(NamedTuple):
    """A sealed column, as one query calls it."""

    column: str
    """`table.column`: what its place begins with."""
    form: Form
    keys: tuple[str, ...]
    """What the query calls the columns that name its row."""


def named_in(sql: str) -> dict[str, Named]:
    """The sealed columns that a query gives or takes, by the names that it gives them.

    Raises:
        ValueError: A comment names no sealed column.
    """
    found: dict[str, Named] = {}
    for match in _COMMENT.finditer(sql):
        table = TABLES.get(match["table"])
        others = dict(each.split(" = ") for each in match["keys"].split(", ")) if match["keys"] else {}
        if (
            table is None
            or not others.keys() <= set(table.key)
            or (match["column"] or next(iter(table.columns))) not in table.columns
        ):
            raise ValueError(f"{match[0]!r} names no sealed column")
        keys = tuple(others.get(key, key) for key in table.key)
        for column in (match["column"],) if match["column"] else table.columns:
            named = Named(f"{match['table']}.{column}", table.columns[column], keys)
            found[match["name"] or column] = named
    if sql.count("-- sealed:") != len(_COMMENT.findall(sql)):
        raise ValueError(f"a comment on what is sealed is none: {sql}")
    return found
