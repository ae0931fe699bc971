"""E6, E29, A9, A10: a ReAct run killed at any of its commits, and brought to its end by another process."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langgraph_ext import RunLedger
from langgraph_ext.engine import AgentGraphEngine
from langgraph_ext.engine.records import AgentRunRecord
from tests.support import killed_react as story
from tests.support.faults import full, run
from tests.support.killed_agents import commits_of

Row = tuple[Any, ...]


@pytest.fixture
def new(empty: Path, tmp_path: Path) -> Callable[[str], str]:
    """A new database, by a name."""

    def make(name: str) -> str:
        path = tmp_path / f"{name}.db"
        shutil.copy(empty, path)
        return str(path)

    return make


def rows(path: str, sql: str) -> list[Row]:
    """What a query finds, beside the engine."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def commit_keys(path: str) -> list[str]:
    return [key for (key,) in rows(path, "SELECT commit_key FROM agent_commit ORDER BY rowid")]


class Left:
    """What a killed process has left: what was asked outside, what is stored, and what nobody knows the end of."""

    def __init__(self, path: str) -> None:
        self.asked = story.outside(f"{path}.log")
        self.commits = set(rows(path, "SELECT commit_key, digest, result FROM agent_commit"))
        self.slots = set(rows(path, "SELECT * FROM agent_member WHERE state = 'settled'"))
        self.messages = rows(path, "SELECT * FROM agent_message ORDER BY seq")
        named = rows(path, "SELECT purpose, state, raw IS NOT NULL FROM agent_operation")
        self.answered = {_asked_as(purpose) for purpose, state, raw in named if raw or state == "completed"}
        self.flying = {_asked_as(purpose) for purpose, state, _ in named if state == "dispatched"}


def _asked_as(purpose: str) -> str:
    """What an operation asks outside, as the file of effects names it."""
    kind, *numbers = purpose.split(":")
    if kind == "business-model":
        return f"model {numbers[0]}"
    return story.CALLS[4 * (int(numbers[0]) - 1) + int(numbers[1])]


def check_outside(path: str, left: Left) -> None:
    """`once` is once; what is stored was not asked for again; what was under way is made again at most once more."""
    now = story.outside(f"{path}.log")
    assert set(story.WHOLE) == now.keys()
    for what, times in now.items():
        if what in left.answered:
            assert left.asked[what] == times, what
        if what.split()[0] in story.ONCE or what not in left.flying:
            assert 1 == times, what
        assert times <= left.asked[what] + 1, what
        assert 1 == len(story.asked(f"{path}.log", what)), "always under the same key"


def check_rows(path: str, left: Left) -> None:
    """What was committed stays; one slot a call, consumed once; one result a task, and no ticket is left."""
    assert left.commits <= set(rows(path, "SELECT commit_key, digest, result FROM agent_commit"))
    assert left.slots <= set(rows(path, "SELECT * FROM agent_member"))
    assert left.messages == rows(path, "SELECT * FROM agent_message ORDER BY seq")[: len(left.messages)]
    assert [("settled", 8)] == rows(path, "SELECT state, count(*) FROM agent_member GROUP BY 1")
    assert [("consumed", 2)] == rows(path, "SELECT state, count(*) FROM agent_batch GROUP BY 1")
    assert [("completed", 11)] == rows(path, "SELECT state, count(*) FROM agent_operation GROUP BY 1")
    assert [] == rows(path, "SELECT * FROM agent_operation WHERE consumed_us IS NULL")
    assert [] == rows(path, "SELECT * FROM agent_call WHERE state = 'open'")
    assert [("consumed", 3)] == rows(path, "SELECT state, count(*) FROM agent_ticket GROUP BY 1")
    assert 1 == len([key for key in commit_keys(path) if key.startswith("terminal:")])
    with RunLedger(path) as ledger:
        assert [] == ledger.verify()


def shape(engine: AgentGraphEngine, done: AgentRunRecord) -> Any:
    """How the run ends, whoever was killed on the way: its result, and its transcript."""
    told = []
    for entry in engine.transcript(done.agent_run_id):
        message = entry.message
        asked = [call["id"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
        of = message.tool_call_id if isinstance(message, ToolMessage) else None
        told.append((entry.seq, entry.kind, message.text, asked, of))
    return str(done.status), done.reason, done.output, done.loops_used, done.loops_reserved, told


def check_transcript(told: list[Any]) -> None:
    """One result for every tool call, behind its decision, in their order."""
    for at, (_, _, _, asked, _) in enumerate(told):
        following = told[at + 1 : at + 1 + len(asked)]
        assert asked == [of for *_, of in following]
    results = Counter(of for *_, of in told if of is not None)
    assert 8 == len(results) == sum(results.values())
    assert [f"{each}: done" for each in story.CALLS] == [text for _, kind, text, _, _ in told if kind == "result"]


def undisturbed(path: str, *, parallel: bool) -> tuple[list[str], Any]:
    """The commits of the run, and how it ends."""
    with story.opened(path) as engine:
        whole = shape(engine, story.drive(engine, f"{path}.log", parallel=parallel))
    assert ("succeeded", None, "done", 3, 0) == whole[:5]
    check_transcript(whole[5])
    assert dict.fromkeys(story.WHOLE, 1) == story.outside(f"{path}.log")
    return commit_keys(path), whole


def kill_at(path: str, parallel: bool, moment: str, commit: tuple[str, int], whole: Any) -> None:
    """Kill the run at a commit, and bring what is left to its end, twice: the second time nothing is left to do."""
    killed = run(story.drive_and_be_killed, path, parallel, moment, *commit).killed
    assert killed or moment == "between", commit  # which has no so many statements
    left = Left(path)
    with story.opened(path) as engine:
        assert whole == shape(engine, story.drive(engine, f"{path}.log", parallel=parallel)), commit
    check_outside(path, left)
    check_rows(path, left)
    keys, asked = commit_keys(path), story.outside(f"{path}.log")
    with story.opened(path) as engine:
        assert whole == shape(engine, story.drive(engine, f"{path}.log", parallel=parallel))
    assert (keys, asked) == (commit_keys(path), story.outside(f"{path}.log"))


MOMENTS = ("before", "inside", "after")

SAME = {"start", "activate", "progress prepare_model", "progress call_model", "task-result", "terminal"}
"""Kinds of commits that are the same where tools run one by one."""


def points_of(keys: list[str], moment: str, *, parallel: bool) -> list[tuple[str, int]]:
    """The commits to be killed at: all of them in the full set; else one of each kind, at one of the moments, and the
    first of a tool's."""
    every = commits_of(keys)
    if full():
        return every
    firsts = [kind for kind, nth in every if nth == 1 and (parallel or kind not in SAME)]
    at = MOMENTS.index(moment) + parallel
    shown = [(kind, 1) for number, kind in enumerate(firsts) if (number + at) % 3 == 0]
    seconds = ("accept-model", "call-raw") if parallel else ("model-ready", "call-raw") if moment == "after" else ()
    return shown + [(kind, 2) for kind in seconds]


@pytest.mark.parametrize("moment", [*MOMENTS, pytest.param("between", marks=pytest.mark.slow)])
@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "serial"])
def test_e6_e29_a_kill_at_any_commit_of_a_react_run_loses_and_repeats_nothing(
    new: Callable[[str], str], parallel: bool, moment: str
) -> None:
    """Before, inside and after each of its commits, and in the full set between their statements. Tools that act once
    have acted once, a stored answer was never asked for again, and the end is the same."""
    keys, whole = undisturbed(new("whole"), parallel=parallel)
    for kind, nth in points_of(keys, moment, parallel=parallel):
        kill_at(new(f"{kind}-{nth}"), parallel, moment, (kind, nth), whole)
