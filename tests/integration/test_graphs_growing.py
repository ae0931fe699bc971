"""S2: graphs whose state grows, over LedgerSaver as over InMemorySaver; a turn stores what it adds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages

from langgraph_ext import LedgerSaver
from tests.support.build import config, whole
from tests.support.growing import bytes_stored, made_small, pages_used, said
from tests.support.stories import Teller

pytestmark = pytest.mark.filterwarnings("ignore:.*DeltaChannel.*")


def extend(old: list[Any], batches: Sequence[list[Any]]) -> list[Any]:
    return [*old, *(item for batch in batches for item in batch)]


class State(TypedDict, total=False):
    """Every kind of channel that grows: by a reducer, rebuilt from writes, and returned whole each time."""

    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=3)]
    joined: Annotated[str, operator.add]
    text: str
    notes: dict[str, Any]
    turn: int


def app(saver: Any, size: int = 60) -> Any:
    """Answers, and notes what was asked in every way; every fourth turn takes something back."""

    def answer(state: State) -> dict[str, Any]:
        turn, asked = state["turn"], state["messages"][-1]
        made: list[AnyMessage] = [AIMessage(said(f"answer {turn}", size), id=f"a{turn}")]
        if turn % 4 == 3:  # one is edited, one goes
            made.append(HumanMessage(said(f"edited at {turn}", size), id=asked.id))
            made.append(RemoveMessage(id=state["messages"][0].id))
        return {"messages": made, "log": [said(f"line {turn}", size)], "joined": said(f"{turn}, ", size)}

    def note(state: State) -> dict[str, Any]:
        turn, notes = state["turn"], state.get("notes", {})
        text = state.get("text", "")
        return {
            "text": (text[size:] if turn % 5 == 4 else text) + said(f"{turn}: ", size),
            "notes": {**notes, f"turn {turn}": said(f"of {turn}", size), "last": turn},
        }

    builder = StateGraph(State).add_node(answer).add_node(note)
    builder.add_edge(START, "answer").add_edge("answer", "note")
    return builder.compile(checkpointer=saver)


def ask(turn: int, size: int = 60) -> State:
    return {"messages": [HumanMessage(said(f"question {turn}", size), id=f"q{turn}")], "turn": turn}


def test_s2_a_state_that_grows_is_that_of_any_saver(
    both: Callable[..., Teller], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every checkpoint of the history, its writes, forks from its middle, and updates."""
    made_small(monkeypatch)

    def story(teller: Teller) -> None:
        for turn in range(6):
            teller.call("invoke", ask(turn), whole(), durability=teller.durability)
        teller.look()
        past = teller.history()[5].config
        teller.run(ask(10), past)
        teller.update({"text": "another one " * 9, "notes": {"of": "my own", "but": "longer than that"}})
        teller.run(ask(11))
        teller.run(ask(12), past)

    assert 12 == both(app, story).state().values["turn"]


def test_s2_a_turn_of_a_graph_stores_what_it_adds(tmp_path: Path) -> None:
    """In each kind of channel, and in the tasks' writes; where the whole is returned each time, too."""
    sizes = {}
    with LedgerSaver(tmp_path / "runs.db", fsync="normal") as saver:
        graph = app(saver, 600)
        for turn in range(61):
            graph.invoke(ask(turn, 600), config(ns=None), durability="sync")
            sizes[turn] = bytes_stored(tmp_path / "runs.db")

    early, late = (sizes[turn] - sizes[turn - 20] for turn in (40, 60))
    assert late / early < 1.1
    assert late / 20 < 4 * 5 * 600 + 6 * 1_000, "each of five channels is given 600 bytes, stored a few times"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_s2_turn_2000_of_a_chat_takes_what_turn_50_took(tmp_path: Path) -> None:
    """Two messages of 1 KB a turn, without and with a DeltaChannel: what is stored, and the pages that it lies in.

    Pages come whole and are split in halves, so those of fifty turns vary by a tenth; of a hundred, by a fiftieth.
    """
    for kind in (add_messages, DeltaChannel(extend)):
        path = tmp_path / f"{type(kind).__name__}.db"
        used, stored = {}, {}
        with LedgerSaver(path, fsync="normal") as saver:
            builder = StateGraph(TypedDict("Chat", {"messages": Annotated[list[AnyMessage], kind]}))  # type: ignore[misc]
            builder.add_node("bot", lambda state: {"messages": [AIMessage(said(f"{len(state['messages'])}", 1_000))]})
            graph = builder.add_edge(START, "bot").compile(checkpointer=saver)
            for turn in range(2_051):
                graph.invoke({"messages": [HumanMessage(said(f"{turn}", 1_000))]}, config(ns=None), durability="exit")
                if turn in (0, 100, 1_950, 2_050):
                    used[turn], stored[turn] = pages_used(path), bytes_stored(path)
        for sizes, least, most in ((stored, 0.99, 1.01), (used, 0.9, 1.1)):
            assert least < (sizes[2_050] - sizes[1_950]) / (sizes[100] - sizes[0]) < most
