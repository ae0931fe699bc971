"""DeltaChannel over LedgerSaver: as over InMemorySaver, and through prune, copy and deletes (S10)."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Overwrite, Send, interrupt

from langgraph_ext import LedgerSaver
from tests.support.build import config, whole
from tests.support.driver import Driver
from tests.support.stories import Teller

pytestmark = pytest.mark.filterwarnings("ignore:.*DeltaChannel.*")


def extend(old: list[Any], batches: Sequence[list[Any]]) -> list[Any]:
    """Order matters: a write that is replayed in another order shows."""
    return [*old, *(item for batch in batches for item in batch)]


def update(old: dict[str, Any], batches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The last write of a key wins."""
    merged = dict(old)
    for batch in batches:
        merged |= batch
    return merged


class State(TypedDict, total=False):
    """Two delta channels with different rhythms of snapshots, and a plain one."""

    log: Annotated[list[Any], DeltaChannel(extend, snapshot_frequency=5)]
    facts: Annotated[dict[str, Any], DeltaChannel(update, snapshot_frequency=1000)]
    n: int


def chat(saver: Any) -> Any:
    """`think` fans out to three `work`, then `reply` asks if told so."""

    def reply(state: State) -> State:
        answer = interrupt("ok?") if state["n"] < 0 else "ok"
        return {"log": [f"reply {len(state['log'])} {answer}"], "facts": {"replies": len(state["log"])}}

    builder = StateGraph(State)
    builder.add_node("think", lambda state: {"log": [f"think {state['n']}"], "facts": {f"turn {state['n']}": True}})
    builder.add_node("work", lambda item: {"log": [f"work {item['k']} of {item['n']}"], "facts": {"last": item["k"]}})
    builder.add_node("reply", reply)
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", lambda state: [Send("work", {"k": k, "n": state["n"]}) for k in range(3)])
    builder.add_edge("work", "reply")
    return builder.compile(checkpointer=saver)


def turns(teller: Teller, count: int, first: int = 1) -> None:
    """So many turns on the thread, without looking in between."""
    for n in range(first, first + count):
        teller.call("invoke", {"log": [f"in {n}"], "n": n}, whole(), durability=teller.durability)


def test_s10_a_delta_channel_is_rebuilt_after_every_turn(both: Callable[..., Teller]) -> None:
    """Every checkpoint of the history has the values it had, over more turns than a snapshot lasts."""

    def story(teller: Teller) -> None:
        turns(teller, 7)
        teller.look()

    state = both(chat, story).state()
    assert [f"in {n}" for n in range(1, 8)] == [item for item in state.values["log"] if item.startswith("in")]
    assert (7 * 6, 2) == (len(state.values["log"]), state.values["facts"]["last"])


def test_s10_a_delta_channel_survives_forks_and_overwrites(both: Callable[..., Teller]) -> None:
    """Replays, forks from old checkpoints, updates and `Overwrite`: each path sees its own writes only."""

    def story(teller: Teller) -> None:
        turns(teller, 3)
        old = teller.history()[-1 if teller.durability == "exit" else len(teller.history()) // 2].config
        fork = teller.update({"log": ["forked"], "facts": {"fork": 1}}, old, as_node="work")
        teller.run(None, fork)
        teller.run({"log": ["after the fork"], "n": 9})
        teller.update({"log": Overwrite(["fresh"])}, as_node="reply")
        turns(teller, 2, first=20)
        teller.look()

    values = both(chat, story).state().values
    assert ("fresh", 1 + 2 * 6) == (values["log"][0], len(values["log"]))


def test_s10_a_delta_channel_with_a_question(both: Callable[..., Teller]) -> None:
    """A paused turn and its answer, with other turns before and after."""

    def story(teller: Teller) -> None:
        turns(teller, 2)
        teller.run({"log": ["in"], "n": -1})
        teller.run(Command(resume="yes"))
        turns(teller, 2, first=5)
        teller.look()

    assert any(str(item).endswith("yes") for item in both(chat, story).state().values["log"])


@pytest.fixture
def teller(saver: LedgerSaver, form: Any, durability: str, loop: Any) -> Teller:
    """A thread of six turns with delta channels over LedgerSaver."""
    made = Teller(chat, saver, form, durability, loop)
    turns(made, 6)
    return made


@pytest.fixture
def driven(teller: Teller, forms: Callable[[Any], Driver]) -> Driver:
    """The saver under the graph, in the same form."""
    return forms(teller.saver)


def test_s10_prune_keeps_what_a_delta_channel_needs(teller: Teller, driven: Driver) -> None:
    """After `keep_latest` the state is the same, one checkpoint is listed, and the thread goes on as if nothing was."""
    before = teller.state().values
    for _ in range(2):
        driven.prune(["t"])
    assert (before, 1, 1) == (teller.state().values, len(teller.history()), len(driven.list(whole())))
    turns(teller, 6, first=7)

    assert [f"in {n}" for n in range(1, 13)] == [item for item in teller.state().values["log"] if "in " in item[:3]]
    assert 72 == len(teller.state().values["log"])
    assert before["log"] == teller.state().values["log"][:36]


def test_s10_pruned_ancestors_are_stored_but_not_to_be_found(teller: Teller, driven: Driver) -> None:
    """They are in no listing, with or without filters, and no answer of `get_tuple`; the kept one is."""
    ids = driven.ids(whole())
    driven.prune(["t"])

    assert ids[:1] == driven.ids(whole()) == driven.ids(None) == driven.ids(config(), filter={})
    assert [] == driven.ids(whole(), before=config(id=ids[0]))
    assert [None] * (len(ids) - 1) == [driven.get_tuple(config(id=id)) for id in ids[1:]]
    assert [] == [item for id in ids[1:] for item in driven.list(config(id=id))]


def test_s10_a_prune_after_each_turn_keeps_the_database_small(teller: Teller, driven: Driver, backend: Any) -> None:
    """Ancestors that a later snapshot made needless go with the next prune: the file stops growing."""
    sizes = []
    for round in range(8):
        turns(teller, 3, first=10 + 3 * round)
        driven.prune(["t"])
        sizes.append(stored_rows(backend))

    assert max(sizes[4:]) <= 2 * max(sizes[:4]), sizes
    assert 6 * (6 + 24) == len(teller.state().values["log"])


def stored_rows(backend: Any, name: str = "runs") -> int:
    """Rows in the database of this name, of whatever table, but for the events that say what was taken away."""
    with contextlib.closing(sqlite3.connect(backend.url(name))) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = sum(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables)
        said = "SELECT count(*) FROM checkpoint_log WHERE event IN ('thread.pruned', 'thread.deleted')"
        return rows - int(connection.execute(said).fetchone()[0])


def test_s10_a_copy_of_a_pruned_thread_has_its_state(teller: Teller, driven: Driver) -> None:
    """`copy_thread` takes the hidden ancestors along, and shows as little of them."""
    before = teller.state().values
    driven.prune(["t"])
    driven.copy_thread("t", "copy")
    driven.delete_thread("t")

    assert before == teller.state(whole("copy")).values
    assert 1 == len(driven.list(whole("copy")))


def test_s10_deleting_a_run_keeps_what_later_runs_are_built_on(teller: Teller, driven: Driver) -> None:
    """`delete_for_runs` of an early run leaves the state of later runs: their ancestors stay, unlisted."""
    for n in (7, 8):
        where = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": f"run {n}"}}
        teller.call("invoke", {"log": [f"in {n}"], "n": n}, where, durability=teller.durability)
    before = teller.state().values
    driven.delete_for_runs(["run 7"])

    assert before == teller.state().values
    assert [] == driven.ids(None, filter={"run_id": "run 7"})
    assert [] != driven.ids(None, filter={"run_id": "run 8"})


def test_s10_hidden_ancestors_go_when_nobody_needs_them(
    backend: Any, forms: Callable[[Any], Driver], form: Any, durability: str, loop: Any
) -> None:
    """Two runs are rolled back: what was kept of the first for the second's sake goes with the second."""
    rows = {}
    for name, calls in {"at once": [["run 2", "run 3"]], "one by one": [["run 2"], ["run 3"]]}.items():
        made = Teller(chat, backend.open(name), form, durability, loop)
        for n in (1, 2, 3):
            where = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": f"run {n}"}}
            made.call("invoke", {"log": [f"in {n}"], "n": n}, where, durability=durability)
        for run_ids in calls:
            forms(made.saver).delete_for_runs(run_ids)
        assert ["in 1", 6] == [made.state().values["log"][0], len(made.state().values["log"])]
        rows[name] = stored_rows(backend, name)

    assert rows["at once"] == rows["one by one"]


def test_s10_a_hidden_ancestor_that_is_put_again_is_listed_again(driven: Driver, teller: Teller) -> None:
    """`put` of its id makes it a checkpoint like any other."""
    first = driven.list(whole())[-1]
    driven.prune(["t"])
    driven.put(config(), first.checkpoint, first.metadata, {})

    assert 2 == len(driven.list(whole())) or teller.durability == "exit"
    assert first.checkpoint["id"] == driven.read(first.checkpoint["id"]).checkpoint["id"]


def test_s10_a_pruned_thread_is_deleted_whole(teller: Teller, driven: Driver, backend: Any) -> None:
    """Hidden ancestors go with their thread: nothing of it is left."""
    driven.save("0" * 32, thread="witness")
    driven.prune(["t"])
    many = stored_rows(backend)
    driven.delete_thread("t")
    few = stored_rows(backend)
    teller.run({"log": ["new"], "n": 1})

    assert few < many
    assert ["new", "think 1"] == teller.state().values["log"][:2]
    assert 6 == len(teller.state().values["log"])
