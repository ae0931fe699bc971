"""The internals of LangGraph that the saver looks at are still what they were."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langgraph._internal import _constants as constants
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send

from langgraph_ext.saver import host


class Spy(InMemorySaver):
    """Notes what LangGraph hands to a saver."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[dict[str, Any], str, str]] = []
        self.metadata: list[dict[str, Any]] = []
        self.values: list[dict[str, Any]] = []

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        self.metadata.append(dict(metadata))
        self.values.append(dict(checkpoint["channel_values"]))
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


def test_a_call_from_a_running_graph_is_told_from_one_from_outside() -> None:
    """The loop's runtime is in the config of its own calls, and not in that of `update_state`."""
    assert [True, True, True, False] == [host.from_graph(config) for config, _, _ in run().calls]


def test_a_task_of_a_send_is_told_by_its_path() -> None:
    """Only the sent task's path begins with the push mark."""
    assert [False, False, True, False] == [host.is_send(path) for _, _, path in run().calls]


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
