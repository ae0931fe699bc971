"""S1: what LangGraph programs do with a saver, found by trying: each works here as with the saver it replaces."""

from __future__ import annotations

import asyncio
import os
import uuid
from enum import StrEnum
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument
from tests.support.build import checkpoint, cid, config, metadata
from tests.support.driver import Driver


class Step(StrEnum):
    ASK = "ask"


class State(TypedDict):
    n: int


def test_s1_nodes_may_be_named_by_an_enumeration(saver: LedgerSaver) -> None:
    """A `StrEnum` member is text: LangGraph takes it for a node's name, and so do we."""
    builder = StateGraph(State).add_node(Step.ASK, lambda state: {"n": state["n"] + 1}).add_edge(START, Step.ASK)
    app = builder.compile(checkpointer=saver)

    assert {"n": 2} == app.invoke({"n": 1}, {"configurable": {"thread_id": "t"}})
    assert {"n": 2} == app.get_state({"configurable": {"thread_id": "t"}}).values


@pytest.mark.parametrize("new", [{}, {"a": 1}], ids=["not listed", "listed as new"])
def test_s2_a_put_through_its_own_config_keeps_its_values(store: Driver, new: dict[str, Any]) -> None:
    """`put` returns the config of what it stored; putting it again there, with other metadata, loses nothing."""
    stored = store.put(config(), checkpoint(cid(1), {"a": "one", "b": "two"}, {"a": 1, "b": 1}), metadata(), {"a": 1})
    store.put(stored, checkpoint(cid(1), {"a": "one", "b": "two"}, {"a": 1, "b": 1}), metadata(1), new)

    assert {"a": "one", "b": "two"} == store.read().checkpoint["channel_values"]


def test_s2_parents_in_a_loop_lose_no_value(store: Driver) -> None:
    """A checkpoint that is put again below its own child: both are read as they were put."""
    versions = {"a": 1}
    first = store.put(config(), checkpoint(cid(1), {"a": "one"}, versions), metadata(), versions)
    second = store.put(first, checkpoint(cid(2), {"a": "one"}, versions), metadata(1), {})
    store.put(second, checkpoint(cid(1), {"a": "one"}, versions), metadata(2), {})

    assert [{"a": "one"}] * 2 == [found.checkpoint["channel_values"] for found in store.list(config())]


def test_s2_a_value_without_a_version_is_read_as_it_was_put_last(store: Driver) -> None:
    """Without a version nobody can tell that it did not change."""
    first = store.put(config(), checkpoint(cid(1), {"a": "old"}, {}), metadata(), {})
    store.put(first, checkpoint(cid(2), {"a": "new"}, {}), metadata(1), {})

    assert {"a": "new"} == store.read().checkpoint["channel_values"]


@pytest.mark.parametrize("run_id", [uuid.uuid4(), 7], ids=["a UUID", "a number"])
def test_s1_a_run_is_deleted_whatever_its_id_is_made_of(store: Driver, run_id: object) -> None:
    """Ids of runs are UUIDs as often as text."""
    store.put(config(), checkpoint(cid(1)), metadata(run_id=run_id), {})
    store.call("delete_for_runs", [run_id])

    assert [] == store.ids(config())


async def test_s1_setup_may_be_awaited(tmp_path: Path) -> None:
    """AsyncSqliteSaver's users write `await saver.setup()`."""
    async with LedgerSaver(tmp_path / "runs.db") as saver:
        await saver.setup()
        assert (tmp_path / "runs.db").stat().st_size > 0


def test_s1_setup_is_done_when_it_returns(tmp_path: Path) -> None:
    """SqliteSaver's and PostgresSaver's users write `saver.setup()`."""
    with LedgerSaver(tmp_path / "runs.db") as saver:
        saver.setup()
        assert (tmp_path / "runs.db").stat().st_size > 0


class Unusual(JsonPlusSerializer):
    """A serde whose reading ends in an unusual way."""

    raised: BaseException = StopIteration("no more")

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        raise self.raised


@pytest.mark.parametrize("raised", [StopIteration("no more"), GeneratorExit(), asyncio.CancelledError()])
async def test_s1_what_a_serde_raises_reaches_the_caller_and_ends_nothing_else(
    tmp_path: Path, raised: BaseException
) -> None:
    """No coroutine waits for ever, and the saver lives on."""
    serde = Unusual()
    serde.raised = raised
    async with LedgerSaver(tmp_path / "runs.db", serde=serde) as saver:
        await saver.aput(config(), checkpoint(cid(1), {"a": 1}, {"a": 1}), metadata(), {"a": 1})
        for _ in range(2):
            with pytest.raises((RuntimeError, GeneratorExit, asyncio.CancelledError)):
                await asyncio.wait_for(saver.aget_tuple(config()), 5)
        await saver.aput(config(), checkpoint(cid(2), {}, {}), metadata(), {})


def test_s8_a_saver_made_before_a_fork_may_be_used_in_the_child(tmp_path: Path) -> None:
    """A server that loads the application first and forks then: nothing was opened yet."""
    saver = LedgerSaver(tmp_path / "runs.db")
    child = os.fork()
    if child == 0:
        saver.put(config(), checkpoint(cid(1)), metadata(), {})
        os._exit(0 if saver.get_tuple(config()) is not None else 1)

    assert (child, 0) == os.waitpid(child, 0)
    assert saver.get_tuple(config()) is not None
    saver.close()


@pytest.mark.parametrize("url", ["mysql://u:s3cret@h/d", "postgresql://u:s3cret@h/d", "postgresql+x://u:s3cret@h/d"])
def test_s7_a_password_is_in_no_message(url: str) -> None:
    """An address that is refused may hold one."""
    with pytest.raises(InvalidArgument) as caught:
        LedgerSaver(url)

    assert "s3cret" not in str(caught.value) + repr(caught.value.details)


def test_s7_a_connection_is_no_address(tmp_path: Path) -> None:
    """`SqliteSaver(sqlite3.connect(…))` is how many begin: the error says what to pass instead."""
    import sqlite3

    connection = sqlite3.connect(tmp_path / "old.db")
    with pytest.raises(InvalidArgument, match="pass the path"):
        LedgerSaver(connection)  # type: ignore[arg-type]
    connection.close()
