"""The command line, run as people run it: a process of its own on a file that a real graph has written."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_ext import LedgerSaver, RunLedger
from langgraph_ext.ledger import attempts, effects
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.rows import run_named
from tests.support.effects import begin, frame
from tests.support.programs import run_python

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "evil\x1b[2J\rname\n"
LEFT_OUT = {"COLUMNS", "FORCE_COLOR", "LANGGRAPH_EXT_DB", "NO_COLOR", "PYTHONUNBUFFERED"}
COMMANDS = ["runs", "show", "events", "verify", "doctor"]


def joined(old: list[str], new: list[str]) -> list[str]:
    return old + new


class State(TypedDict, total=False):
    log: Annotated[list[str], joined]
    item: str
    fail: bool


def build(saver: LedgerSaver) -> Any:
    """load, then price (once an item), then a subgraph that asks, then ship, which may fail."""

    def price(state: State) -> State:
        return {"log": [f"price {state['item']}"]}

    def ask(state: State) -> State:
        return {"log": [interrupt({"kind": "approve", "text": f"Ship {HOSTILE}?", "more": "x" * 500})]}

    def ship(state: State) -> State:
        if state.get("fail"):
            raise ValueError(f"no truck\nfor {HOSTILE}")
        return {"log": ["shipped"]}

    inner = StateGraph(State).add_node(ask).add_edge(START, "ask").compile()
    builder = StateGraph(State).add_node("load", lambda state: {"log": ["load"]})
    builder.add_node(price).add_node("review", inner).add_node(ship)
    builder.add_edge(START, "load").add_edge("price", "review").add_edge("review", "ship")
    builder.add_conditional_edges("load", lambda state: [Send("price", {"item": item}) for item in "ab"], ["price"])
    return builder.compile(checkpointer=saver)


def config(run_id: str, thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}, "metadata": {"run_id": run_id}, "max_concurrency": 1}


def write(path: Path) -> None:
    """Three runs, always with the same order of events: one succeeded, one failed, one waits for an answer."""
    with LedgerSaver(path, fsync="normal") as saver:
        graph = build(saver)
        graph.invoke({"log": []}, config("aa-done", "one"), durability="sync")
        graph.invoke(Command(resume="yes"), config("aa-done", "one"), durability="sync")
        graph.invoke({"log": [], "fail": True}, config("ab-failed", "two"), durability="sync")
        with pytest.raises(ValueError, match="no truck"):
            graph.invoke(Command(resume="yes"), config("ab-failed", "two"), durability="sync")
        graph.invoke({"log": []}, config("b-waits", HOSTILE), durability="sync")


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that the tests only look at."""
    path = tmp_path_factory.mktemp("cli") / "runs.db"
    write(path)
    return path


def environment(**changes: str) -> dict[str, str]:
    """This process's, without what would change how the command line writes."""
    ours = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    return ours | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | changes


def command(*args: object) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "langgraph_ext.cli", *map(str, args)]


def run(*args: object, fresh: bool = False, **changes: str) -> subprocess.CompletedProcess[str]:
    """As `run_python`; each command is `fresh` in one test, which sees what it imports by itself."""
    return run_python("-m", "langgraph_ext.cli", *args, cwd=ROOT, env=environment(**changes), fresh=fresh)


def ask(db: Path, *args: object, fresh: bool = False, **changes: str) -> str:
    """What a command prints that must succeed, and say nothing else."""
    ran = run(*args, "--db", db, fresh=fresh, **changes)
    assert (0, "") == (ran.returncode, ran.stderr)
    return ran.stdout


def documents(db: Path, *args: object) -> Any:
    return json.loads(ask(db, *args, "--json"))


# -- runs


def test_runs_are_listed_newest_first(db: Path) -> None:
    titles, *rows = ask(db, "runs", fresh=True).splitlines()
    assert ["RUN", "STATUS", "STARTED", "TOOK", "THREAD", "ERROR"] == titles.split()
    assert ["b-waits", "ab-failed", "aa-done"] == [row.split()[0] for row in rows]
    assert ["paused", "failed", "succeeded"] == [row.split()[1] for row in rows]
    assert "ValueError: no truck …" in rows[1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--thread", "two"], ["ab-failed"]),
        (["--thread", "nobody"], []),
        (["--status", "paused"], ["b-waits"]),
        (["--limit", "1"], ["b-waits"]),
        (["--before", "ab"], ["aa-done"]),
        (["--before", "b-waits", "--limit", "1"], ["ab-failed"]),
    ],
)
def test_runs_are_narrowed_down_and_paged(db: Path, options: list[str], expected: list[str]) -> None:
    assert expected == [each["run_id"] for each in documents(db, "runs", *options)["runs"]]


def test_no_runs_are_no_rows(db: Path) -> None:
    ran = run("runs", "--db", db, "--thread", "nobody")
    assert (0, "", "no runs\n") == (ran.returncode, ran.stdout, ran.stderr)


def test_times_are_iso_in_utc(db: Path) -> None:
    [found] = documents(db, "runs", "--thread", "one")["runs"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", found["started_at"])
    began, ended = map(datetime.fromisoformat, (found["started_at"], found["ended_at"]))
    assert began < ended < datetime.now(UTC)


# -- show

DONE = """\
run aa-done  succeeded  T  thread one  started AT
├─ load  succeeded  +T
├─ price [0]  succeeded  +T
├─ price [1]  succeeded  +T
├─ review  succeeded  +T  2 attempts
│  └─ ask  succeeded  +T  2 attempts
│     └─ question approve  answered  id ID  {"kind":"approve","text":"Ship evil\\u001b[2J\\rname\\n?","mor…
└─ ship  succeeded  +T
"""


def masked(text: str) -> str:
    """Without what differs from run to run."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "AT", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "ID", text)
    return re.sub(r"\d+(\.\d)? (ms|s)\b", "T", text)


def test_a_run_is_shown_as_a_tree(db: Path) -> None:
    assert DONE == masked(ask(db, "show", "aa-done", fresh=True))


def test_a_failure_and_its_reason_are_shown(db: Path) -> None:
    shown = masked(ask(db, "show", "ab"))
    assert shown.startswith("run ab-failed  failed  T  thread two  started AT  ValueError: no truck …\n")
    assert "└─ ship  failed  +T  ValueError: no truck …\n" in shown


def test_an_open_question_is_shown(db: Path) -> None:
    assert "─ question approve  pending  id ID  {" in masked(ask(db, "show", "b"))


@pytest.mark.slow
@pytest.mark.parametrize("args", [["show", "b"], ["show", "aa"], ["events"], ["events", "--run", "b"]])
def test_payloads_can_be_hidden(db: Path, args: list[str]) -> None:
    assert "Ship evil" in ask(db, *args)
    assert "Ship evil" in ask(db, *args, "--json")
    assert "Ship evil" not in ask(db, *args, "--no-payloads")
    assert "Ship evil" not in ask(db, *args, "--no-payloads", "--json")


def test_show_gives_programs_everything(db: Path) -> None:
    """Run, visits and interrupts, the payloads in full."""
    found = documents(db, "show", "aa-done")
    assert {"run", "usage", "visits", "attempts", "interrupts", "effects", "agents"} == set(found)
    assert "succeeded" == found["run"]["status"]
    paths = ["load", "price", "price", "review/ask", "review", "ship"]
    assert sorted(paths) == sorted(visit["node_path"] for visit in found["visits"])
    [question] = found["interrupts"]
    assert {"kind": "approve", "text": f"Ship {HOSTILE}?", "more": "x" * 500} == question["value"]


@pytest.mark.parametrize(
    "args", [["runs"], ["show", "b"], *(pytest.param([each], marks=pytest.mark.slow) for each in ("events", "doctor"))]
)
@pytest.mark.parametrize("encoding", [pytest.param("utf-8", marks=pytest.mark.slow), "ascii"])
def test_no_name_and_no_payload_moves_the_cursor(db: Path, args: list[str], encoding: str) -> None:
    """Thread ids, messages and payloads that hold control characters are spelt out, in JSON too."""
    for options in ([], ["--json"]):
        text = ask(db, *args, *options, PYTHONIOENCODING=encoding)
        assert "" == "".join(char for char in text if char != "\n" and not char.isprintable())
        assert encoding != "ascii" or text.isascii()


def test_where_stdout_is_ascii_the_tree_is_too(db: Path) -> None:
    shown = ask(db, "show", "aa", PYTHONIOENCODING="ascii")
    assert "\n|- review  succeeded" in shown
    assert "\n|  `- ask  succeeded" in shown


def test_lines_fit_the_terminal(db: Path) -> None:
    lines = ask(db, "show", "b", COLUMNS="40").splitlines() + ask(db, "events", COLUMNS="40").splitlines()
    assert 40 == max(map(len, lines))
    assert any(line.endswith("…") for line in lines)


def test_a_terminal_gets_colours_and_a_pipe_gets_none(db: Path) -> None:
    assert "\x1b[31mfailed\x1b[0m" in ask(db, "runs", FORCE_COLOR="1", TERM="xterm")
    assert "\x1b" not in ask(db, "runs")


# -- effects


@pytest.fixture
def effects_db(tmp_path: Path) -> Path:
    """A database whose first run has done one thing outside, and is in doubt about two others."""
    path = tmp_path / "effects.db"
    write(path)
    with LedgerSaver(path) as saver:
        database = saver.database
        visits = {visit.node: visit for visit in saver.ledger.visits("aa-done")}
        run = database.read(lambda tx: run_named(tx, "aa-done")["run"])
        for attempt, node in (("a1", "load"), ("a2", "ship")):
            at = visits[node]
            place = {"thread_id": "one", "checkpoint_ns": "", "checkpoint_id": at.checkpoint_id, "task_id": at.task_id}
            database.transact(attempts.start, attempt_id=attempt, run=run, ordinal=0, epoch=1, now_us=1, **place)
        by = [frame(attempt, run=run) for attempt in ("a1", "a2")]
        database.transact(begin, "e-paid", by=by[0], key="1", part=HOSTILE)
        receipt = Encoded("json", json.dumps({"paid": HOSTILE}).encode())
        database.transact(effects.commit, by[0], "e-paid", receipt=receipt, now_us=2)
        database.transact(begin, "e-mail", by=by[1], key="2", name="mail")
        database.transact(effects.doubt, by[1], "e-mail", now_us=2)
        database.transact(begin, "e-lost", by=by[1], key="3", name="call")
        database.transact(attempts.interrupt_left, "one", epoch=2, now_us=3)
    return path


def test_effects_stand_under_the_visit_that_acted(effects_db: Path) -> None:
    """With their receipts; the run says how many are in doubt."""
    shown = masked(ask(effects_db, "show", "aa"))
    paid = r"effect charge [evil\x1b[2J\r" + r'name\n]  committed  id e-paid  {"paid":"evil\u001b[2J\rname\n"}'
    assert shown.splitlines()[0].endswith("  2 effects in doubt")
    assert "├─ load  succeeded  +T\n│  ├─ attempt 1  interrupted  id a1  none\n" in shown
    assert f"│  └─ {paid}\n" in shown
    assert "   ├─ effect call  started  in doubt  id e-lost\n   └─ effect mail  unknown  id e-mail\n" in shown


def test_effects_are_given_to_programs_and_receipts_can_be_hidden(effects_db: Path) -> None:
    found = documents(effects_db, "show", "aa")["effects"]
    assert [("e-lost", True), ("e-mail", True), ("e-paid", False)] == [
        (each["effect_id"], each["in_doubt"]) for each in found
    ]
    assert {"paid": HOSTILE} in [each["receipt"] for each in found]
    assert "paid" not in ask(effects_db, "show", "aa", "--no-payloads").replace("e-paid", "")
    assert "receipt" not in documents(effects_db, "show", "aa", "--no-payloads")["effects"][0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--receipt", '{"id": 7}'], 'effect mail  committed  id e-mail  {"id":7}\n'),
        (["--receipt", "null"], "effect mail  committed  id e-mail  null\n"),
        (["--did-not-happen"], "effect mail  not_happened  id e-mail\n"),
    ],
)
def test_l31_an_effect_in_doubt_is_resolved(effects_db: Path, options: list[str], said: str) -> None:
    """The same word again says the same; the ledger is sound afterwards."""
    assert said == ask(effects_db, "resolve-effect", "e-mail", *options)
    assert said.split()[2] == documents(effects_db, "resolve-effect", "e-mail", *options)["effect"]["status"]
    with RunLedger(effects_db) as ledger:
        assert ["e-lost"] == [each.effect_id for each in ledger.effects("aa-done") if each.in_doubt]
        assert [] == ledger.verify()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["e-mail"], "pass --receipt JSON or --did-not-happen, one of them"),
        (["e-mail", "--receipt", "1", "--did-not-happen"], "pass --receipt JSON or --did-not-happen, one of them"),
        (["e-mail", "--receipt", "{paid}"], "--receipt is not JSON"),
        (["e-nothing", "--did-not-happen"], "effect 'e-nothing' is not in this ledger"),
        (["e-paid", "--did-not-happen"], "effect 'e-paid' ('charge') is committed"),
    ],
)
def test_l31_what_cannot_be_resolved_is_one_line_and_exit_status_2(
    effects_db: Path, args: list[str], said: str
) -> None:
    ran = run("resolve-effect", *args, "--db", effects_db)
    assert (2, "") == (ran.returncode, ran.stdout)
    assert ran.stderr.startswith(f"error: {said}")
    assert 1 == ran.stderr.count("\n")


# -- events


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def asking_db(tmp_path: Path) -> Path:
    """One run that waits for an answer."""
    write(tmp_path / "runs.db")
    return tmp_path / "runs.db"


def test_questions_are_listed(db: Path) -> None:
    every = documents(db, "interrupts")["interrupts"]
    (waits,) = documents(db, "interrupts", "--pending")["interrupts"]

    assert ["answered", "answered", "pending"] == [each["status"] for each in every]
    assert [waits] == documents(db, "interrupts", "--run", "b-")["interrupts"]
    assert [waits] == documents(db, "interrupts", "--thread", HOSTILE)["interrupts"]
    assert "Ship evil" in ask(db, "interrupts")
    assert "Ship evil" not in ask(db, "interrupts", "--no-payloads") + ask(db, "interrupts", "--no-payloads", "--json")
    assert "no interrupts" in run("interrupts", "--thread", "none", "--db", db).stderr


def test_l25_a_question_is_answered_once(asking_db: Path) -> None:
    """By its id or its thread; the same again is no error, another answer is."""
    (waits,) = documents(asking_db, "interrupts", "--pending")["interrupts"]
    told = documents(asking_db, "answer", "--thread", HOSTILE, '{"ok": 1}', "--by", "ann")["interrupt"]
    again = ask(asking_db, "answer", waits["interrupt_id"], '{"ok":1}', fresh=True)

    assert (waits["interrupt_id"], "answered", {"ok": 1}, "ann") == (
        told["interrupt_id"], told["status"], told["answer"], told["answered_by"],
    )  # fmt: skip
    assert '{"ok":1} by ann' in again
    assert [] == documents(asking_db, "interrupts", "--pending")["interrupts"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["{id}", "2"], "answer_conflict"),
        (["0" * 32, "2"], "interrupt_not_found"),
        (["--thread", HOSTILE, "2"], "interrupt_not_pending"),
        (["{id}", "yes"], "invalid_argument"),
        (["2"], "invalid_argument"),
        (["{id}", "2", "3"], "invalid_argument"),
    ],
    ids=["conflict", "unknown", "none", "json", "whom", "many"],
)
def test_l25_what_cannot_be_answered_is_one_line_and_exit_status_2(asking_db: Path, args: list[str], code: str) -> None:
    with RunLedger(asking_db) as ledger:
        (waits,) = ledger.interrupts(pending=True)
        ledger.answer({waits.interrupt_id: 1})
    ended = run("answer", *[arg.format(id=waits.interrupt_id) for arg in args], "--db", asking_db)

    assert (2, "") == (ended.returncode, ended.stdout)
    assert f"[{code}]" in ended.stderr
    assert 1 == ended.stderr.count("\n")


@pytest.mark.slow
def test_events_are_read_on_behind_a_cursor(db: Path) -> None:
    """Every event once, whatever the pages."""
    every = lines(ask(db, "events", "--json"))
    cursor, paged = 0, []
    while page := lines(ask(db, "events", "--json", "--after", cursor, "--limit", 7)):
        paged += page
        cursor = page[-1]["cursor"]
    assert every == paged
    assert {"run.started", "run.succeeded", "run.failed", "interrupt.requested"} <= {each["name"] for each in every}


def test_events_of_a_run_are_numbered(db: Path) -> None:
    found = lines(ask(db, "events", "--json", "--run", "ab"))
    assert {"ab-failed"} == {each["run_id"] for each in found}
    assert list(range(1, len(found) + 1)) == [each["run_seq"] for each in found]


def test_events_are_a_line_each(db: Path) -> None:
    found = ask(db, "events", "--run", "aa").splitlines()
    assert re.fullmatch(r" +\d+  \S+Z  run\.started", found[0])
    assert any(re.search(r"visit\.succeeded +review/ask$", line) for line in found)


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A database with its first run, and a process that follows it."""
    path = tmp_path / "runs.db"
    write(path)
    following = command("events", "--follow", "--json", "--db", path)
    with subprocess.Popen(
        following, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        yield path, process
        process.kill()


def test_a_follower_sees_what_another_process_writes_and_ends_quietly(
    follower: tuple[Path, subprocess.Popen[str]],
) -> None:
    """Each event comes as soon as it is stored; Ctrl-C ends it, without a word."""
    path, process = follower
    assert process.stdout is not None
    seen = [json.loads(process.stdout.readline()) for _ in lines(ask(path, "events", "--json"))]
    assert 10 < len(seen)
    with LedgerSaver(path) as saver:
        build(saver).invoke({"log": []}, config("c-late", "late"))
    late = [json.loads(process.stdout.readline()) for _ in lines(ask(path, "events", "--json"))[len(seen) :]]
    assert "run.paused" in [event["name"] for event in late]
    assert {"c-late"} == {event["run_id"] for event in late}
    process.send_signal(signal.SIGINT)
    assert ("", "") == process.communicate(timeout=20)
    assert 130 == process.returncode


def test_following_ends_with_the_limit(db: Path) -> None:
    assert 3 == len(lines(ask(db, "events", "--follow", "--limit", 3, "--json")))


def test_a_closed_pipe_ends_quietly(db: Path) -> None:
    """`langgraph-ext events | head -1`"""
    following = command("events", "--follow", "--db", db)
    with subprocess.Popen(following, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        with LedgerSaver(db) as saver:  # a follower notices when it has something to write
            saver.delete_thread("nobody")
            build(saver).invoke({"log": []}, config("z-piped", "piped"))
            saver.delete_thread("piped")
        assert (b"", 141) == (process.stderr.read(), process.wait(20))


# -- verify and doctor


def test_a_sound_ledger_has_no_findings(db: Path) -> None:
    assert "sound: no findings\n" == ask(db, "verify", fresh=True)
    assert {"findings": []} == documents(db, "verify", "aa")


def test_findings_are_an_exit_status(tmp_path: Path) -> None:
    """Somebody took a question away behind our back."""
    path = tmp_path / "runs.db"
    write(path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM interrupt")
    connection.close()
    told, data = run("verify", "--db", path), run("verify", "--json", "--db", path)
    assert [(1, ""), (1, "")] == [(ran.returncode, ran.stderr) for ran in (told, data)]
    assert told.stdout.startswith("FINDING")
    assert json.loads(data.stdout)["findings"]


def test_the_doctor_finds_a_sound_database_sound(db: Path) -> None:
    found = documents(db, "doctor")
    assert (True, []) == (found["sound"], found["problems"])
    assert {"paused": 1, "failed": 1, "succeeded": 1} == {name: n for name, n in found["runs"].items() if n}
    assert ("wal", "ok", "--db") == tuple(found["database"][part] for part in ("journal_mode", "integrity", "named_by"))
    assert sqlite3.sqlite_version == found["versions"]["SQLite"]
    assert "1 failed" in ask(db, "doctor")


def test_the_doctor_says_who_named_the_database(db: Path) -> None:
    ran = run("doctor", fresh=True, LANGGRAPH_EXT_DB=str(db))
    assert f"{db} (named by LANGGRAPH_EXT_DB)" in ran.stdout


def corrupt(path: Path) -> None:
    write(path)
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    path.write_bytes(data)


def foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()


def newer(path: Path) -> None:
    write(path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE migration SET oldest_reader = 9999")
    connection.close()


def another_journal(path: Path) -> None:
    write(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (corrupt, "integrity"),
        (foreign, "store_foreign"),
        (newer, "store_newer"),
        (another_journal, "journal mode is 'delete'"),
        (lambda path: path.write_text("no database " * 100), "store_corrupt"),
        (lambda path: path.touch(), "the file is empty"),
    ],
)
def test_the_doctor_says_what_is_wrong(tmp_path: Path, harm: Any, said: str) -> None:
    """As a problem in its report and with exit status 1, and it changes nothing."""
    path = tmp_path / "runs.db"
    harm(path)
    before = path.read_bytes()
    told, data = run("doctor", "--db", path), run("doctor", "--json", "--db", path)
    assert [(1, ""), (1, "")] == [(ran.returncode, ran.stderr) for ran in (told, data)]
    assert said in told.stdout
    assert said in " ".join(json.loads(data.stdout)["problems"])
    assert before == path.read_bytes()


# -- what goes wrong


@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_database_is_said_and_not_created(tmp_path: Path, name: str) -> None:
    path = tmp_path / "runs.db"
    ran = run(name, *(["x"] if name == "show" else []), "--db", path)
    assert (2, "") == (ran.returncode, ran.stdout)
    assert f"error: there is no database file {str(path)!r}; check --db [store_missing]\n" == ran.stderr
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["runs"], "no database is named; pass --db PATH, or set LANGGRAPH_EXT_DB=PATH"),
        (["runs", "--db", "postgresql://u:secret@h/d"], "PostgreSQL is not supported yet"),
        (["runs", "--db", ":memory:"], "there is no database file ':memory:'"),
        (["show", "nobody", "--db", "DB"], "run 'nobody' is not in this ledger"),
        (["show", "", "--db", "DB"], "run '' is not in this ledger"),
        (["show", "a", "--db", "DB"], "run 'a' is the beginning of several ids ('aa-done', 'ab-failed')"),
        (["runs", "--before", "nobody", "--db", "DB"], "run 'nobody' is not in this ledger"),
        (["events", "--run", "nobody", "--follow", "--db", "DB"], "run 'nobody' is not in this ledger"),
        (["verify", "evil\x1b[2J", "--db", "DB"], r"run 'evil\x1b[2J' is not in this ledger"),
    ],
)
def test_an_error_is_one_line_and_exit_status_2(db: Path, args: list[str], said: str) -> None:
    ran = run(*(str(db) if arg == "DB" else arg for arg in args))
    assert (2, "") == (ran.returncode, ran.stdout)
    assert ran.stderr.startswith(f"error: {said}")
    assert 1 == ran.stderr.count("\n")
    assert "secret" not in ran.stderr


@pytest.mark.parametrize(
    "args", [["nonsense"], ["show"], ["runs", "--status", "nonsense"], ["runs", "--limit", "0"], ["events", "--x"]]
)
def test_wrong_usage_is_exit_status_2(args: list[str]) -> None:
    ran = run(*args)
    assert (2, "") == (ran.returncode, ran.stdout)
    assert "Error: " in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_environment_names_the_database_and_the_option_wins(db: Path, tmp_path: Path) -> None:
    assert "aa-done" in run("runs", LANGGRAPH_EXT_DB=f"sqlite:///{db}").stdout
    assert "aa-done" in run("runs", "--db", db, LANGGRAPH_EXT_DB=str(tmp_path / "other.db")).stdout
    missing = run("runs", LANGGRAPH_EXT_DB=str(tmp_path / "other.db"))
    assert (2, True) == (missing.returncode, "check LANGGRAPH_EXT_DB" in missing.stderr)


@pytest.mark.slow
def test_looking_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    write(path)
    before = path.read_bytes()
    for args in (["runs"], ["show", "aa"], ["events"], ["verify"], ["doctor"]):
        ask(path, *args)
    assert before == path.read_bytes()


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path, missing: str) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ModuleNotFoundError('x', name={missing!r})")
    ran = run("runs", fresh=True, PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]))
    assert (2, "") == (ran.returncode, ran.stdout)
    assert f"langgraph-ext: the command line needs '{missing}'; install it: pip install 'langgraph-ext[cli]'\n" == (
        ran.stderr
    )


def test_the_command_is_installed_under_its_name() -> None:
    """In a clone whose .venv was made before the command existed, `make` installs it anew."""
    assert 'langgraph-ext = "langgraph_ext.cli:main"' in (ROOT / "pyproject.toml").read_text("utf-8")
    installed = Path(sysconfig.get_path("scripts")) / "langgraph-ext"
    for named in ([installed], [sys.executable, "-m", "langgraph_ext.cli"]):
        ran = subprocess.run([*named, "--version"], capture_output=True, text=True, timeout=60, check=True)
        assert ("langgraph-ext 0.1.0\n", "") == (ran.stdout, ran.stderr)
