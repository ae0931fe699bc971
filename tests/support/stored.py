"""What LangGraph says of a thread by what is stored for it: which questions are open, which tasks are finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.build import NULL_TASK

__all__ = [
    "answered_in",
    "answers_of",
    "encloses",
    "finished_at",
    "finished_inside",
    "handled_in",
    "is_current",
    "newest_in",
    "pending_at",
    "questions_in",
    "space_of",
]


def questions_in(state: Any) -> list[Any]:
    """Of a state and the states of its subgraphs."""
    inner = [each for task in state.tasks if task.state and task.result is None for each in questions_in(task.state)]
    return [*state.interrupts, *inner]


def pending_at(stored: list[Any], root_id: str, newest: Mapping[str, str]) -> dict[str, Any]:
    """Questions asked while a root checkpoint was executed, that nobody has answered, by their ids.

    Those of a subgraph at its newest checkpoint, as are all that enclose it: any may be begun anew, and asks anew then.

    Args:
        stored: Every checkpoint.
        root_id: The root checkpoint.
        newest: As `newest_in` says.
    """
    answered = answered_in(stored)
    spaces = {space_of(each) for each in stored}
    return {
        question.id: question.value
        for each in stored
        if is_current(each, root_id, newest)
        for task_id, channel, value in each.pending_writes
        if channel == "__interrupt__" and not encloses(task_id, spaces)
        for question in value
        if question.id not in answered
    }


def newest_in(stored: list[Any], *, silent: bool) -> dict[str, str]:
    """The newest checkpoint of each subgraph, by its namespace; if not `silent`, of which not only output is."""
    newest: dict[str, str] = {}
    for each in stored:
        if silent or not {channel for _, channel, _ in each.pending_writes}.isdisjoint(_CONTROL):
            for space, at in around(each).items():
                newest[space] = max(at, newest.get(space, ""))
    return newest


def is_current(stored: Any, root_id: str, newest: Mapping[str, str]) -> bool:
    """Whether it belongs to a root checkpoint, and is the newest of its subgraph, as are those that enclose it."""
    is_newest = all(newest.get(space, at) == at for space, at in around(stored).items())
    return is_newest and stored.metadata["parents"].get("", stored.checkpoint["id"]) == root_id


def encloses(task_id: str, spaces: set[str]) -> bool:
    """Whether a task runs a subgraph."""
    return any(f":{task_id}" in space for space in spaces)


def answers_of(stored: Any, task_id: str) -> int:
    """How many answers a task was given."""
    given = [value for task, channel, value in stored.pending_writes if (task, channel) == (task_id, "__resume__")]
    return max((len(value) for value in given if isinstance(value, list)), default=0)


def around(stored: Any) -> dict[str, str]:
    """The subgraph a checkpoint is of and those that enclose it, by their namespaces; at which checkpoints."""
    own = {space_of(stored): stored.checkpoint["id"]}
    return {space: at for space, at in {**stored.metadata["parents"], **own}.items() if space}


def space_of(stored: Any) -> str:
    return str(stored.config["configurable"]["checkpoint_ns"])


def answered_in(stored: list[Any]) -> set[str]:
    """Ids of questions whose task was given an answer, or is finished: the innermost task is the one that asked.

    A task that runs a subgraph shows its questions again, and the old ones until it has written anew: what is asked in
    there no longer was answered.
    """
    spaces = {space_of(each) for each in stored}
    asked: dict[str, tuple[int, bool]] = {}
    for each in stored:
        depth = len(each.metadata["parents"])
        for task_id, channel, value in each.pending_writes:
            for question in value if channel == "__interrupt__" else ():
                answered = (
                    encloses(task_id, spaces)
                    or answers_of(each, task_id) > question.value["number"]
                    or task_id in finished_at(each)
                )
                if depth >= asked.get(question.id, (0, False))[0]:
                    asked[question.id] = depth, answered
    return {each for each, (_, answered) in asked.items() if answered}


def handled_in(stored: list[Any]) -> set[str]:
    """Tasks whose error an error handler takes over."""
    return {task for each in stored for task, channel, _ in each.pending_writes if channel == "__error_source_node__"}


_CONTROL = ("__error__", "__error_source_node__", "__interrupt__", "__resume__", "__scheduled__")


def finished_at(stored: Any) -> set[str]:
    return {task for task, channel, _ in stored.pending_writes if channel not in _CONTROL and task != NULL_TASK}


def finished_inside(stored: list[Any], roots: set[str]) -> set[tuple[str, str]]:
    """Tasks of subgraphs that have written, by what the saver hands LangGraph."""
    return {
        (each.checkpoint["id"], task)
        for each in stored
        if each.metadata["parents"].get("") in roots and "__start__" not in each.checkpoint["channel_values"]
        for task in finished_at(each)
    }
