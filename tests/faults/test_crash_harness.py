"""The crash harness: it finds what a crash breaks in a user's graph, names it, repeats it, and never hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import RunLedger
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing import CrashReport, EffectLog, crash_at_every_commit
from tests.support.crashing import sound

ROOT = Path(__file__).resolve().parents[2]

Crash = Callable[..., CrashReport]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "crash.db"


@pytest.fixture
def crash(db: Path) -> Crash:
    """The harness, on a scenario of `tests.support.crashing`."""

    def run(name: str, **options: Any) -> CrashReport:
        return crash_at_every_commit(f"tests.support.crashing:{name}", db=db, **options)

    return run


def codes(report: CrashReport) -> set[str]:
    return {finding.code for finding in report.findings}


# -- sound ones


def test_a_sound_graph_is_found_sound(crash: Crash, db: Path) -> None:
    """Killed before, inside and after each commit; nothing but the undisturbed run's database is left."""
    report = crash("sound")
    report.assert_sound()
    assert (True, None, ()) == (report.sound, report.first_broken, report.findings)
    assert report.boundaries >= 3
    assert report.kills > 2 * report.boundaries  # some have several insides
    assert 0 == report.not_reached
    assert {"crash.db", "crash.db.effects", "crash.db.output"} == {path.name for path in db.parent.iterdir()}
    assert f"tests.support.crashing:sound: {report.boundaries} boundaries, {report.kills} kills" in str(report)


@pytest.mark.slow
def test_a_sound_graph_is_found_sound_on_an_event_loop(crash: Crash) -> None:
    """Should its commits vary in number, a kill that is not reached is counted, neither a hang nor a finding."""
    report = crash("sound_async", points=["before", "after"])
    report.assert_sound()
    assert 2 * report.boundaries == report.kills + report.not_reached


@pytest.mark.slow
def test_a_graph_that_asks_is_found_sound(crash: Crash) -> None:
    report = crash("asks")
    report.assert_sound()
    assert report.boundaries >= 6


@pytest.mark.slow
def test_tasks_that_race_are_found_sound(crash: Crash) -> None:
    """Whatever order their commits come in, every kill is made or counted as not reached."""
    report = crash("fans_out")
    report.assert_sound()
    assert report.kills + report.not_reached > 2 * report.boundaries >= 14


@pytest.mark.slow
def test_every_point_of_an_async_graph(crash: Crash) -> None:
    crash("sound_async").assert_sound()


@pytest.mark.slow
@pytest.mark.parametrize(("at_most", "sound"), [({"charge": 2}, True), (None, True), ({"mail": 2}, False)])
def test_a_repetition_that_is_allowed_is_no_finding(crash: Crash, at_most: Any, sound: bool) -> None:
    """By key, or for all."""
    report = crash("charges_again", at_most=at_most, only=(4, "before"))
    assert (1, sound) == (report.kills, report.sound)


# -- planted bugs


@pytest.mark.parametrize("name", ["charges_again", pytest.param("charges_again_async", marks=pytest.mark.slow)])
def test_an_effect_that_is_repeated_is_found(crash: Crash, name: str) -> None:
    """The first broken boundary is named: its effect is done, and what it wrote is not committed yet."""
    report = crash(name, points=["before"])
    first = report.first_broken
    assert first is not None
    assert {"effect_repeated"} == codes(report)
    assert "effect 'charge' happened 2 times, 1 allowed" == first.message
    assert (4, "before") == first.only
    assert "visit.succeeded charge" == first.transaction


@pytest.mark.slow
def test_a_finding_can_be_repeated_alone(crash: Crash) -> None:
    """By what it says itself."""
    first = crash("charges_again", points=["before"]).first_broken
    assert first is not None
    again = crash("charges_again", only=first.only)
    assert (1, 1) == (again.kills, len(again.findings))
    assert first.only == again.findings[0].only


@pytest.mark.slow
def test_a_finding_leaves_its_files_and_what_was_printed(crash: Crash) -> None:
    first = crash("charges_again", points=["before"]).first_broken
    assert first is not None
    assert 2 == EffectLog(f"{first.database}.effects").count("charge")
    assert 2 == first.output.count("charged")
    with RunLedger(first.database) as ledger:
        assert ["succeeded"] == [str(run.status) for run in ledger.runs()]


@pytest.mark.slow
def test_assert_sound_says_what_to_do(crash: Crash) -> None:
    report = crash("charges_again", points=["before"])
    first = report.first_broken
    assert first is not None
    with pytest.raises(AssertionError) as raised:
        report.assert_sound()
    for said in (str(report), "    charged\n", first.database, f"only={first.only!r}", first.message):
        assert said in str(raised.value)


@pytest.mark.slow
def test_inside_strikes_between_two_statements(crash: Crash) -> None:
    """It is said of what, and one of them can be repeated."""
    report = crash("announces_again", points=["inside"])
    found = [(finding.boundary, finding.point) for finding in report.findings]
    assert {"effect_repeated"} == codes(report)
    assert [(1, f"inside:{statement}") for statement in range(1, len(found) + 1)] == found
    assert {"within run.started, the first checkpoint"} >= {finding.transaction for finding in report.findings[:1]}


@pytest.mark.slow
def test_one_inside_can_be_repeated_alone(crash: Crash) -> None:
    report = crash("announces_again", only=(1, "inside:2"))
    assert (1, [(1, "inside:2")]) == (report.kills, [finding.only for finding in report.findings])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("charges_by_another_name", {"effect_unexpected"}),
        ("forgets", {"effect_missing", "run_status"}),
    ],
)
def test_other_bugs_are_found(crash: Crash, name: str, expected: set[str]) -> None:
    assert expected == codes(crash(name, points=["before", "after"]))


# -- scenarios that do not come back


def test_a_scenario_that_hangs_is_a_finding(crash: Crash) -> None:
    report = crash("hangs_when_gone_on_with", only=(1, "after"), timeout_seconds=1)
    assert {"hangs"} == codes(report)
    assert report.first_broken is not None
    assert "waiting for ever" in report.first_broken.output


@pytest.mark.slow
def test_a_scenario_that_raises_is_a_finding(crash: Crash) -> None:
    report = crash("raises_when_gone_on_with", only=(1, "after"), resumes=2)
    assert [("raised", "the scenario raised ValueError: no going on")] == [(f.code, f.message) for f in report.findings]
    assert report.first_broken is not None
    assert 2 == report.first_broken.output.count("Traceback")


@pytest.mark.slow
def test_a_scenario_that_dies_is_a_finding(crash: Crash) -> None:
    report = crash("dies_when_gone_on_with", only=(1, "after"))
    assert ["the process ended with exit code 7 before the scenario returned"] == [f.message for f in report.findings]


@pytest.mark.slow
def test_a_scenario_may_be_gone_on_with_several_times(crash: Crash) -> None:
    assert {"raised"} == codes(crash("raises_once_when_gone_on_with", only=(2, "after"), at_most=None))
    crash("raises_once_when_gone_on_with", only=(2, "after"), resumes=2, at_most=None).assert_sound()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("never_ends", "hangs"), ("raises", "raised")])
def test_a_scenario_that_is_wrong_undisturbed_is_killed_nowhere(crash: Crash, name: str, code: str) -> None:
    report = crash(name, timeout_seconds=1)
    assert (0, {code}) == (report.kills, codes(report))
    assert (0, "undisturbed") == report.findings[0].only
    with pytest.raises(AssertionError, match="make the undisturbed run right first"):
        report.assert_sound()


@pytest.mark.slow
def test_enough_broken_kills_are_enough(crash: Crash) -> None:
    report = crash("hangs_when_gone_on_with", points=["after"], timeout_seconds=0.5, max_broken=2)
    assert (2, 2) == (report.kills, len(report.findings))
    assert report.boundaries - 2 == report.left_out
    assert f"{report.left_out} left out" in str(report)


@pytest.mark.slow
def test_what_a_scenario_has_started_ends_with_it(crash: Crash, db: Path) -> None:
    crash("leaves_a_process_behind", only=(1, "before"), at_most={"started": 2}).assert_sound()
    [started] = EffectLog(f"{db}.effects").facts("started")
    deadline = time.monotonic() + 10
    while _runs(started["pid"]) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(started["pid"])


def _runs(pid: int) -> bool:
    """Whether such a process runs; one that is dead and not yet waited for by whoever inherited it does not."""
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc").is_dir():
        return subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False).returncode == 0
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# -- what counts


@pytest.mark.slow
def test_a_kill_that_is_not_reached_is_counted_and_checked(crash: Crash) -> None:
    """With a finding only if nobody was killed at all (test_crash_endings.py)."""
    report = crash("sound", only=(99, "after"))
    assert (0, 1, {"nothing_killed"}) == (report.kills, report.not_reached, codes(report))
    assert "1 not reached" in str(report)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commits_nothing", "uses_another_database"])
def test_only_commits_to_its_own_database_count(crash: Crash, name: str) -> None:
    report = crash(name)
    assert (0, 0, {"no_boundaries"}) == (report.boundaries, report.kills, codes(report))


# -- how it is called


@pytest.mark.slow
def test_a_scenario_in_the_module_that_calls(db: Path) -> None:
    """A test names its own module; here the function is this module's."""
    report = crash_at_every_commit(f"{__name__}:own_scenario", db=db, points=["after"], at_most=None)
    report.assert_sound()
    assert {"own": 1, "charge": 1} == EffectLog(f"{db}.effects").counts()


def own_scenario(url: str, effects: EffectLog) -> None:
    effects.record("own")
    sound(url, effects)


@pytest.mark.slow
async def test_it_may_be_called_on_an_event_loop(crash: Crash) -> None:
    """It blocks it, as a test may."""
    crash("sound", only=(1, "after")).assert_sound()


@pytest.mark.slow
def test_a_module_that_pytest_has_imported_by_its_path_is_found(tmp_path: Path) -> None:
    """With pytest's importlib mode a test's name leads nowhere in another process; its file does."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "test_mine.py").write_text(MINE)
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", tmp_path, tmp_path / "elsewhere"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", *options]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert 0 == ran.returncode, ran.stdout


MINE = """\
from langgraph_ext.testing import crash_at_every_commit
from tests.support.crashing import sound

def scenario(url, effects):
    sound(url, effects)

def test_mine(tmp_path):
    crash_at_every_commit(f"{__name__}:scenario", db=tmp_path / "crash.db", points=["after"]).assert_sound()
"""

SCRIPT = """\
from langgraph_ext.testing import crash_at_every_commit
from tests.support.crashing import sound

def scenario(url, effects):
    sound(url, effects)

print(crash_at_every_commit(f"{__name__}:scenario", db="crash.db", only=(1, "after")))
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [["story.py"], ["-m", "story"], ["folder/story.py"]])
def test_a_script_needs_no_guard(tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "story.py", tmp_path / "folder" / "story.py"):
        path.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, *how], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ("", "story:scenario: 5 boundaries, 1 kill, sound\n") == (ran.stderr, ran.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are counted by Linux's /proc")
def test_the_caller_is_left_as_it_was(crash: Crash) -> None:
    """No child, no open file, and no faults in its own connections."""
    before, children = set(os.listdir("/dev/fd")), children_of(os.getpid())
    crash("sound", only=(1, "after"))

    assert (before, children) == (set(os.listdir("/dev/fd")), children_of(os.getpid()))


def children_of(pid: int) -> set[str]:
    """Process ids, also of children that have ended and were not waited for."""
    return {child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()}


def test_ctrl_c_ends_the_server_and_its_child(tmp_path: Path) -> None:
    """At once, though the scenario hangs, and with a KeyboardInterrupt as everywhere."""
    (tmp_path / "story.py").write_text(HANGS)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "story.py"]
    script = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    pids = tmp_path / "pids"
    deadline = time.monotonic() + 60
    while not pids.exists() or len(pids.read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    script.send_signal(signal.SIGINT)
    _, said = script.communicate(timeout=30)
    assert said.endswith("KeyboardInterrupt\n")
    while any(_runs(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


HANGS = """\
import os, time
from langgraph_ext.testing import crash_at_every_commit

def scenario(url, effects):
    with open("pids", "w") as file:
        file.write(f"{os.getpid()} {os.getppid()}")
    time.sleep(1000)

crash_at_every_commit(f"{__name__}:scenario", db="crash.db")
"""


# -- what is refused


def test_a_database_that_is_not_of_a_crash_test_is_left_alone(crash: Crash, db: Path) -> None:
    db.write_bytes(b"precious")
    with pytest.raises(InvalidArgument, match="name a new file"):
        crash("sound")
    assert b"precious" == db.read_bytes()


@pytest.mark.parametrize("url", ["postgresql://u:secret@host/db", ":memory:", "", "mysql://x", "file:x?mode=memory"])
def test_only_a_sqlite_file_will_do(url: str) -> None:
    with pytest.raises(InvalidArgument, match="needs a new SQLite file") as raised:
        crash_at_every_commit("tests.support.crashing:sound", db=url)
    assert "secret" not in str(raised.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="nowhere' is not there"):
        crash_at_every_commit("tests.support.crashing:sound", db=tmp_path / "nowhere" / "crash.db")


@pytest.mark.parametrize("target", ["", "nothing", "a:", ":b", "a.b", "a:b c", "a..b:c", "a/b:c"])
def test_a_target_of_another_form_is_refused(db: Path, target: str) -> None:
    with pytest.raises(InvalidArgument, match="module:function"):
        crash_at_every_commit(target, db=db)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_such_module_here:f", "No module named 'no_such_module_here'"),
        ("tests.support.crashing:nothing_of_this_name", "nothing_of_this_name"),
        ("tests.support.crashing:CONFIG", "is a dict, not a function"),
        ("broken_module:f", "ZeroDivisionError"),
        ("ending_module:f", "the process ended with 3"),
    ],
)
def test_a_module_that_cannot_be_loaded_is_refused(db: Path, target: str, said: str) -> None:
    (db.parent / "broken_module.py").write_text("print('before it broke')\n1 / 0\n")
    (db.parent / "ending_module.py").write_text("import os\nos._exit(3)\n")
    with pytest.raises(InvalidArgument, match="cannot be loaded") as raised:
        crash_at_every_commit(target, db=db, path=[str(db.parent), *sys.path])
    assert said in str(raised.value)
    notes = "".join(getattr(raised.value, "__notes__", ()))
    assert ("before it broke" in notes, "1 / 0" in notes) == (target.startswith("broken"),) * 2
    assert "langgraph_ext" not in notes
