"""The command `crash-test`: what the harness finds, as a table, as JSON and as an exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import run_python

ROOT = Path(__file__).resolve().parents[2]
CRASHING = "tests.support.crashing"
COMMAND = ["-m", "langgraph_ext.cli", "crash-test"]
SCENARIO = """\
from tests.support import crashing

def sound(url, effects):
    crashing.sound(url, effects)

def repeats(url, effects):
    for _ in range(2 - effects.count("done")):
        effects.record("done")
    crashing.sound(url, effects)
    print("done twice")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the command runs, with a module in it that is found nowhere else."""
    (tmp_path / "here.py").write_text(SCENARIO)
    (tmp_path / "tmp").mkdir()
    return tmp_path


def crash_test(folder: Path, *args: object, fresh: bool = False) -> subprocess.CompletedProcess[str]:
    return run_python(*COMMAND, *args, cwd=folder, env=environment(folder), fresh=fresh, timeout=90)


def environment(folder: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    named = {"PYTHONPATH": ROOT, "TMPDIR": folder / "tmp", "LANGGRAPH_EXT_DB": folder / "mine.db"}
    return ours | {"NO_COLOR": "1"} | {name: str(path) for name, path in named.items()}


def test_a_sound_scenario_is_status_0(folder: Path) -> None:
    """And leaves nothing behind, wherever the environment says that runs are."""
    ran = crash_test(folder, "here:sound", "--points", "after", fresh=True)
    assert (0, "here:sound: 5 boundaries, 5 kills, sound\n", "") == (ran.returncode, ran.stdout, ran.stderr)
    assert [] == list((folder / "tmp").iterdir())
    assert not (folder / "mine.db").exists()


def test_a_finding_is_status_1_and_says_how_to_repeat_it(folder: Path) -> None:
    ran = crash_test(folder, f"{CRASHING}:charges_again", "--points", "before,after", "--db", "new.db")
    assert (1, "") == (ran.returncode, ran.stderr)
    title, heads, finding, look, repeat = ran.stdout.splitlines()
    assert title.endswith("10 kills, 1 finding")
    assert ["BOUNDARY", "POINT", "FINDING", "KILLED"] == heads.split()[:4]
    assert ["4", "before", "effect_repeated", "visit.succeeded", "charge"] == finding.split()[:5]
    assert f"Look into the first one: {folder / 'new-4-before.db'}" == look
    assert f"Repeat it: langgraph-ext crash-test {CRASHING}:charges_again --only 4:before" == repeat
    assert (folder / "new-4-before.db").exists()


@pytest.mark.slow
def test_one_kill_as_json(folder: Path) -> None:
    """The database with the finding is kept, also in the temporary folder."""
    ran = crash_test(folder, f"{CRASHING}:charges_again", "--only", "4:before", "--json")
    told = json.loads(ran.stdout)
    assert (1, "", False, 1) == (ran.returncode, ran.stderr, told["sound"], told["kills"])
    [finding] = told["findings"]
    assert (4, "before", "effect_repeated") == (finding["boundary"], finding["point"], finding["code"])
    assert Path(finding["database"]).exists()


@pytest.mark.slow
def test_what_is_wrong_undisturbed_is_kept_too(folder: Path) -> None:
    ran = crash_test(folder, "here:repeats")
    assert (1, "") == (ran.returncode, ran.stderr)
    database = Path(ran.stdout.splitlines()[-1].removeprefix("Look into the first one: "))
    assert (True, folder / "tmp") == (database.exists(), database.parents[1])


@pytest.mark.slow
@pytest.mark.parametrize("allowed", [["2"], ["any"], ["done=2"], ["done=any", "mail=1"]])
def test_repetitions_may_be_allowed(folder: Path, allowed: list[str]) -> None:
    options = [part for each in allowed for part in ("--at-most", each)]
    assert 0 == crash_test(folder, "here:repeats", "--only", "1:before", *options).returncode


@pytest.mark.slow
def test_values_may_be_left_out(folder: Path) -> None:
    target, often = "tests.support.crashing_ends:keeps_another_value", ["--at-most", "any", "--only", "4:before"]
    assert 1 == crash_test(folder, target, *often, "--max-broken", 1, "--workers", 2).returncode
    ran = crash_test(folder, target, *often, "--ignore-state", "tries", "--ignore-fact", "nothing")
    assert (0, "") == (ran.returncode, ran.stderr)


@pytest.mark.slow
def test_a_kill_that_nobody_comes_to_is_status_1(folder: Path) -> None:
    ran = crash_test(folder, "here:sound", "--only", "99:before")
    assert (1, "") == (ran.returncode, ran.stderr)
    assert "nothing_killed" in ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_terminal_is_shown_how_far_it_is(folder: Path, as_json: list[str]) -> None:
    """On stderr, and nothing of it is left."""
    mine, theirs = os.openpty()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(_read, mine)
        command = [sys.executable, "-W", "error", *COMMAND, "here:sound", "--only", "1:after", *as_json]
        options: Any = {"stdout": subprocess.PIPE, "stderr": theirs, "timeout": 90}
        subprocess.run(command, cwd=folder, env=environment(folder), check=False, **options)
        os.close(theirs)
        shown = reading.result()
    assert "killing" in shown
    assert re.search(r"1/1 .*kills, 0 broken", shown)


def _read(terminal: int) -> str:
    """All that is printed to it, until nobody has it open any more."""
    parts: list[bytes] = []
    with suppress(OSError):  # Linux says so by an error
        while part := os.read(terminal, 4096):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode(errors="replace")


@pytest.mark.slow
def test_what_a_broken_module_prints_is_short(folder: Path) -> None:
    """The user's own line, and no frame of the harness."""
    (folder / "broken.py").write_text("1 / 0\n")
    ran = crash_test(folder, "broken:sound")
    traceback, *_, last = ran.stderr.splitlines()
    assert ("Traceback (most recent call last):", True) == (traceback, "1 / 0" in ran.stderr)
    assert "langgraph_ext" not in ran.stderr
    assert "ZeroDivisionError" in last


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["nowhere:sound"], "No module named 'nowhere'"),
        (["here"], "'here' names no scenario"),
        (["here.py:sound"], "write 'here:sound'"),
        (["here:nothing"], "nothing"),
        (["here:sound", "--points", "between"], "it must be some of"),
        (["here:sound", "--only", "after"], "--only is 'after'"),
        (["here:sound", "--only", "x:after"], "--only is 'x:after'"),
        (["here:sound", "--at-most", "mail=x"], "--at-most is 'mail=x'"),
        (["here:sound", "--at-most", "1", "--at-most", "2"], "--at-most is '1'"),
        (["here:sound", "--db", "here.py"], "name a new file"),
        (["here:sound", "--db", "postgresql://u:secret@h/d"], "PostgreSQL is not supported yet"),
    ],
)
def test_what_cannot_be_done_is_status_2(folder: Path, args: list[str], said: str) -> None:
    """Nothing is printed to stdout, and no folder is left."""
    ran = crash_test(folder, *args)
    assert (2, "") == (ran.returncode, ran.stdout)
    [line] = ran.stderr.splitlines()
    assert said in line
    assert "secret" not in ran.stderr
    assert [] == list((folder / "tmp").iterdir())
