"""What a transaction is, in words: its events, each with its node and effect, and the checkpoints that it stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger import Event, order
from langgraph_ext.ledger.events import scan
from langgraph_ext.ledger.node_paths import UNKNOWN, NodePaths
from langgraph_ext.ledger.task_paths import is_of_a_node

__all__ = ["in_words"]

_EVENTS = 20
"""Most events of a transaction that are told."""

_BY_STATEMENT = {
    "lease_insert": "taking the thread",
    "lease_take": "taking the thread",
    "lease_renew": "holding the thread longer",
    "lease_release": "giving the thread back",
    "lease_give_back": "giving the thread back",
    "effect_use_put": "looking up an effect",
    "effect_fork_put": "meeting an effect of the run that was forked",
    "memo_put": "a memo",
    "inbox_add": "a message to a run",
    "inbox_consume": "taking a message in",
    "request_add": "a request",
}
"""Of a transaction that leaves no row in the log."""


def in_words(tx: Tx, begun_behind: int, statements: Sequence[str]) -> str:
    """What a transaction is that has done so much; empty if nothing tells.

    Args:
        tx: It, or one that reads what it has committed.
        begun_behind: The last row of the log when it began.
        statements: The names of its statements.
    """
    paths = NodePaths(tx)
    events = scan(tx, paths, order.behind(begun_behind), _EVENTS).events
    said = [_event(tx, event) for event in events]
    rows = tx.all("log_page", after=begun_behind, size=_EVENTS)
    said += (_checkpoint(tx, paths, row) for row in rows if row["listed"] is not None)
    if not said:
        said += (_writes(paths, row) for row in rows if row["task_id"] is not None)
    if not said:
        said += (_BY_STATEMENT[name] for name in statements if name in _BY_STATEMENT)
    return ", ".join(dict.fromkeys(said))


def _event(tx: Tx, event: Event) -> str:
    """`effect.started pay/capture 'charge'`."""
    effect_id, attempt_id = event.details.get("effect_id"), event.details.get("attempt_id")
    effect = tx.maybe("effect_get", effect_id=effect_id) if effect_id else None
    attempt = tx.maybe("attempt_get", attempt_id=attempt_id) if attempt_id else None
    path = event.node_path
    if effect is not None:
        path = effect["node_path"]
    elif path is None and attempt is not None:
        where = {"thread_id": event.thread_id, "checkpoint_id": event.checkpoint_id, "task_id": attempt["task_id"]}
        visit = tx.maybe("visit_get", **where)
        path = (attempt["node"] or UNKNOWN) if visit is None else visit["node_path"]
    parts = [event.name, _whole(path, event.checkpoint_ns), "" if effect is None else repr(effect["name"])]
    return " ".join(filter(None, parts))


def _checkpoint(tx: Tx, paths: NodePaths, row: Row) -> str:
    """Behind the nodes whose writes it takes in; those are the calls at its parent."""
    where = {"thread_id": row["thread_id"], "checkpoint_ns": row["checkpoint_ns"]}
    place = tx.one("place_get", **where, checkpoint_id=row["checkpoint_id"])
    around = "/".join(_enclosing(row["checkpoint_ns"]))
    within = f" of {around}" if around else ""
    if place["parent_id"] is None:
        return f"the first checkpoint{within}"
    placed = paths.placed(row["thread_id"], row["checkpoint_ns"], place["parent_id"])
    calls = tx.all("writes_of", **where, checkpoint_id=place["parent_id"])
    behind = dict.fromkeys(
        _whole(paths.stood(placed, call["task_path"]).node_path, row["checkpoint_ns"])
        for call in calls
        if is_of_a_node(call["task_path"])
    )
    return f"the checkpoint behind {' and '.join(behind)}" if behind else f"the checkpoint behind the input{within}"


def _writes(paths: NodePaths, row: Row) -> str:
    if not is_of_a_node(row["task_path"]):
        return "writes of the input"
    placed = paths.placed(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])
    return f"writes of {_whole(paths.stood(placed, row['task_path']).node_path, row['checkpoint_ns'])}"


def _whole(path: str | None, checkpoint_ns: str) -> str:
    """The path; enclosing nodes that the ledger does not know yet are named by LangGraph's namespace."""
    if path is None:
        return ""
    *around, name = path.split("/")
    return path if around and UNKNOWN not in around else "/".join([*_enclosing(checkpoint_ns), name])


def _enclosing(checkpoint_ns: str) -> Iterator[str]:
    """`"pay:<task id>|refund:<task id>"` as `pay`, `refund`. For these words alone: the ledger takes none apart."""
    names = (part.partition(":")[0] for part in checkpoint_ns.split("|"))
    return (name for name in names if name and not name.isdecimal())  # a number tells apart calls of one subgraph
