"""Case E: operations of a saver called directly, one at a time, on a database that already holds something.

Before the clock counts there are many threads of two checkpoints each, and one big thread whose first half is stored. A
checkpoint holds about 6 KB in four channels, of which two change at every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.types import Durability

from bench.driver import Call, Driver, Saver, config_of
from bench.savers import Contestant
from bench.sizes import Size

__all__ = ["OPERATIONS", "operations"]

OPERATIONS = (
    "put",
    "put_writes(3)",
    "get latest, same thread",
    "get latest, any thread",
    "get by id",
    "list(10)",
    "list(10), filter",
    "delete small",
    "delete big",
)

_BIG = config_of("big", checkpoint_ns="")


def operations(contestant: Contestant, folder: Path, _durability: Durability | None, size: Size) -> dict[str, float]:
    """Microseconds for each operation: the median of its calls."""
    with contestant.open(folder) as driver:
        for number in range(size.threads):
            driver.timed("put", _puts(driver.saver, _small(number), 2)[0])
        puts, ids = _puts(driver.saver, "big", size.big)
        took = {
            "put": driver.timed("put", puts)[size.big // 2 :],
            "put_writes(3)": driver.timed("put_writes", _writes(ids[-size.writes :])),
            **_reads(driver, ids, size),
        }
        _check(driver, ids, size)
        took["delete small"] = driver.timed("delete_thread", [((_small(n),), {}) for n in range(size.deletes)])
        took["delete big"] = driver.timed("delete_thread", [(("big",), {})])
        _check_gone(driver)
    return {operation: median(took[operation]) * 1e6 for operation in OPERATIONS}


def _reads(driver: Driver, ids: Sequence[str], size: Size) -> dict[str, list[float]]:
    chosen = [ids[number * 37 % len(ids)] for number in range(size.gets)]
    others = [_small(number * 7 % size.threads) for number in range(size.threads)]
    return {
        "get latest, same thread": driver.timed("get_tuple", [((_BIG,), {})] * size.gets),
        "get latest, any thread": driver.timed(
            "get_tuple", [((config_of(thread, checkpoint_ns=""),), {}) for thread in others]
        ),
        "get by id": driver.timed("get_tuple", [((_at(each),), {}) for each in chosen]),
        "list(10)": driver.timed("list", [((_BIG,), {"limit": 10})] * size.lists),
        "list(10), filter": driver.timed("list", [((_BIG,), _filtered(size))] * size.filtered),
    }


def _check(driver: Driver, ids: Sequence[str], size: Size) -> None:
    """A saver that lost or invented something would be fast for the wrong reason."""
    newest = driver.call("get_tuple", _BIG)
    assert newest.checkpoint["id"] == ids[-1]
    assert len(newest.pending_writes) == 3
    assert newest.checkpoint["channel_values"]["n"] == size.big - 1
    listed = driver.call("list", _BIG, limit=10)
    assert [found.checkpoint["id"] for found in listed] == list(ids[: -min(10, size.big) - 1 : -1])
    [match] = driver.call("list", _BIG, **_filtered(size))
    assert match.checkpoint["id"] == ids[size.big // 2]


def _check_gone(driver: Driver) -> None:
    assert driver.call("get_tuple", _BIG) is None
    assert driver.call("get_tuple", config_of(_small(0), checkpoint_ns="")) is None


def _small(number: int) -> str:
    return f"t{number:05d}"


def _at(checkpoint_id: str) -> Any:
    return config_of("big", checkpoint_ns="", checkpoint_id=checkpoint_id)


def _filtered(size: Size) -> dict[str, Any]:
    return {"limit": 10, "filter": {"step": size.big // 2}}


def _writes(ids: Sequence[str]) -> list[Call]:
    """What an ordinary task writes, for each of these checkpoints."""
    writes = [("messages", [HumanMessage("w" * 300, id="q")]), ("n", 7), ("branch:to:b", None)]
    return [
        ((_at(each), writes, f"task-{number}"), {"task_path": "~__pregel_pull, a"}) for number, each in enumerate(ids)
    ]


def _puts(saver: Saver, thread: str, length: int) -> tuple[list[Call], list[str]]:
    """The calls that store a thread of `length` checkpoints, and the checkpoints' ids."""
    calls: list[Call] = []
    ids: list[str] = []
    for checkpoint, metadata, new_versions in _chain(saver, thread, length):
        parent = {"checkpoint_id": ids[-1]} if ids else {}
        calls.append(((config_of(thread, checkpoint_ns="", **parent), checkpoint, metadata, new_versions), {}))
        ids.append(checkpoint["id"])
    return calls, ids


def _chain(saver: Saver, thread: str, length: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Checkpoints that follow each other, with their metadata and the versions that are new in each."""
    messages = [HumanMessage("m" * 150, id=f"{thread}{number}") for number in range(10)]
    values = {"messages": messages, "doc": "d" * 4000, "plan": {"steps": ["s" * 40] * 10}, "n": 0}
    version = saver.get_next_version(None, None)
    versions = dict.fromkeys(values, version)
    seen = {"__input__": {}, "a": {"n": version}, "b": {"messages": version}}
    for step in range(length):
        new = dict(versions)
        if step:
            version = saver.get_next_version(version, None)
            new = {"n": version, "messages": version}
            last = HumanMessage("m" * 150 + str(step), id=f"{thread}x{step}")
            values = {**values, "n": step, "messages": [*messages[:-1], last]}
            versions = {**versions, **new}
            seen = {**seen, "a": {"n": version}}
        checkpoint = {
            "v": 4,
            "ts": "2026-01-01T00:00:00+00:00",
            "id": str(uuid6(clock_seq=step)),
            "channel_values": values,
            "channel_versions": versions,
            "versions_seen": seen,
            "updated_channels": list(new),
        }
        yield checkpoint, {"source": "loop", "step": step, "parents": {}, "run_id": f"r{step}"}, new
