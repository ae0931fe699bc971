"""The commands `prune`, `sweep` and `backup`, run as people and as programs run them."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.cli.spans import seconds_of
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.owners import Owner
from tests.support.apps import asks, line, says
from tests.support.build import whole
from tests.support.pages import ROOT
from tests.support.programs import run_python


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Three turns on each of two threads, of which one asks: 9 checkpoints, and 12."""
    path = tmp_path / "runs.db"
    with LedgerSaver(path) as saver:
        for thread, node in (("asking", asks("sure?")), ("done", says("b"))):
            for turn in range(3):
                where: Any = {"configurable": {"thread_id": thread}, "metadata": {"run_id": f"{thread} {turn}"}}
                line(saver, a=says("a"), b=node).invoke({"log": []}, where, durability="sync")
    return path


def ask(db: Path, *args: str, fresh: bool = False) -> tuple[int, str, str]:
    ran = run_python("-m", "langgraph_ext.cli", *args, "--db", db, cwd=db.parent, env=os.environ, fresh=fresh)
    return ran.returncode, ran.stdout, ran.stderr


def listed(db: Path) -> dict[str, int]:
    with LedgerSaver(db) as saver:
        return {thread: len(list(saver.list(whole(thread)))) for thread in ("asking", "done")}


def at_a_terminal(db: Path, *args: str, says: str) -> tuple[int, str]:
    """Run a command at a terminal of its own, answer what it asks, and give back its status and all it has shown."""
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "langgraph_ext.cli", *args, "--db", str(db)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=db.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while True:
        ready, _, _ = select.select([mine], [], [], 30)
        assert ready, shown
        try:
            more = os.read(mine, 4096)
        except OSError:  # it has ended
            break
        if not more:
            break
        shown += more
        if says and b"Go on?" in shown:
            os.write(mine, f"{says}\n".encode())
            says = ""
    os.close(mine)
    return process.wait(30), shown.decode()


def test_prune_says_what_it_would_take_and_takes_nothing(db: Path) -> None:
    """With --dry-run, and where nobody can be asked."""
    before = listed(db)
    code, out, _ = ask(db, "prune", "done", "asking", "--dry-run")
    assert (0, True) == (code, "would prune: 19 checkpoints of 2 threads" in out)
    assert "open questions" in out
    code, _, err = ask(db, "prune", "done")

    assert (2, True, before) == (code, "--yes" in err, listed(db))


def test_prune_takes_what_it_said(db: Path) -> None:
    code, out, err = ask(db, "prune", "done", "nobody", "--keep", "2", "--yes", fresh=True)
    assert (0, "done: 10 checkpoints of 1 thread", "") == (code, out.splitlines()[-1], err)
    told = json.loads(ask(db, "prune", "done", "--json", "--yes")[1])

    expected = {"thread_id": "done", "checkpoints": 1, "hidden": 0, "events": 1, "deleted": False}
    assert {"dry_run": False, "threads": [expected]} == told
    assert 1 == listed(db)["done"]
    assert {"dry_run": False, "threads": [expected | {"checkpoints": 0, "events": 0}]} == json.loads(
        ask(db, "prune", "done", "--json", "--yes")[1]
    )


@pytest.mark.parametrize("keeps", [False, True])
def test_prune_deletes_threads(db: Path, keeps: bool) -> None:
    options = ["--keep-ledger"] if keeps else []
    code, out, _ = ask(db, "prune", "asking", "done", "--delete", "--yes", *options, fresh=keeps)
    with RunLedger(db) as ledger:
        statuses = [run.status for run in ledger.runs()]

    assert (0, True) == (code, "would delete: " in out)
    assert {"asking": 0, "done": 0} == listed(db)
    assert (["succeeded"] * 3 + ["cancelled"] * 3 if keeps else []) == statuses


def test_a_thread_that_somebody_runs_is_refused(db: Path) -> None:
    with LedgerSaver(db) as saver:
        leases.take(saver.database, thread_id="done", owner=Owner.here("somebody"))
        code, out, err = ask(db, "prune", "done", "--yes")

    assert (2, True, True) == (code, "a live lease" in out, "thread_busy" in err)


@pytest.mark.parametrize(("answer", "left"), [("y", 1), ("n", 12)])
def test_a_person_is_asked(db: Path, answer: str, left: int) -> None:
    code, shown = at_a_terminal(db, "prune", "done", says=answer)

    assert (0, {"y": "done: 11 checkpoints", "n": "nothing was taken away"}[answer] in shown) == (code, True)
    assert left == listed(db)["done"]


def test_a_sweep_says_what_it_would_do_and_what_it_left_alone(db: Path) -> None:
    before = listed(db)
    code, out, _ = ask(db, "sweep", "--older-than", "0", "--events-older-than", "0s", "--dry-run", fresh=True)
    assert (0, before) == (code, listed(db))
    assert "would take away: 11 checkpoints of 1 thread, " in out
    assert "left alone: 1 with open questions" in out
    code, out, _ = ask(db, "sweep", "--older-than", "0", "--events-older-than", "0s", "--yes")

    assert (0, True) == (code, "done: 11 checkpoints of 1 thread" in out)
    assert {**before, "done": 1} == listed(db)


def test_programs_are_told_what_a_sweep_did(db: Path) -> None:
    told = json.loads(ask(db, "sweep", "--keep-last", "2", "--json", "--yes")[1])

    expected = {"threads": 2, "pruned": 1, "deleted": 0, "skipped": {"question_open": 1}, "checkpoints": 10}
    assert {"dry_run": False, "swept": {**expected, "hidden": 0, "events": 0, "batches": 1}} == told


def test_a_sweep_shows_a_terminal_how_far_it_is(db: Path) -> None:
    code, shown = at_a_terminal(db, "sweep", "--keep-last", "1", says="y")

    assert (0, True) == (code, "threads," in shown)
    assert "sweeping" in shown


def test_a_backup_is_made_and_never_over_another_file(db: Path) -> None:
    code, out, _ = ask(db, "backup", "copy.db", fresh=True)
    assert (0, True) == (code, out.startswith(f"copied to {db.parent / 'copy.db'}: "))
    code, _, err = ask(db, "backup", "copy.db")
    assert (2, True) == (code, "already" in err)
    told = json.loads(ask(db, "backup", "other.db", "--json")[1])["backup"]

    assert (str(db.parent / "other.db"), (db.parent / "other.db").stat().st_size) == (told["path"], told["size_bytes"])
    assert listed(db) == listed(db.parent / "copy.db")


@pytest.mark.parametrize(
    "args",
    [
        ["sweep"],
        ["sweep", "--keep-last", "0", "--yes"],
        ["sweep", "--older-than", "soon"],
        ["prune"],
        ["prune", "done", "--keep", "0"],
        ["prune", "done", "--keep-ledger"],
        ["backup"],
        ["backup", "no/folder/copy.db"],
    ],
)
def test_what_cannot_be_is_refused(db: Path, args: list[str]) -> None:
    before = listed(db)
    code, _, err = ask(db, *args)

    assert (2, True, before) == (code, bool(err), listed(db))


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for args in (["prune", "t"], ["sweep", "--keep-last", "1"], ["backup", "copy.db"]):
        assert 2 == ask(tmp_path / "nothing.db", *args)[0]
    assert [] == list(tmp_path.iterdir())


SPANS = {"90": 90, "1.5h": 5400, "30d": 2_592_000, "2w": 1_209_600, "45m": 2700, "0s": 0}


@pytest.mark.parametrize("span", SPANS)
def test_spans_of_time_are_read(span: str) -> None:
    assert SPANS[span] == seconds_of(span, "--older-than")


@pytest.mark.parametrize("span", ["", "d", "-1d", "1 d", "1y", "1e3", "nan"])
def test_what_is_no_span_of_time_is_refused(span: str) -> None:
    with pytest.raises(InvalidArgument, match="--older-than"):
        seconds_of(span, "--older-than")
