"""S10, S9: graphs run while others sweep, prune, delete, copy and back up: nobody loses what is not taken from him."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.database import open_database
from langgraph_ext.errors import ConflictError
from tests.support.faults import full
from tests.support.growing import check_strands

TURNS = 60 if full() else 12

LONG = "so " * 2000

TURN = ["in", LONG, "b", "c"]


class Chat(TypedDict):
    log: list[str]


def says(word: str) -> Any:
    return lambda state: {"log": [*state["log"], word]}


def chat(saver: Any) -> Any:
    inner = StateGraph(Chat).add_node("b", says("b")).add_edge(START, "b").compile()
    builder = StateGraph(Chat).add_node("a", says(LONG)).add_node("inner", inner).add_node("c", says("c"))
    return builder.add_edge(START, "a").add_edge("a", "inner").add_edge("inner", "c").compile(checkpointer=saver)


def opened(path: Path) -> LedgerSaver:
    """With a connection of its own, as a process has."""
    return LedgerSaver(open_database(path, fsync="normal"))


def where(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def turns(path: Path, thread: str, deleted: Callable[[], object] | None = None) -> list[str]:
    """Run so many of them; the state in the end. `deleted` is called if somebody has deleted the thread, if he may."""
    log: list[str] = []
    with opened(path) as saver:
        app = chat(saver)
        for _ in range(TURNS):
            try:
                log = app.invoke({"log": [*log, "in"]}, where(thread), durability="async")["log"]
            except ConflictError as error:
                if deleted is None or error.code != "thread_deleted":
                    raise
                deleted()
                log = []
            else:
                assert TURN == log[-4:]
    return log


def takes_away(saver: LedgerSaver, number: int) -> None:
    saver.sweep(keep_last=1 + number % 2, events_older_than_seconds=0)
    saver.copy_thread("one", f"copy {number}")
    saver.delete_thread("deleted", keep_ledger=number % 2 == 0)
    saver.prune(["one", "two", "deleted"])
    if number % 2:
        saver.delete_thread(f"copy {number}")


def sweeps_and_backs_up(saver: LedgerSaver, number: int) -> None:
    copy = Path(f"{saver.database.name}.{number}")
    saver.sweep(keep_last=1)
    saver.ledger.backup(copy)
    with RunLedger(copy) as ledger:
        assert [] == ledger.verify()
    copy.unlink()


def until(done: threading.Event, path: Path, act: Callable[[LedgerSaver, int], None]) -> int:
    number = 0
    with opened(path) as saver:
        while not done.is_set():
            number += 1
            act(saver, number)
    return number


def test_s10_s9_graphs_run_while_others_take_away(tmp_path: Path) -> None:
    """Two threads go on from turn to turn; what is deleted meanwhile begins anew; copies and backups are sound."""
    path, done = tmp_path / "runs.db", threading.Event()
    with opened(path) as saver:
        saver.setup()
    with ThreadPoolExecutor(5) as pool:
        around = [pool.submit(until, done, path, act) for act in (takes_away, sweeps_and_backs_up)]
        running = [pool.submit(turns, path, thread) for thread in ("one", "two")]
        running.append(pool.submit(turns, path, "deleted", lambda: None))
        try:
            logs = [each.result() for each in running]
        finally:
            done.set()
        assert all(each.result() for each in around)

    assert [TURN * TURNS] * 2 == logs[:2]
    check_strands(path, trimmed=True)
    with opened(path) as saver:
        assert [] == saver.ledger.verify()
        copied = [each.checkpoint["channel_values"] for each in saver.list(None) if _is_copy(each)]
        assert all(set(values.get("log", [])) <= set(TURN) for values in copied)


def _is_copy(found: Any) -> bool:
    return bool(found.config["configurable"]["thread_id"].startswith("copy"))
