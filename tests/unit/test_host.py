"""The internals of LangGraph that the saver looks at are still what they were."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langgraph._internal import _constants as constants
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde import types
from langgraph.config import get_config
from langgraph.errors import NodeError
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Send, TimeoutPolicy

from langgraph_ext.ledger.records import VisitKind
from langgraph_ext.ledger.task_paths import Task, is_of_a_node, is_send, task_of
from langgraph_ext.saver import host


class Spy(InMemorySaver):
    """Notes what LangGraph hands to a saver."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[dict[str, Any], str, str]] = []
        self.metadata: list[dict[str, Any]] = []
        self.values: list[dict[str, Any]] = []
        self.checkpoints: list[Any] = []

    def paths(self) -> list[str]:
        return [path for _, _, path in self.calls]

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self.metadata.append(dict(metadata))
        self.values.append(dict(checkpoint["channel_values"]))
        self.checkpoints.append(checkpoint)
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.calls.append((config, task_id, task_path))
        super().put_writes(config, writes, task_id, task_path)


def extend(state: list[int], writes: list[list[int]]) -> list[int]:
    return [*state, *(item for write in writes for item in write)]


class State(TypedDict):
    log: Annotated[list[int], DeltaChannel(extend)]


def run() -> Spy:
    """A graph with a DeltaChannel, a node and a Send; its state is updated from outside at the end."""
    spy = Spy()
    builder = StateGraph(State).add_node("sent", lambda n: {"log": [n]}).add_node("first", lambda state: {"log": [1]})
    builder.add_edge(START, "first").add_conditional_edges("first", lambda state: [Send("sent", 2)], ["sent"])
    app = builder.compile(checkpointer=spy)
    config: Any = {"configurable": {"thread_id": "t"}}
    app.invoke({"log": []}, config)
    app.update_state(config, {"log": [3]})
    return spy


def handled() -> Spy:
    """A graph whose node fails, and an error handler takes it over."""
    spy = Spy()

    def bad(state: State) -> dict[str, Any]:
        raise ValueError

    def handler(state: State, error: NodeError) -> dict[str, Any]:
        return {"log": [1]}

    builder = StateGraph(State).add_node("bad", bad, error_handler=handler).add_edge(START, "bad")
    builder.compile(checkpointer=spy).invoke({"log": []}, {"configurable": {"thread_id": "t"}})
    return spy


def functional() -> Spy:
    """An entrypoint that calls a task."""
    spy = Spy()

    @task
    def add(number: int) -> int:
        return number + 1

    @entrypoint(checkpointer=spy)
    def flow(number: int) -> int:
        return add(number).result()

    flow.invoke(1, {"configurable": {"thread_id": "t"}})
    return spy


def test_a_call_from_a_running_graph_is_told_from_one_from_outside() -> None:
    """The loop's runtime is in the config of its own calls, and not in that of `update_state`."""
    assert [True, True, True, False] == [host.from_graph(config) for config, _, _ in run().calls]


def test_a_task_of_a_send_is_told_by_its_path() -> None:
    """Only the sent task's path begins with the push mark."""
    assert [False, False, True, False] == [is_send(path) for _, _, path in run().calls]


def test_the_last_checkpoint_of_a_run_starts_nothing() -> None:
    """What starts tasks stands in channels of these names, also after `update_state`; not at the run's end."""
    assert [True, True, True, False, True] == [host.may_go_on(values) for values in run().values]


def test_the_delta_counters_are_where_they_were() -> None:
    """Prune finds the DeltaChannels of a checkpoint by this key."""
    assert all("log" in metadata[host.DELTA_COUNTERS] for metadata in run().metadata[1:4])


def test_the_names_are_those_of_langgraph() -> None:
    """The null task and the control channels are called as LangGraph calls them."""
    control = {constants.ERROR, constants.ERROR_SOURCE_NODE, constants.INTERRUPT, constants.RESUME}

    assert (constants.NULL_TASK_ID, control) == (host.NULL_TASK, set(host.CONTROL_CHANNELS))
    assert (constants.TASKS, types.SCHEDULED) == (host.TASKS, host.SCHEDULED)


def test_task_paths_are_written_as_they_were() -> None:
    """Of an input, a node and a sent task; of an update, of a node's error handler and of a `@task`."""
    paths = [path for _, _, path in run().calls]

    assert [False, True, True, False] == [is_of_a_node(path) for path in paths]
    assert Task(VisitKind.NODE, "first") == task_of(paths[1])
    assert Task(VisitKind.NODE, None, 0) == task_of(paths[2])
    assert Task(VisitKind.ERROR_HANDLER, "bad") in [task_of(path) for path in handled().paths()]
    assert Task(VisitKind.TASK, None) in [task_of(path) for path in functional().paths()]


def test_a_subgraphs_calls_name_what_they_run_in() -> None:
    """The enclosing task, in its puts' config, and the root graph's checkpoint, in the config of both."""
    spy = Spy()
    inner = StateGraph(State).add_node("leaf", lambda state: {"log": [1]}).add_edge(START, "leaf").compile()
    app = StateGraph(State).add_node("sub", inner).add_edge(START, "sub").compile(checkpointer=spy)
    app.invoke({"log": []}, {"configurable": {"thread_id": "t"}})
    nested = [config for config, _, _ in spy.calls if config["configurable"]["checkpoint_ns"]]
    root = [(config, task_id) for config, task_id, path in spy.calls if path.endswith("sub")]

    assert {task_id for _, task_id in root} == {host.inside(config) for config in nested}
    assert {config["configurable"]["checkpoint_id"] for config, _ in root} == {
        host.root_of(config) for config in nested
    }


def test_an_end_is_told_by_channels_and_nodes_of_these_names() -> None:
    """Of a StateGraph by its branches or its input's node, of an entrypoint by what it returned; of others by none."""
    graph, flow = run().checkpoints[-1], functional().checkpoints[-1]
    returned = {name for name in flow["channel_versions"] if name in ("__end__", "__previous__")}

    assert host.is_known_kind(graph["channel_versions"], {})
    assert host.is_known_kind({}, graph["versions_seen"])
    assert returned
    assert host.is_known_kind(flow["channel_versions"], {})
    assert not host.is_known_kind({"a": 1}, {"__input__": {}})


def test_joins_are_complete_when_all_have_come() -> None:
    """Their channel is called after those it waits for; a deferred one waits for its turn, too."""
    spy = Spy()
    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, lambda state: {"log": [1]}).add_edge(START, name)
    builder.add_node("end", lambda state: {"log": [2]}, defer=True).add_edge(["a", "b"], "end")
    builder.compile(checkpointer=spy).invoke({"log": []}, {"configurable": {"thread_id": "t"}})

    assert [True, True, True, False] == [host.may_go_on(values) for values in spy.values]
    assert {"join:a+b:end"} == {name for values in spy.values for name in values if name.startswith("join:")}
    assert not host.may_go_on({"join:a+b:end": {"a"}})
    assert not host.may_go_on({"join:a+b:end": ({"a", "b"}, False)})


SEEN: dict[str, tuple[bool, bool]] = {}


def look(name: str, function: object) -> dict[str, Any]:
    """Note whether a function is its task's own, and whether that has a timeout."""
    SEEN[name] = host.is_its_own(get_config(), function), host.has_timeout(get_config())
    return {"log": [1]}


def inner() -> None:
    """What a node calls."""


def own(state: State) -> dict[str, Any]:
    look("an inner one", inner)
    return look("node", own)


async def timed(state: State) -> dict[str, Any]:
    return look("timed", timed)


class Agent:
    def act(self, state: State) -> dict[str, Any]:
        return look("method", Agent.act)


def recovers(state: State, error: NodeError) -> dict[str, Any]:
    return look("handler", recovers)


def breaks(state: State) -> None:
    raise ValueError


def halve(number: int) -> int:
    look("task", halve)
    return number


def calls(state: State) -> dict[str, Any]:
    return {"log": [task(halve)(1).result()]}


async def test_a_tasks_own_function_is_told_from_those_that_it_calls() -> None:
    """By what LangGraph hands each task to schedule others with; under a timeout policy, by what guards that."""
    leaf = StateGraph(State).add_node("timed", timed, timeout=TimeoutPolicy(run_timeout=9)).add_edge(START, "timed")
    builder = StateGraph(State).add_node(own).add_node("sub", leaf.compile()).add_node("method", Agent().act)
    builder.add_node("breaks", breaks, error_handler=recovers).add_node(calls)
    for name in ("own", "sub", "method", "breaks", "calls"):
        builder.add_edge(START, name)
    await builder.compile(checkpointer=InMemorySaver()).ainvoke({"log": []}, {"configurable": {"thread_id": "t"}})

    own_ones = dict.fromkeys(("node", "method", "handler", "task"), (True, False))
    assert {"an inner one": (False, False), "timed": (True, True), **own_ones} == SEEN
