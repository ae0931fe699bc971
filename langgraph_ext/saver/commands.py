"""Commands: what an attached graph is called with, on its way from the caller to LangGraph (rules L25, L26).

LangGraph reads `Command(resume=…)` after it has loaded the checkpoint, and reads some values otherwise than they are
meant: `{}` as a map of nothing, a dict of 32-digit keys as a map even if nobody asks so, any other value as the answer
to whatever is asked next. So an attached graph's `stream` and `astream`, which every way of calling it passes, make a
command of their own out of the caller's; the saver, as soon as it has put the answer on record, writes the map into it
which says the same by the ids of the questions. The caller's command stays as it is, and may be used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, wraps
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.types import Command, Interrupt

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.records import VisitKind
from langgraph_ext.ledger.resuming import Stored
from langgraph_ext.ledger.task_paths import task_of, within
from langgraph_ext.saver import host

__all__ = ["Resumption", "attached_class", "check", "empty", "own", "resume_with", "says"]


class Resumption(Command[Any]):
    """A command of our own, for one invocation: what it resumes with is written into it when that is on record."""


class _GoingOn(Resumption):
    """What stands for the caller's None, which goes on with a run as a map of no answers does."""


def own(graph: Any, given: Any, config: RunnableConfig | None) -> Any:
    """The caller's command, or its None, as a command of our own; anything else as it is.

    So None, too, gives the tasks of a run the answers on record: it may be all that somebody says after a crash.
    """
    if isinstance(given, Command):
        return Resumption(graph=given.graph, update=given.update, resume=given.resume, goto=given.goto)
    if given is None and graph.checkpointer and host.is_at_the_head(ensure_config(merge_configs(graph.config, config))):
        return _GoingOn(resume={})
    return given


def says(command: Command[Any]) -> bool:
    """Whether a command answers. Without anything else in it, None is an answer too."""
    if isinstance(command, _GoingOn):
        return False
    return command.resume is not None or (command.update is None and not command.goto)


def check(given: Any) -> None:
    """Refuse a command that is not ours, so that nothing can be written into it, if LangGraph would misread it.

    Raises:
        InvalidArgument: It would.
    """
    if not isinstance(given, Command) or isinstance(given, Resumption) or not says(given):
        return
    value = given.resume
    if value is None or (isinstance(value, dict) and not host.is_read_as_meant(value)):
        raise InvalidArgument(
            f"LangGraph does not read Command(resume={type(value).__name__}) as the answer that it is; attach the "
            "graph by with_ledger(graph), or answer by id: Command(resume={interrupt_id: value})"
        )


def empty(command: Command[Any]) -> None:
    """There is no run to go on with: LangGraph is to say so, as it does."""
    if isinstance(command, _GoingOn):
        object.__setattr__(command, "resume", None)


def resume_with(command: Command[Any], stored: Sequence[Stored], values: Mapping[str, Any]) -> None:
    """Write into a command of ours what is on record. LangGraph reads it next.

    A subgraph that keeps no checkpoints is not reached by the id of its question, which LangGraph asks in the name of
    the task around it; where only that is open, its answer goes to whatever asks next, as LangGraph has it.
    """
    if not isinstance(command, Resumption) or (command.resume is None and not stored and not says(command)):
        return  # check has seen it; or it says something else, and has nothing to resume with
    resume: Any = dict(values)
    if len(stored) == 1 and not _is_reached(stored[0]):
        (value,) = values.values()
        if value is not None and (not isinstance(value, dict) or host.is_read_as_meant(value)):
            resume = value
    object.__setattr__(command, "resume", resume)  # frozen for everybody else


def _is_reached(stored: Stored) -> bool:
    """Whether a question has the id that LangGraph derives from the task that asked."""
    row, node = stored
    if node is None or task_of(row["task_path"]).kind is VisitKind.ERROR_HANDLER:
        return True  # a `@task`, whose name is not known, or a handler, whose id holds that of the task that failed
    task = within(row["checkpoint_ns"], f"{node}:{row['task_id']}")
    return row["interrupt_id"] in (
        Interrupt.from_ns(None, task).id,
        Interrupt.from_ns(None, within(task, str(row["ordinal"]))).id,
    )


@cache
def attached_class(kind: type[Any]) -> type[Any]:
    """The class of an attached graph: its own, but that whatever it is called with is made `own` first."""

    @wraps(kind.stream)
    def stream(self: Any, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        return kind.stream(self, own(self, input, config), config, **options)

    @wraps(kind.astream)
    def astream(self: Any, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        return kind.astream(self, own(self, input, config), config, **options)

    doors = {"stream": stream, "astream": astream, "__doc__": kind.__doc__, "__module__": kind.__module__}
    return type(kind.__name__, (kind,), doors)
