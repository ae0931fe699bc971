"""L53: what an application does to its own tables in the transaction that settles a durable body."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt

from langgraph_ext import AppTx, LedgerSaver, with_ledger
from langgraph_ext.errors import AdmissionError, InvalidArgument
from langgraph_ext.nodes import Frame
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, line, says
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go; with a table of the application's."""
    saver.setup()
    connection = sqlite3.connect(saver.database.name)
    connection.execute("CREATE TABLE booking (word TEXT NOT NULL, UNIQUE (word))")
    connection.close()
    return Acts(saver, form, request.param, loop)


@pytest.fixture(params=["attached", "plain"])
def attach(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return with_ledger if request.param == "attached" else lambda app: app


def book(word: str) -> Callable[[AppTx], object]:
    """What `inside` is given: adds a row."""
    return lambda tx: tx.execute("INSERT INTO booking VALUES (?)", [word])


def booking(*words: str, fails: int = 0, ends: Callable[[], Any] = lambda: {"log": ["booked"]}) -> Any:
    """A body that books these words, and then raises inside as often as it is told."""
    left = iter(range(fails))

    def fail(tx: AppTx) -> None:
        for _ in left:
            raise Boom("no room")

    def body(frame: Frame) -> Any:
        for word in words:
            frame.inside(book(word))
        frame.inside(fail)
        return ends()

    return body


def booked(acts: Acts) -> list[str]:
    """The application's rows, in the order in which they were added, read by a connection of its own."""
    connection = sqlite3.connect(acts.saver.database.name)
    try:
        return [word for (word,) in connection.execute("SELECT word FROM booking ORDER BY rowid")]
    finally:
        connection.close()


def values(app: Any) -> list[str]:
    return list(app.get_state(CONFIG).values.get("log", []))


def writes(acts: Acts) -> int:
    """How many calls of tasks are stored."""
    return len([name for name in acts.events("visit") if name == "visit.succeeded"])


def test_l53_what_is_done_inside_is_stored_with_the_settlement(acts: Acts, attach: Callable[[Any], Any]) -> None:
    """Several functions run in order; a node declared without effects may have them."""
    app = attach(line(acts.saver, a=acts.node("a", booking("one", "two")), b=says("b")))
    acts.run(app)

    assert (["one", "two"], ["in", "booked", "b"]) == (booked(acts), values(app))
    assert [("a", 1, "succeeded")] == acts.attempts()
    assert [] == acts.saver.ledger.verify()


def test_l53_one_that_raises_fails_the_attempt_and_nothing_is_stored(acts: Acts, attach: Callable[[Any], Any]) -> None:
    """Neither its rows, nor the task's writes, nor a checkpoint behind it; the run ends with that very error."""
    app = attach(line(acts.saver, a=acts.node("a", booking("one", fails=1)), b=says("b")))
    with pytest.raises(Boom, match="no room"):
        raising(acts, app)

    assert ([], ["in"], 0) == (booked(acts), values(app), writes(acts))
    assert (("a",), [("a", 1, "failed")]) == (app.get_state(CONFIG).next, acts.attempts())
    (failed,) = [e for e in acts.saver.ledger.events(limit=100) if e.name == "attempt.failed"]
    assert ("Boom", "no room") == (failed.details["error_type"], failed.details["error_message"])
    (run,) = acts.saver.ledger.runs()
    assert ("failed", "Boom") == (run.status, run.error_type)


def test_l53_going_on_runs_the_body_again_as_the_next_attempt(acts: Acts, attach: Callable[[Any], Any]) -> None:
    app = attach(line(acts.saver, a=acts.node("a", booking("one", fails=1)), b=says("b")))
    with pytest.raises(Boom):
        raising(acts, app)
    acts.run(app, None)

    assert (["one"], ["in", "booked", "b"]) == (booked(acts), values(app))
    assert [("a", 1, "failed"), ("a", 2, "succeeded")] == acts.attempts()
    assert "succeeded" == acts.saver.ledger.runs()[0].status
    assert [] == acts.saver.ledger.verify()


def test_l53_so_does_another_process(acts: Acts, backend: Any) -> None:
    """What the first one remembers of the failure is not needed."""
    app = line(acts.saver, a=acts.node("a", booking("one", fails=1)), b=says("b"))
    with pytest.raises(Boom):
        raising(acts, app)
    other = Acts(backend.open(), acts.form, acts.durability, acts.loop)
    acts.run(line(other.saver, a=other.node("a", booking("one")), b=says("b")), None)

    assert ["one"] == booked(acts)
    assert [("a", 1, "failed"), ("a", 2, "succeeded")] == other.attempts()


def test_l53_new_input_after_a_failure_goes_its_own_way(acts: Acts) -> None:
    app = line(acts.saver, a=acts.node("a", booking("one", fails=1)), b=acts.node("b"))
    with pytest.raises((Boom, AdmissionError)):
        raising(acts, app)
    acts.run(app, ("again",))

    assert (["one"], ["in", "again", "booked", "b"]) == (booked(acts), values(app))


def test_l53_so_does_an_update(acts: Acts) -> None:
    """`update_state` in the failed node's name."""
    app = line(acts.saver, a=acts.node("a", booking("one", fails=9)), b=acts.node("b"))
    with pytest.raises((Boom, AdmissionError)):
        raising(acts, app)
    app.update_state(CONFIG, {"log": ["by hand"]}, as_node="a")
    acts.run(app, None)

    assert ([], ["in", "by hand", "b"]) == (booked(acts), values(app))


def test_l53_the_task_beside_it_keeps_what_it_wrote(acts: Acts) -> None:
    """Only the failed one runs again."""
    builder = StateGraph(State).add_node("a", acts.node("a", booking("one", fails=1))).add_node("b", acts.node("b"))
    app = builder.add_edge(START, "a").add_edge(START, "b").compile(checkpointer=acts.saver)
    with pytest.raises(Boom):
        raising(acts, app)
    acts.run(app, None)

    assert (["one"], 2, 1) == (booked(acts), acts.ran.count("a"), acts.ran.count("b"))
    assert ["b", "booked", "in"] == sorted(values(app))


def test_l53_a_durable_node_behind_it_does_not_wait_in_vain(acts: Acts) -> None:
    """Under durability `async` LangGraph goes on meanwhile; a body there says what it waits for, and has not run."""
    app = line(acts.saver, a=acts.node("a", booking("one", fails=1)), b=acts.node("b"))
    with pytest.raises((Boom, AdmissionError)) as ended:
        raising(acts, app)

    assert isinstance(ended.value, Boom) or isinstance(ended.value.__cause__.__cause__, Boom)
    assert ["a"] == acts.ran
    acts.run(app, None)
    assert (["one"], ["a", "a", "b"]) == (booked(acts), acts.ran)


def test_l53_a_pause_runs_nothing_inside_and_the_end_runs_it(acts: Acts) -> None:
    """The body begins again behind the answer, and registers it again."""
    app = line(acts.saver, a=acts.node("a", booking("one", ends=lambda: {"log": [interrupt("sure?")]})))
    acts.run(app)
    assert [] == booked(acts)
    acts.run(app, Command(resume="yes"))

    assert (["one"], ["in", "yes"]) == (booked(acts), values(app))


def test_l53_a_body_that_raises_runs_nothing_inside(acts: Acts) -> None:
    def boom() -> Any:
        raise Boom("in the body")

    acts.run(line(acts.saver, a=acts.node("a", booking("one", ends=boom))))

    assert ([], [("a", 1, "failed")]) == (booked(acts), acts.attempts())


def test_l16_l53_a_result_that_is_given_back_is_not_settled_again(acts: Acts) -> None:
    """A router failed behind it; the task runs again, its body and what it did inside do not."""
    left = iter(range(1))

    def route(state: State) -> str:
        for _ in left:
            raise Boom("router")
        return "__end__"

    builder = StateGraph(State).add_node("a", acts.node("a", booking("one"))).add_edge(START, "a")
    app = builder.add_conditional_edges("a", route).compile(checkpointer=acts.saver)
    acts.run(app)
    acts.run(app, None)

    assert (["one"], ["in", "booked"], [("a", 1, "succeeded")]) == (booked(acts), values(app), acts.attempts())


def test_l53_a_retried_body_registers_anew(acts: Acts) -> None:
    """What the try before had registered is gone with it."""
    left = iter(range(1))

    def once() -> Any:
        for _ in left:
            raise Boom("first try")
        return {"log": ["booked"]}

    policy = RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=2, retry_on=Boom)
    builder = StateGraph(State).add_node("a", acts.node("a", booking("one", ends=once)), retry_policy=policy)
    acts.run(builder.add_edge(START, "a").compile(checkpointer=acts.saver))

    assert ["one"] == booked(acts)


@pytest.mark.parametrize("fails", [0, 1])
def test_l53_in_a_subgraph(acts: Acts, attach: Callable[[Any], Any], fails: int) -> None:
    """It fails the node that runs the subgraph, too; going on runs the one body again."""
    inner = StateGraph(State).add_node("in", acts.node("in", booking("one", fails=fails))).add_edge(START, "in")
    app = attach(line(acts.saver, out=inner.compile(), b=says("b")))
    if not fails:
        raising(acts, app)
    else:
        with pytest.raises(Boom):
            raising(acts, app)
        assert ([], ["in"]) == (booked(acts), values(app))
        acts.run(app, None)

    assert (["one"], "b") == (booked(acts), values(app)[-1])
    assert [("in", n + 1, "failed" if n < fails else "succeeded") for n in range(fails + 1)] == acts.attempts()
    assert [] == acts.saver.ledger.verify()


@pytest.mark.parametrize("fails", [0, 1])
def test_l53_with_a_command_to_the_parent(acts: Acts, attach: Callable[[Any], Any], fails: int) -> None:
    """LangGraph hands over no writes of that task: those of the enclosing one, which hold its result, settle it."""

    def leave() -> Any:
        return Command(graph=Command.PARENT, goto="b", update={"log": ["up"]})

    body = acts.node("in", booking("one", fails=fails, ends=leave))
    inner = StateGraph(State).add_node("in", body).add_edge(START, "in").compile()
    builder = StateGraph(State).add_node("out", inner, destinations=("b",)).add_node("b", says("b"))
    app = attach(builder.add_edge(START, "out").compile(checkpointer=acts.saver))
    if not fails:
        raising(acts, app)
    else:
        with pytest.raises(Boom):
            raising(acts, app)
        assert ([], ["in"], ("out",)) == (booked(acts), values(app), app.get_state(CONFIG).next)
        acts.run(app, None)

    assert (["one"], ["in", "up", "b"]) == (booked(acts), values(app))
    assert [] == acts.saver.ledger.verify()


def test_l53_a_node_that_catches_what_failed_in_its_subgraph_goes_on(acts: Acts) -> None:
    """The failure is its subgraph's; what becomes of it is the node's to say."""
    body = acts.node("in", booking("one", fails=1))
    inner = StateGraph(State).add_node("in", body).add_edge(START, "in").compile()

    def out(state: State) -> Any:
        try:
            inner.invoke({"log": []})
        except Boom:
            return {"log": ["caught"]}

    async def aout(state: State) -> Any:
        try:
            await inner.ainvoke({"log": []})
        except Boom:
            return {"log": ["caught"]}

    app = line(acts.saver, out=out if acts.form == "sync" else aout, b=acts.node("b"))
    acts.run(app)

    assert ([], ["in", "caught", "b"]) == (booked(acts), values(app))


def test_l53_many_at_once_fail_alone(acts: Acts) -> None:
    """Tasks that share a commit: one is rolled back, the others are stored, and only it runs again."""
    words = [f"w{number}" for number in range(12)]
    refused = {"w7"}
    left = iter([*words, "w7"])

    def body(frame: Frame) -> Any:
        word = next(left)

        def inside(tx: AppTx) -> None:
            tx.execute("INSERT INTO booking VALUES (:word)", {"word": word})
            if word in refused:
                refused.clear()
                raise Boom(word)

        frame.inside(inside)
        return {"log": [word]}

    builder = StateGraph(State).add_node("a", acts.node("a", body))
    builder.add_conditional_edges(START, lambda state: [Send("a", {"log": []}) for _ in words], ["a"])
    app = builder.compile(checkpointer=acts.saver)
    with pytest.raises(Boom):
        raising(acts, app)
    assert sorted(set(words) - {"w7"}) == sorted(booked(acts))
    acts.run(app, None)

    assert (12, 13) == (len(booked(acts)), len(acts.ran))
    assert [] == acts.saver.ledger.verify()


REFUSED = {
    "commit": "COMMIT",
    "end": "-- so\n END",
    "rollback": "/* no */ ROLLBACK",
    "begin": "BEGIN",
    "savepoint": "SAVEPOINT here",
    "attach": "ATTACH ':memory:' AS other",
    "pragma": "PRAGMA query_only = ON",
    "temporary": "CREATE TEMP TABLE attempt (a)",
    "our table": "DELETE FROM attempt",
    "our table, quoted": 'UPDATE "checkpoint_LOG" SET event = NULL',
    "our table, behind a query": "WITH x AS (SELECT 1) INSERT INTO lease SELECT * FROM lease",
    "our table, dropped": "DROP TABLE effect",
    "our table, watched": "CREATE TRIGGER t AFTER INSERT ON run BEGIN SELECT 1; END",
    "our index": "DROP INDEX effect_run",
}


@pytest.mark.parametrize("case", REFUSED)
def test_l53_a_statement_that_could_break_the_transaction_is_refused(saver: LedgerSaver, case: str) -> None:
    """Also when the function swallows the refusal; what it has done to its own table then stands."""
    seen: list[Exception] = []

    def inside(tx: AppTx) -> None:
        tx.execute("CREATE TABLE IF NOT EXISTS mine (word TEXT)")
        tx.execute("INSERT INTO mine VALUES ('kept')")
        with pytest.raises(InvalidArgument, match=r"^tx\.execute: ") as refusal:
            tx.execute(REFUSED[case])
        seen.append(refusal.value)

    acts = Acts(saver, "sync", "sync", asyncio.new_event_loop())
    acts.run(line(saver, a=acts.node("a", lambda frame: frame.inside(inside) or {"log": []})))
    acts.loop.close()

    assert 1 == len(seen)
    assert [("kept",)] == saver.database.transact(lambda tx: told(tx, "SELECT word FROM mine"))
    assert ([("a", 1, "succeeded")], []) == (acts.attempts(), saver.ledger.verify())


def test_l53_a_trigger_of_the_applications_reaches_no_table_of_ours(saver: LedgerSaver) -> None:
    def inside(tx: AppTx) -> None:
        tx.execute("CREATE TABLE mine (word TEXT)")
        tx.execute("CREATE TRIGGER t AFTER INSERT ON mine BEGIN DELETE FROM attempt; END")
        tx.execute("INSERT INTO mine VALUES ('x')")

    with pytest.raises(InvalidArgument, match="attempt"):
        ran(saver, inside)

    assert [("a", 1, "failed")] == statuses(saver)


def test_l53_a_transaction_that_a_statement_rolled_back_is_not_settled(saver: LedgerSaver) -> None:
    """`ON CONFLICT ROLLBACK` ends it under our feet; swallowed or not, nothing is stored."""

    def inside(tx: AppTx) -> None:
        tx.execute("CREATE TABLE mine (word TEXT UNIQUE)")
        tx.execute("INSERT INTO mine VALUES ('x')")
        with pytest.raises(sqlite3.IntegrityError):
            tx.execute("INSERT OR ROLLBACK INTO mine VALUES ('x')")
        with pytest.raises(RuntimeError):
            tx.execute("CREATE TABLE mine (word TEXT)")  # which would be a transaction of its own

    with pytest.raises(RuntimeError, match="rolled back"):
        ran(saver, inside)

    assert [("a", 1, "failed")] == statuses(saver)
    assert [] == saver.database.transact(lambda tx: told(tx, "SELECT 1 FROM sqlite_master WHERE name = 'mine'"))


def test_l53_results_are_read_like_a_cursors(saver: LedgerSaver) -> None:
    seen: list[Any] = []

    def inside(tx: AppTx) -> None:
        tx.execute("CREATE TABLE mine (number INTEGER PRIMARY KEY, word TEXT)")
        added = tx.execute("INSERT INTO mine (word) VALUES (?), (?)", ["a", "b"])
        found = tx.execute("SELECT number, word FROM mine WHERE number > :least ORDER BY number", {"least": 0})
        seen.extend([added.rowcount, added.lastrowid, found.columns, found.fetchone(), list(found), found.fetchone()])
        seen.append(tx.execute("SELECT status FROM attempt").fetchall())
        seen.append(tx)

    ran(saver, inside)

    assert [2, 2, ("number", "word"), (1, "a"), [(2, "b")], None, [("running",)]] == seen[:-1]
    with pytest.raises(RuntimeError, match="over"):
        seen[-1].execute("SELECT 1")


BAD: dict[str, tuple[Callable[[AppTx], Any], type[Exception], str]] = {
    "a wrong statement": (lambda tx: tx.execute("SELEC 1"), sqlite3.OperationalError, "syntax"),
    "several statements": (lambda tx: tx.execute("SELECT 1; COMMIT"), sqlite3.Error, "one statement"),
    "a row that is not there": (lambda tx: next(iter(tx.execute("SELECT 1 WHERE 0"))), RuntimeError, "not there"),
    "a question": (lambda tx: interrupt("?"), Exception, "inside|runnable context"),
    "a coroutine": (lambda tx: asyncio.sleep(0), InvalidArgument, "plain function"),
}


@pytest.mark.parametrize("case", BAD)
def test_l53_whatever_it_raises_ends_the_invocation(saver: LedgerSaver, case: str) -> None:
    inside, kind, words = BAD[case]
    with pytest.raises(kind, match=words):
        ran(saver, inside)

    assert [("a", 1, "failed")] == statuses(saver)


def test_l53_a_transaction_begun_inside_is_refused(saver: LedgerSaver) -> None:
    """By the lane, which would wait for itself."""
    with pytest.raises(RuntimeError, match="another transaction"):
        ran(saver, lambda tx: saver.ledger.runs())

    assert [("a", 1, "failed")] == statuses(saver)


def test_l53_only_a_plain_function_is_registered_and_only_in_the_body(saver: LedgerSaver) -> None:
    kept: list[Frame] = []

    async def later(tx: AppTx) -> None: ...

    def body(frame: Frame) -> Any:
        kept.append(frame)
        for wrong in (later, None, "SELECT 1"):
            with pytest.raises(InvalidArgument, match="plain function"):
                frame.inside(wrong)  # type: ignore[arg-type]
        return {"log": []}

    acts = Acts(saver, "sync", "sync", asyncio.new_event_loop())
    acts.run(line(saver, a=acts.node("a", body)))
    acts.loop.close()
    with pytest.raises(InvalidArgument, match="has ended"):
        kept[0].inside(book("late"))


def raising(acts: Acts, app: Any, given: Any = None) -> Any:
    """As `acts.run`, and what it raises is raised."""
    given = {"log": ["in"]} if given is None else given
    if acts.form == "sync":
        return app.invoke(given, CONFIG, durability=acts.durability)
    return acts.loop.run_until_complete(app.ainvoke(given, CONFIG, durability=acts.durability))


def ran(saver: LedgerSaver, inside: Callable[[AppTx], Any]) -> None:
    """A run of one durable node that does this inside."""
    acts = Acts(saver, "sync", "sync", asyncio.new_event_loop())
    try:
        raising(acts, line(saver, a=acts.node("a", lambda frame: frame.inside(inside) or {"log": []})))
    finally:
        acts.loop.close()


def statuses(saver: LedgerSaver) -> list[tuple[str, int, str]]:
    return [(each.node, each.number, str(each.status)) for each in saver.ledger.attempts(saver.ledger.runs()[0].run_id)]


def told(tx: Any, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in tx._execute(sql, {}).fetchall()]


class LateWrites(LedgerSaver):
    """A saver whose `put_writes` of a body begins when the checkpoint behind it was tried, as LangGraph's may."""

    put_was_tried: threading.Event

    def put(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().put(*args, **kwargs)
        finally:
            if self.staging.any or self.failed.any:
                self.put_was_tried.set()

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if task_path.endswith("pull, a"):
            assert self.put_was_tried.wait(10)
        super().put_writes(config, writes, task_id, task_path)


class MeetingWrites(LedgerSaver):
    """A saver whose put has seen what is staged, and commits when `put_writes` has failed to settle it."""

    put_has_seen: threading.Event
    writes_ended: threading.Event

    def _submit_put(self, planned: Any, staged: Any) -> Any:
        if staged:
            self.put_has_seen.set()
            assert self.writes_ended.wait(10)
        return super()._submit_put(planned, staged)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if not task_path.endswith("pull, a"):
            return super().put_writes(config, writes, task_id, task_path)
        assert self.put_has_seen.wait(10)
        try:
            super().put_writes(config, writes, task_id, task_path)
        finally:
            self.writes_ended.set()


@pytest.mark.parametrize("kind", [LateWrites, MeetingWrites])
def test_s11_l53_whichever_call_comes_first_it_fails_once_and_for_both(
    kind: type[LedgerSaver], tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    """What failed in the one transaction is not tried in the other, where it might succeed: the attempt has failed."""
    with kind(tmp_path / "runs.db") as saver:
        for name in ("put_was_tried", "put_has_seen", "writes_ended"):
            setattr(saver, name, threading.Event())
        acts, tries = Acts(saver, "sync", "sync", loop), []

        def inside(tx: AppTx) -> None:
            tries.append(tx)
            if len(tries) == 1:
                raise Boom("no room")

        app = line(saver, a=acts.node("a", lambda frame: frame.inside(inside) or {"log": ["a"]}))
        with pytest.raises(Boom):
            raising(acts, app)

        assert (1, [("a", 1, "failed")], 0) == (len(tries), acts.attempts(), writes(acts))
        assert (["in"], ("a",)) == (values(app), app.get_state(CONFIG).next)
        acts.run(app, None)
        assert (2, ["in", "a"]) == (len(tries), values(app))


class SlowPut(LedgerSaver):
    """A saver whose puts take a while, once they are to."""

    is_slow = False

    def _submit_put(self, planned: Any, staged: Any) -> Any:
        if self.is_slow:
            time.sleep(0.2)
        return super()._submit_put(planned, staged)

    async def _queue_put(self, planned: Any, staged: Any) -> Any:
        if self.is_slow:
            await asyncio.sleep(0.2)
        return await super()._queue_put(planned, staged)


def test_l53_a_failure_is_not_in_the_way_of_another_invocation(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
    """Who branches off before the failed node only waits for a checkpoint of its own that is still being saved."""
    with SlowPut(tmp_path / "runs.db") as saver:
        acts = Acts(saver, "sync", "async", loop)
        app = line(saver, x=says("x"), a=acts.node("a", lambda frame: frame.inside(failing(once)) or {"log": ["a"]}))
        once = [Boom("no room")]
        with pytest.raises(Boom):
            raising(acts, app)
        before = next(each.config for each in app.get_state_history(CONFIG) if each.next == ("x",))

        saver.is_slow = True
        app.invoke(None, before, durability="async")

        assert ["in", "x", "a"] == values(app)


@pytest.mark.slow
@pytest.mark.parametrize("keeps_state", [None, True])
def test_l53_nor_of_the_next_try_of_its_subgraph(
    tmp_path: Path, form: Form, loop: asyncio.AbstractEventLoop, keeps_state: bool | None
) -> None:
    """The node that runs it is tried again; a body in there waits for a checkpoint of this try."""
    with SlowPut(tmp_path / "runs.db") as saver:
        saver.is_slow = True
        acts, once = Acts(saver, form, "async", loop), [Boom("no room")]
        inner = StateGraph(State).add_node(
            "a", acts.node("a", lambda frame: frame.inside(failing(once)) or {"log": []})
        )
        inner.add_node("b", acts.node("b")).add_edge(START, "a")
        inner.add_conditional_edges("a", lambda _: "b" if acts.ran.count("a") > 1 else END, ["b", END])
        again = RetryPolicy(max_attempts=2, initial_interval=0.001, retry_on=Boom)
        outer = StateGraph(State).add_node("sub", inner.compile(keeps_state), retry_policy=again).add_edge(START, "sub")
        acts.run(outer.compile(checkpointer=saver))

        assert ["a", "a", "b"] == acts.ran


def failing(errors: list[BaseException]) -> Callable[[AppTx], object]:
    """What `inside` is given: raises these, one a time."""

    def inside(tx: AppTx) -> None:
        if errors:
            raise errors.pop()

    return inside
