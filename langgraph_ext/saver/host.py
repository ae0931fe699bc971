"""LangGraph's internals that this package looks at, each with a test that notices a change: named here only.

(But for task paths, which stand in what is stored: `ledger/task_paths.py`.)
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError as FutureCancelledError
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR
from langgraph.errors import NodeTimeoutError
from langgraph.types import Interrupt

from langgraph_ext.ledger.task_paths import is_of_a_node, path_text
from langgraph_ext.ledger.visit_rows import Task

if TYPE_CHECKING:
    from langgraph.runtime import RunControl, Runtime

__all__ = [
    "CONTROL_CHANNELS",
    "DELTA_COUNTERS",
    "ERROR_SOURCE_NODE",
    "KEYS",
    "NULL_TASK",
    "SCHEDULED",
    "TASKS",
    "anchors_in",
    "around",
    "around_loop",
    "channels_in",
    "checkpoint_of",
    "control_in",
    "drain",
    "durability_in",
    "from_graph",
    "handlers_in",
    "has_timeout",
    "input_in",
    "inside",
    "is_at_the_head",
    "is_cancellation",
    "is_its_own",
    "is_known_kind",
    "is_of_a_task",
    "is_plain",
    "is_read_as_meant",
    "is_task",
    "is_timeout",
    "may_go_on",
    "namespace_of",
    "node_in",
    "questions",
    "root_of",
    "run_id_in",
    "saver_in",
    "sends",
    "streams_custom",
    "task_in",
    "task_of",
    "try_in",
]

H = TypeVar("H")

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""The task id under which LangGraph stores what it was given rather than what a task wrote, such as an answer."""

ERROR_SOURCE_NODE = "__error_source_node__"
"""Channel that marks an error which an error handler takes over."""

CONTROL_CHANNELS = frozenset((ERROR, ERROR_SOURCE_NODE, "__interrupt__", "__resume__"))
"""Channels whose writes say nothing of whether a task is finished."""

DELTA_COUNTERS = "counters_since_delta_snapshot"
"""Metadata key under which LangGraph counts a DeltaChannel's writes since its last stored value (beta)."""

SCHEDULED = "__scheduled__"
"""Channel by which LangGraph notes that a task has scheduled another one."""

_RUNTIME = "__pregel_runtime"
_SAVER = "__pregel_checkpointer"
_SCRATCHPAD = "__pregel_scratchpad"
_DURABILITY = "__pregel_durability"
_CALL = "__pregel_call"
_READ = "__pregel_read"
_HANDLER = "__error_handler__"
_NODE = "langgraph_node"
_INSIDE = "__pregel_task_id"
_STRICT = "__pregel_strict_resume"
TASKS = "__pregel_tasks"
"""Channel of the tasks that `Send` has scheduled."""

_OTHERS = ("cache", "resume_map", "resuming", "runner_submit", "send", "stream")
KEYS = (
    _RUNTIME,
    _SAVER,
    _SCRATCHPAD,
    _DURABILITY,
    _CALL,
    _READ,
    _INSIDE,
    _STRICT,
    *(f"__pregel_{key}" for key in _OTHERS),
)
"""Keys of configs that LangGraph keeps to itself, most of them."""

_BRANCH, _JOIN, _START = "branch:to:", "join:", "__start__"
_ENDS = ("__end__", "__previous__")


def from_graph(config: RunnableConfig) -> bool:
    """Whether a call comes from a running graph, and not from a program that uses the saver directly."""
    return _RUNTIME in config["configurable"]


def drain(config: RunnableConfig, reason: str) -> None:
    """Have the running graph that a put comes from, and those around it, stop when its step is over."""
    control = control_in(config)
    if control is not None:
        control.request_drain(reason)


def control_in(config: RunnableConfig) -> RunControl | None:
    """An object that an invocation and all graphs in it share, and no other invocation has."""
    return getattr(config["configurable"].get(_RUNTIME), "control", None)


def task_of(metadata: Mapping[str, Any]) -> str | None:
    """The task in which a runnable with this metadata runs, the innermost one."""
    checkpoint_ns = metadata.get("langgraph_checkpoint_ns")
    return checkpoint_ns.rpartition(":")[2] if isinstance(checkpoint_ns, str) else None


def root_of(config: RunnableConfig) -> str | None:
    """The root graph's checkpoint that is being executed, as a subgraph's config names it."""
    found = (config["configurable"].get("checkpoint_map") or {}).get("")
    return found if isinstance(found, str) else None


def is_of_a_task(metadata: Mapping[str, Any]) -> bool:
    """Whether a runnable with this metadata runs inside a task of a graph.

    Not any key that begins with `langgraph_` says so: LangGraph's API server gives root graphs some of those.
    """
    return _NODE in metadata


def handlers_in(config: RunnableConfig, kind: type[H]) -> Sequence[H]:
    """The callback handlers of a kind that stand in a config, which holds a list of them or a manager."""
    callbacks: Any = config.get("callbacks") or ()
    return [each for each in getattr(callbacks, "handlers", callbacks) if isinstance(each, kind)]


def saver_in(config: RunnableConfig) -> object | None:
    """The checkpointer of the graph that a node runs in."""
    return config["configurable"].get(_SAVER)


def checkpoint_of(config: RunnableConfig) -> str | None:
    """The checkpoint that a node's task is executing."""
    info = getattr(config["configurable"].get(_RUNTIME), "execution_info", None)
    return None if info is None else info.checkpoint_id


def anchors_in(config: RunnableConfig) -> tuple[tuple[str, str], ...]:
    """Namespace and checkpoint of every graph that encloses a node, the root graph's first and its own last."""
    found = config["configurable"].get("checkpoint_map") or {}
    return tuple(sorted(found.items(), key=lambda anchor: len(anchor[0])))


def namespace_of(anchors: Sequence[tuple[str, str]], checkpoint_id: str) -> str:
    """The saver's namespace of the graph that executes a checkpoint: a `@task` has a longer one besides."""
    return next((checkpoint_ns for checkpoint_ns, executed in anchors if executed == checkpoint_id), "")


def node_in(config: RunnableConfig) -> str:
    """The node whose task runs; of an error handler's, the one that it handles."""
    found = (config.get("metadata") or {}).get(_NODE, "")
    return str(found).removeprefix(_HANDLER)


def task_in(config: RunnableConfig) -> Task | None:
    """The task that runs with this config; None if none does."""
    task_id = inside(config)
    path = (config.get("metadata") or {}).get("langgraph_path")
    if task_id is None or path is None:
        return None
    return Task(task_id=task_id, task_path=path_text(path), node=node_in(config))


def around_loop(config: RunnableConfig) -> Task | None:
    """The task that runs the loop of a subgraph, by the config with which that loop asks a saver."""
    return task_in(config) if from_graph(config) else None


def try_in(config: RunnableConfig) -> tuple[object, int]:
    """An object of the task's own, as long-lived as the task and fit for weak references; and which try it is."""
    runtime = config["configurable"][_RUNTIME]
    return config["configurable"][_SCRATCHPAD].get_null_resume, runtime.execution_info.node_attempt


def is_its_own(config: RunnableConfig, function: object) -> bool:
    """Whether a function is the one that the task in this config was made of, and not one that this calls.

    LangGraph hands each task what schedules others for it: the one place where a config leads to its task.
    """
    call: Any = config["configurable"].get(_CALL)
    if has_timeout(config):
        call = inspect.getclosurevars(call).nonlocals.get("call")
    task = call.args[0]() if isinstance(call, partial) else None
    if task is None:
        return False
    body = getattr(task.proc, "steps", (task.proc,))[0]
    return any(_plain(getattr(body, each, None)) is function for each in ("func", "afunc"))


def has_timeout(config: RunnableConfig) -> bool:
    """Whether a task runs under a timeout policy, which guards what schedules others by a closure around it."""
    return inspect.isfunction(config["configurable"].get(_CALL))


def _plain(function: Any) -> object:
    """The function itself, of a method or a partial of it."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__func__", function)


def channels_in(config: RunnableConfig) -> frozenset[str]:
    """The keys of the state that a node may write to; empty if LangGraph does not say."""
    read: Any = config["configurable"].get(_READ)
    channels = read.args[1] if isinstance(read, partial) and len(read.args) > 1 else {}
    return frozenset(channels) if isinstance(channels, Mapping) else frozenset()


def streams_custom(runtime: Runtime[Any]) -> bool:
    """Whether somebody listens to what a node writes to the stream: a writer into nothing closes over nothing."""
    writer = runtime.stream_writer
    is_own = getattr(writer, "__module__", "").startswith("langgraph.")
    return not (is_own and getattr(writer, "__closure__", None) is None)


def durability_in(config: RunnableConfig) -> str:
    """What the caller chose; LangGraph's default where nobody did."""
    return config["configurable"].get(_DURABILITY) or "async"


def around(config: RunnableConfig) -> tuple[tuple[str, str], ...]:
    """Namespace and checkpoint of each subgraph that encloses a call, as its config names them."""
    found = (config["configurable"].get("checkpoint_map") or {}).items()
    return tuple((checkpoint_ns, checkpoint_id) for checkpoint_ns, checkpoint_id in found if checkpoint_ns)


def inside(config: RunnableConfig) -> str | None:
    """The task that runs the subgraph a put comes from."""
    task_id = config["configurable"].get(_INSIDE)
    return task_id if isinstance(task_id, str) else None


def run_id_in(config: RunnableConfig) -> str | None:
    """The run that a config's metadata name: with input, LangGraph goes on with a checkpoint of the same name."""
    found = (config.get("metadata") or {}).get("run_id")
    return None if found is None else str(found)


def is_at_the_head(config: RunnableConfig) -> bool:
    """Whether a graph called with this config goes on at its thread's head, in nobody's task.

    Where LangGraph is told to refuse maps that name no question, it is left alone.
    """
    configurable = config.get("configurable") or {}
    return not any(configurable.get(key) for key in ("checkpoint_id", _INSIDE, _STRICT))


def is_read_as_meant(resume: Mapping[Any, Any]) -> bool:
    """Whether LangGraph reads a dict that a command resumes with as a map if its keys are ids, else as an answer."""
    return bool(resume) and all(isinstance(key, str) for key in resume)


def may_go_on(channel_values: Mapping[str, Any]) -> bool:
    """Whether a checkpoint's values hold what starts tasks. Only a hint: a graph may also start them otherwise."""
    for channel in channel_values:
        if channel.startswith(_BRANCH) or channel == _START:
            return True
        if channel.startswith(_JOIN) and _is_complete(channel, channel_values[channel]):
            return True
    return bool(channel_values.get(TASKS))


def _is_complete(channel: str, seen: Any) -> bool:
    """Whether all that a `join:a+b:node` waits for have come; a deferred one holds `(those, whether its turn came)`."""
    if isinstance(seen, tuple | list) and len(seen) == 2 and isinstance(seen[1], bool):
        seen, is_its_turn = seen
        if not is_its_turn:
            return False
    if not isinstance(seen, set | frozenset | list | tuple):
        return False  # a channel of the application's that happens to be named so
    awaited = channel.removeprefix(_JOIN).rpartition(":")[0]
    return len("+".join(map(str, seen))) == len(awaited)


def is_known_kind(channel_versions: Mapping[str, Any], versions_seen: Mapping[str, Any]) -> bool:
    """Whether the channels, or the nodes seen, are those of a StateGraph that has begun, or of an ended entrypoint."""
    return _START in versions_seen or any(
        channel.startswith(_BRANCH) or channel in _ENDS for channel in channel_versions
    )


def input_in(channel_values: Mapping[str, Any]) -> Any:
    """The input that an input checkpoint holds; all of its values where the graph has no channel for it."""
    return channel_values.get(_START, channel_values)


def sends(channel_values: Mapping[str, Any]) -> Sequence[Any]:
    """The scheduled tasks that a checkpoint holds."""
    return channel_values.get(TASKS) or ()


def is_task(task_id: str, task_path: str) -> bool:
    """Whether writes are those of a node's task: not an answer, not the input, not `update_state`."""
    return task_id != NULL_TASK and is_of_a_node(task_path)


def is_cancellation(error: object) -> bool:
    """Whether a task ended because it was cancelled."""
    return isinstance(error, CancelledError | FutureCancelledError)


def is_timeout(error: object) -> bool:
    """Whether a task ended by its timeout policy."""
    return isinstance(error, NodeTimeoutError)


def questions(value: Any) -> Sequence[Any]:
    """The interrupts that a write to LangGraph's interrupt channel holds."""
    return [each for each in (value if isinstance(value, list | tuple) else (value,)) if isinstance(each, Interrupt)]


def is_plain(serde: object) -> bool:
    """Whether what a serde writes may be read by anybody: LangGraph's own does not encrypt, others may."""
    return isinstance(serde, JsonPlusSerializer) and type(serde).dumps_typed is JsonPlusSerializer.dumps_typed
