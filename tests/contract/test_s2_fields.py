"""Fields of graphs with many nodes: stored as what differs from a base, read back as they were put."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument
from tests.support.build import VERSIONS, checkpoint, cid, config, metadata

NODES = 40


def chain(count: int, *, version: str = "str", seed: int = 7) -> list[tuple[Checkpoint, dict[str, Any]]]:
    """Checkpoints of a graph of many nodes, each with its new versions: some nodes run and some channels change."""
    rnd, spell = random.Random(seed), VERSIONS[version]
    versions = {f"branch:to:n{node}": spell(1) for node in range(NODES)} | {"n": spell(1)}
    seen: dict[str, dict[str, Any]] = {"__input__": {}} | {f"n{node}": {} for node in range(NODES)}
    made = []
    for number in range(count):
        node = rnd.randrange(NODES)
        changed = {"n": spell(number + 2), f"branch:to:n{node}": spell(number + 2)}
        versions = {**versions, **changed}
        seen = {
            **{name: dict(each) for name, each in seen.items()},
            f"n{node}": {f"branch:to:n{node}": spell(number + 2)},
        }
        if number % 9 == 8:  # a node is added, in the middle of a thread
            seen[f"late{number}"] = {"n": spell(number + 2)}
            versions[f"late{number}"] = spell(number + 2)
        if number % 13 == 12:  # and one goes
            del seen[f"n{number % NODES}"], versions[f"branch:to:n{number % NODES}"]
            seen[f"n{number % NODES}"] = {}
        made.append((checkpoint(cid(number), {"n": number}, versions, versions_seen=seen), changed))
    return made


def put_chain(saver: Any, made: list[tuple[Checkpoint, dict[str, Any]]], thread: str = "t") -> None:
    for number, (each, new) in enumerate(made):
        saver.put(config(thread, id=cid(number - 1) if number else None), each, metadata(number, run_id="r"), new)


def fields(saver: Any, number: int, thread: str = "t") -> dict[str, Any]:
    found = saver.get_tuple(config(thread, id=cid(number))).checkpoint
    return {key: found[key] for key in ("channel_versions", "versions_seen", "updated_channels", "channel_values")}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("reopened", [False, True])
def test_s2_fields_are_read_as_they_were_put(tmp_path: Path, version: str, reopened: bool) -> None:
    """Whatever nodes come and go, and also when a saver that remembers nothing goes on."""
    made, memory = chain(60, version=version), InMemorySaver()
    put_chain(memory, made)
    with LedgerSaver(tmp_path / "runs.db") as saver:
        for number, (each, new) in enumerate(made):
            if reopened and number % 10 == 5:
                saver.recent.__init__()  # type: ignore[misc]  # forgets, as another process would not know
            saver.put(config(id=cid(number - 1) if number else None), each, metadata(number, run_id="r"), new)

        for number in range(60):
            assert fields(memory, number) == fields(saver, number)
            assert list(fields(memory, number)["channel_versions"]) == list(fields(saver, number)["channel_versions"])


def test_s2_a_step_of_a_large_graph_stores_what_it_changed(tmp_path: Path) -> None:
    """Not the versions of every channel and node again."""
    sizes = {}
    for nodes in (NODES, 4 * NODES):
        path = tmp_path / f"{nodes}.db"
        versions = {f"branch:to:n{node}": VERSIONS["str"](1) for node in range(nodes)}
        seen: dict[str, Any] = {f"n{node}": {f"branch:to:n{node}": VERSIONS["str"](1)} for node in range(nodes)}
        with LedgerSaver(path) as saver:
            for number in range(200):
                name = f"branch:to:n{number % nodes}"
                versions = {**versions, name: VERSIONS["str"](number + 2)}
                seen = {**seen, f"n{number % nodes}": {name: VERSIONS["str"](number + 2)}}
                where = config(id=cid(number - 1) if number else None)
                made = checkpoint(cid(number), {"n": 1}, {"n": VERSIONS["str"](1), **versions}, versions_seen=seen)
                saver.put(where, made, metadata(number), {name: versions[name]})
        with sqlite3.connect(path) as connection:
            [[sizes[nodes]]] = connection.execute("SELECT avg(length(body) + length(data)) FROM checkpoint_log")
        whole = len(str(made["channel_versions"])) + len(str(made["versions_seen"]))
        assert sizes[nodes] < whole / 5

    assert sizes[4 * NODES] < 3 * sizes[NODES]  # it grows with the square root


@pytest.mark.parametrize("kept", [[3], [0, 20, 41], [59]])
def test_s2_what_survives_deletions_keeps_its_fields(tmp_path: Path, kept: list[int]) -> None:
    """A base goes to the first survivor that needs it."""
    made = chain(60)
    with LedgerSaver(tmp_path / "runs.db") as saver:
        for number, (each, new) in enumerate(made):
            run = {"run_id": "kept" if number in kept else "gone"}
            saver.put(config(id=cid(number - 1) if number else None), each, metadata(number, **run), new)
        before = {number: fields(saver, number) for number in kept}
        saver.delete_for_runs(["gone"])

        assert before == {number: fields(saver, number) for number in kept}
        assert len(kept) == len(list(saver.list(config())))
        saver.copy_thread("t", "copy")
        saver.delete_thread("t")
        assert before == {number: fields(saver, number, "copy") for number in kept}


def test_s2_putting_a_checkpoint_again_keeps_its_children(tmp_path: Path) -> None:
    """As it is, or another one under its id: whoever inherited its base keeps what it had."""
    made = chain(30)
    with LedgerSaver(tmp_path / "runs.db") as saver:
        put_chain(saver, made)
        before = [fields(saver, number) for number in range(30)]
        for number in (0, 7, 15):
            each, new = made[number]
            saver.put(config(id=cid(number - 1) if number else None), each, metadata(number, run_id="r"), new)
        assert before == [fields(saver, number) for number in range(30)]

        other = checkpoint(cid(0), {"n": "other"}, {"n": VERSIONS["str"](1)})
        saver.put(config(), other, metadata(0), {"n": VERSIONS["str"](1)})
        assert before[1:] == [fields(saver, number) for number in range(1, 30)]
        assert {"n": "other"} == fields(saver, 0)["channel_values"]


def test_s2_a_remembered_parent_that_another_saver_deleted(tmp_path: Path) -> None:
    """The statement that stores a put looks whether its parent, and so its base, is still there."""
    made = chain(20)
    with LedgerSaver(tmp_path / "runs.db") as saver, LedgerSaver(tmp_path / "runs.db") as other:
        put_chain(saver, made[:19])
        other.delete_for_runs(["r"])
        each, new = made[19]
        saver.put_writes(config(id=cid(18)), [("n", 1)], "task")
        saver.put(config(id=cid(18)), each, metadata(19), new)

        assert each["channel_versions"] == fields(saver, 19)["channel_versions"]
        assert each["versions_seen"] == fields(other, 19)["versions_seen"]
        assert {"n": 19} == fields(other, 19)["channel_values"]


@pytest.mark.parametrize("how", ["replaced", "deleted and put again", "copied over"])
def test_s2_a_base_that_another_one_took_the_place_of_is_noticed(tmp_path: Path, how: str) -> None:
    """Its versions differ in their random part only, so that it is laid out in the same way."""
    spell = VERSIONS["str"]
    mine, other = ({f"c{number}": f"{spell(1)}{mark}" for number in range(20)} for mark in "ab")
    below = {**mine, "c5": spell(2)}

    def put(saver: LedgerSaver, versions: dict[str, Any], thread: str = "t", above: str | None = None) -> None:
        id, seen = cid(1 if above else 0), {"n": {"c0": mine["c0"]}}
        saver.put(config(thread, id=above), checkpoint(id, {}, versions, versions_seen=seen), metadata(run_id="r"), {})

    with LedgerSaver(tmp_path / "runs.db") as saver, LedgerSaver(tmp_path / "runs.db") as another:
        put(saver, mine)
        if how == "replaced":
            put(another, other)
        elif how == "deleted and put again":
            another.delete_for_runs(["r"])
            put(another, other)
        else:
            put(another, other, thread="source")
            saver.delete_thread("t")
            saver.copy_thread("source", "t")
        put(saver, below, above=cid(0))

        assert below == fields(another, 1)["channel_versions"]
        assert other == fields(saver, 0)["channel_versions"]


async def test_s2_fields_are_those_of_the_moment_the_put_was_called(tmp_path: Path) -> None:
    """Also when the parent is gone, so that the put is encoded a second time, and the caller has gone on."""
    made = chain(3)
    async with LedgerSaver(tmp_path / "runs.db") as saver, LedgerSaver(tmp_path / "runs.db") as other:
        for number, (each, new) in enumerate(made[:2]):
            made_by = metadata(number, run_id="r")
            await saver.aput(config(id=cid(number - 1) if number else None), each, made_by, new)
        await other.adelete_for_runs(["r"])
        each, new = made[2]
        want = {key: json.loads(json.dumps(each[key])) for key in ("channel_versions", "versions_seen")}  # type: ignore[literal-required]
        putting = asyncio.ensure_future(saver.aput(config(id=cid(1)), each, metadata(2), new))
        await asyncio.sleep(0)
        each["channel_versions"]["n"] = "later"
        for seen in each["versions_seen"].values():
            seen["n"] = "later"
        await putting

        found = await saver.aget_tuple(config(id=cid(2)))
        assert found is not None
        assert want == {key: found.checkpoint[key] for key in want}  # type: ignore[literal-required]


@pytest.mark.parametrize("odd", [None, [1], {"a": float("nan")}, {3: "x"}])
def test_s2_odd_fields_are_read_back_or_refused_by_name(tmp_path: Path, odd: Any) -> None:
    """Never stored as something else, and never a stranger's error."""
    [(each, new)] = chain(1)
    each["versions_seen"]["n0"] = odd
    with LedgerSaver(tmp_path / "runs.db") as saver:
        if isinstance(odd, dict):
            with pytest.raises(InvalidArgument, match="versions_seen"):
                saver.put(config(), each, metadata(), new)
        else:
            saver.put(config(), each, metadata(), new)
            assert odd == fields(saver, 0)["versions_seen"]["n0"]
