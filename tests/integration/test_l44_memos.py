"""L44: memos of durable nodes: whose they are, what lives on, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import ConflictError, InvalidArgument, LeaseError
from langgraph_ext.nodes import AttemptInterrupted, Frame, durable, frame
from tests.support import faults
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, line
from tests.support.driver import Form
from tests.support.killed_memos import remember


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


def kept(acts: Acts) -> list[tuple[str, str, Any]]:
    found = [memo for run in acts.saver.ledger.runs() for memo in acts.saver.ledger.memos(run.run_id)]
    return [(memo.node_path, memo.key, memo.value) for memo in found]


def counts(frame: Frame) -> Any:
    """Count how often this memo's owner was here."""
    frame.memo["count"] = frame.memo.get("count", 0) + 1
    return {"log": [str(frame.memo["count"])]}


def test_l44_a_memo_lives_on_in_the_next_attempt(acts: Acts) -> None:
    """Over a failure and a pause; what was not written is not there."""
    left = iter("x")

    def body(frame: Frame) -> Any:
        seen = frame.memo.get("seen", [])
        frame.memo["seen"] = [*seen, frame.number]
        for _ in left:
            raise Boom("not yet")
        assert "other" not in frame.memo
        with pytest.raises(KeyError):
            frame.memo["other"]
        return {"log": [f"{interrupt('sure?')} {frame.memo['seen']}"]}

    app = line(acts.saver, a=acts.node("a", body))
    acts.run(app)
    acts.run(app, None)
    acts.run(app, Command(resume="yes"))

    assert ["in", "yes [1, 2, 2]"] == app.get_state(CONFIG).values["log"]
    assert [("a", "seen", [1, 2, 2])] == kept(acts)
    assert [] == acts.saver.ledger.verify()


def test_l44_the_rounds_of_a_loop_share_it_and_nobody_else_does(acts: Acts) -> None:
    """Another node, and another run, begin anew."""
    builder = StateGraph(State).add_node("a", acts.node("a", counts)).add_node("b", acts.node("b", counts))
    builder.add_edge(START, "a").add_edge("a", "b")
    app = builder.add_conditional_edges("b", lambda state: "a" if len(state["log"]) < 7 else END).compile(
        checkpointer=acts.saver
    )
    acts.run(app)
    acts.run(line(acts.saver, a=acts.node("a", counts)))

    assert sorted([("a", "count", 3), ("b", "count", 3), ("a", "count", 1)]) == sorted(kept(acts))


def test_l44_each_task_of_a_fan_out_has_its_own(acts: Acts) -> None:
    node = acts.node("a", counts)
    app = (
        StateGraph(State)
        .add_node("a", node)
        .add_conditional_edges(START, lambda state: [Send("a", {"log": []}) for _ in range(3)], ["a"])
        .compile(checkpointer=acts.saver)
    )
    acts.run(app)

    assert [("a", "count", 1)] * 3 == kept(acts)


def test_l44_a_subgraph_that_runs_again_has_its_own_and_a_session_is_shared(acts: Acts) -> None:
    """By all nodes that are in its owner; the whole run is around all of them."""

    def body(frame: Frame) -> Any:
        counts(frame)
        for owner in (None, "outer", ""):
            key = f"session:{owner}"
            frame.memo.set(key, frame.memo.get(key, 0, owner=owner) + 1, owner=owner)
        return {"log": ["leaf"]}

    inner = line(None, leaf=acts.node("leaf", body), twig=acts.node("twig", body))
    builder = StateGraph(State).add_node("outer", inner).add_edge(START, "outer")
    app = builder.add_conditional_edges("outer", lambda state: "outer" if len(state["log"]) < 8 else END).compile(
        checkpointer=acts.saver
    )
    acts.run(app)
    rounds = 2 if acts.ran.count("leaf") == 2 else acts.ran.count("leaf")
    found = kept(acts)

    assert rounds >= 2
    assert [("outer/leaf", "count", 1)] * rounds == [each for each in found if each[:2] == ("outer/leaf", "count")]
    assert ("outer", "session:outer", 2 * rounds) in found
    assert ("", "session:", 2 * rounds) in found
    assert [("outer/twig", "session:None", 1)] * rounds == [
        each for each in found if each[:2] == ("outer/twig", "session:None")
    ]


def test_l44_a_once_key_never_changes(acts: Acts) -> None:
    """The same value again is no change; a refusal is a signal that no policy repeats, and names the memo."""

    def body(frame: Frame) -> Any:
        frame.memo["once:plan"] = {"steps": 3}
        frame.memo["once:plan"] = {"steps": 3}
        frame.memo["once:plan"] = {"steps": 4}
        return {"log": []}

    with pytest.raises(ConflictError, match="once:plan") as refused:
        acts.run(line(acts.saver, a=acts.node("a", body)))

    assert ("memo_conflict", [("a", "once:plan", {"steps": 3})]) == (refused.value.code, kept(acts))


REFUSED: list[tuple[str, Callable[[Frame], Any], str]] = [
    ("empty", lambda frame: frame.memo.get(""), "invalid_argument"),
    ("long", lambda frame: frame.memo.set("x" * 1025, 1), "invalid_argument"),
    ("no text", lambda frame: frame.memo.get(7), "invalid_argument"),  # type: ignore[arg-type]
    ("large", lambda frame: frame.memo.set("x", "x" * (2 * 1024 * 1024)), "output_limit"),
    ("not a session", lambda frame: frame.memo.set("x", 1, owner=""), "memo_scope"),
    ("not around it", lambda frame: frame.memo.set("session:x", 1, owner="other"), "memo_scope"),
    ("half a name", lambda frame: frame.memo.get("session:x", owner="ou"), "memo_scope"),
]


@pytest.mark.parametrize(("what", "act", "code"), REFUSED, ids=[each[0] for each in REFUSED])
def test_l44_bad_input_is_refused_before_anything_is_written(acts: Acts, what: str, act: Any, code: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        acts.run(line(acts.saver, outer=line(None, leaf=acts.node("leaf", act))))

    assert (code, []) == (refused.value.code, kept(acts))


def test_l44_l52_only_the_present_frame_reads_and_writes(acts: Acts) -> None:
    """One that has ended does neither."""
    frames: list[Frame] = []
    acts.run(line(acts.saver, a=acts.node("a", lambda frame: frames.append(frame) or {"log": []})))
    for act in (lambda: frames[0].memo.get("x"), lambda: frames[0].memo.set("x", 1)):
        with pytest.raises((ConflictError, LeaseError)) as refused:
            act()
        assert refused.value.code in ("attempt_mismatch", "lease_lost")

    assert [] == kept(acts)


def test_l44_in_async_code(saver: LedgerSaver, loop: asyncio.AbstractEventLoop) -> None:
    @durable
    async def node(state: State) -> Any:
        await frame().memo.aset("x", {1: "no JSON", "y": {2, 3}})
        return {"log": [str(await frame().memo.aget("x"))]}

    app = line(saver, a=node)
    loop.run_until_complete(app.ainvoke({"log": []}, CONFIG, durability="sync"))

    assert [str({1: "no JSON", "y": {2, 3}})] == app.get_state(CONFIG).values["log"]


def test_l44_memos_go_with_their_thread(acts: Acts) -> None:
    acts.run(line(acts.saver, a=acts.node("a", counts)))
    acts.saver.delete_thread("t")

    assert [] == acts.saver.database.read(lambda tx: tx.all("memos_of_run", run=1))


def test_l44_what_was_kept_before_a_kill_is_there_after_it(tmp_path: Any) -> None:
    assert faults.run(remember, str(tmp_path)).killed

    assert ["paid once", "done"] == faults.run(remember, str(tmp_path)).value()


def test_l44_an_interrupted_attempt_leaves_its_memos_to_the_next(acts: Acts) -> None:
    def body(frame: Frame) -> Any:
        if "at" not in frame.memo:
            frame.memo["at"] = frame.number
            raise AttemptInterrupted("gone", "no idea")
        return {"log": [str(frame.memo["at"])]}

    app = line(acts.saver, a=acts.node("a", body))
    with pytest.raises(AttemptInterrupted):
        acts.run(app)
    acts.run(app, None)

    assert ["in", "1"] == app.get_state(CONFIG).values["log"]
