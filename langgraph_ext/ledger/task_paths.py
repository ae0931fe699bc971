"""Task paths and namespaces: where a task stands in its superstep and its graph among graphs, as LangGraph writes it.

Only this file takes such texts apart.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from langgraph_ext.ledger.records import VisitKind

__all__ = ["Task", "is_of_a_node", "is_run_by", "is_send", "is_within", "path_text", "task_of", "within"]

_PULL = "~__pregel_pull, "
_PUSH = "~__pregel_push, "
_TASKS = (_PULL, _PUSH)
_INPUT = _PULL + "__start__"
_HANDLER = re.compile(r", node_error_handler, \d{10}$")
_NAMESPACE_SEPARATOR = "|"
_SEND = re.compile(r"(\d{10})\b")


class Task(NamedTuple):
    """What a task path says of its task."""

    kind: VisitKind
    name: str | None
    """The node's; None if the path does not hold it."""
    send: int | None = None
    """Which of the scheduled tasks (LangGraph's Send) of its checkpoint, from 0."""


def task_of(task_path: str) -> Task:
    """Read a task path, as LangGraph writes it."""
    if task_path.startswith(_PULL):
        name = task_path.removeprefix(_PULL)
        handled = _HANDLER.search(name)
        return Task(VisitKind.ERROR_HANDLER, name[: handled.start()]) if handled else Task(VisitKind.NODE, name)
    if task_path.startswith(_PUSH):
        rest = task_path.removeprefix(_PUSH)
        if sent := _SEND.match(rest):
            kind = VisitKind.ERROR_HANDLER if _HANDLER.search(rest) else VisitKind.NODE
            return Task(kind, None, int(sent[1]))
        return Task(VisitKind.TASK, None)
    return Task(VisitKind.NODE, None)


def is_of_a_node(task_path: str) -> bool:
    """Whether a node's task, or a `@task`, has it: not the input, not `update_state`."""
    return task_path.startswith(_TASKS) and task_path != _INPUT


def is_send(task_path: str) -> bool:
    """Whether `Send`, or a call of a `@task`, started the task."""
    return task_path.startswith(_PUSH)


def path_text(path: object) -> str:
    """A task path as LangGraph hands it to a saver, of one as its config has it: nested tuples of names and numbers."""
    if isinstance(path, tuple | list):
        return f"~{', '.join(map(path_text, path))}"
    return f"{path:010d}" if isinstance(path, int) else str(path)


def is_run_by(checkpoint_ns: str, task_id: str) -> bool:
    """Whether a namespace is that of a subgraph which a task runs, or of one in there. Task ids are UUIDs."""
    return f":{task_id}{_NAMESPACE_SEPARATOR}" in f"{checkpoint_ns}{_NAMESPACE_SEPARATOR}"


def within(checkpoint_ns: str, name: str) -> str:
    """The namespace of what has this name in a graph of that namespace."""
    return f"{checkpoint_ns}{_NAMESPACE_SEPARATOR}{name}" if checkpoint_ns else name


def is_within(checkpoint_ns: str, enclosing: str) -> bool:
    """Whether a subgraph's namespace is another's, or that of a subgraph in there."""
    return f"{checkpoint_ns}{_NAMESPACE_SEPARATOR}".startswith(f"{enclosing}{_NAMESPACE_SEPARATOR}")
