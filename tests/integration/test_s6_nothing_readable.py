"""S6: of all that a run is given, says, asks, is told and keeps, nothing can be read in an encrypted database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langgraph_ext import AgentNode, Frame, LedgerSaver, RunLedger, durable, with_ledger
from langgraph_ext.database import LOCKED
from langgraph_ext.database.reencrypting import OWN_TABLES
from langgraph_ext.database.sealed_columns import TABLES
from langgraph_ext.errors import EncryptionError
from langgraph_ext.testing import ScriptedChatModel, call, calls
from tests.support.apps import CONFIG, Boom, State, asks, line, says, tried
from tests.support.ciphers import KEYS, NEWER

SECRET = "the-patient-is-ill"

NEVER_THERE = {"agent_task.error", "agent_member.arguments", "agent_operation.raw", "agent_run.message"}
"""Nothing in these stories comes to that."""


class Odd:
    """What is no JSON."""

    def __init__(self, text: str) -> None:
        self.text = text


@durable(effect="write", accepts_steering=True, on_fork="ask")
def pays(state: State, frame: Frame) -> Any:
    frame.memo["note"] = SECRET
    return {"log": [frame.once("pay", {"order": SECRET}, lambda key: {"receipt": SECRET})["receipt"]]}


def fails(state: State) -> Any:
    raise Boom(SECRET)


@tool
def look(what: str) -> str:
    """Look something up, for the-patient-is-ill."""
    return f"{what}, found"


def talks(saver: LedgerSaver) -> None:
    """An agent that has a prompt, calls tools, asks a person, fails at one, and goes on in a second turn."""
    script: list[Any] = [
        calls(call("look", {"what": f"{SECRET} 1"}), call("look", {"what": f"{SECRET} 2"})),
        f"done, {SECRET}",
        call("nothing", {"what": SECRET}),
        f"done again, {SECRET}",
    ]
    node = AgentNode(
        name="support",
        model=ScriptedChatModel(script=script),
        tools=[look],
        system_prompt=f"Mind that {SECRET}.",
        interrupt_on={"look": True},
    )
    builder: Any = StateGraph(MessagesState)
    app: Any = with_ledger(builder.add_node(node).add_edge(START, "support").compile(checkpointer=saver))
    where: Any = {"configurable": {"thread_id": "chat"}}
    app.invoke({"messages": [HumanMessage(f"Hello, {SECRET}")]}, where, durability="sync")
    rejected = {"type": "reject", "message": SECRET}
    edited = {"type": "edit", "edited_action": {"name": "look", "args": {"what": f"{SECRET} 3"}}}
    final = app.invoke(Command(resume={"decisions": [rejected, edited]}), where, durability="sync")
    assert SECRET in final["messages"][-1].text
    app.invoke({"messages": [HumanMessage(f"And, {SECRET}")]}, where, durability="sync")


def life(saver: LedgerSaver) -> None:
    """Runs that have seen everything."""
    inner = line(None, asks=asks({"kind": SECRET, "ask": SECRET}))
    app = line(saver, a=says(SECRET * 300), pays=pays, inner=inner)
    tried(app, (SECRET,))
    saver.ledger.steer(saver.ledger.runs()[0].run_id, SECRET)
    (question,) = saver.ledger.interrupts(pending=True, kind=SECRET)
    assert [] == saver.ledger.interrupts(kind="other")
    saver.ledger.answer({question.interrupt_id: SECRET}, by=SECRET)
    app.invoke(saver.ledger.resume_command("t"), CONFIG)
    tried(line(saver, fails=fails), (SECRET,))
    tried(app, (SECRET,))
    saver.ledger.cancel(saver.ledger.runs()[0].run_id, reason=SECRET)
    tried(app, (SECRET,))
    builder: Any = StateGraph(State)
    builder.add_node("asks", lambda state: {"log": [str(interrupt(SECRET))]}).add_edge(START, "asks")
    with_ledger(builder.compile(checkpointer=saver)).invoke(
        {"log": [SECRET]}, {"configurable": {"thread_id": "keyed", "run_key": "order-7"}, "metadata": {"who": SECRET}}
    )
    talks(saver)
    forked(saver)


def forked(saver: LedgerSaver) -> None:
    """A fork meets an effect again, and takes its receipt over."""
    where: Any = {"configurable": {"thread_id": "fork"}}
    builder: Any = StateGraph(State).add_node("a", says("a")).add_node("pays", pays)
    app: Any = builder.add_edge(START, "a").add_edge("a", "pays").compile(checkpointer=saver)
    app.invoke({"log": [SECRET]}, where)
    (before,) = [each for each in app.get_state_history(where) if each.next == ("pays",)]
    asked = app.invoke(None, app.update_state(before.config, {"log": ["b"]}, as_node="a"))
    (question,) = asked["__interrupt__"]
    app.invoke(Command(resume={question.id: "reuse"}), where)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of all that, which was copied while it was open, so that it has its log."""
    return tmp_path_factory.mktemp("lived") / "runs.db"


@pytest.fixture(scope="module")
def lived(path: Path) -> Iterator[LedgerSaver]:
    with LedgerSaver(path, encryption=KEYS) as saver:
        life(saver)
        yield saver


def test_s6_nothing_that_was_said_stands_in_the_file(lived: LedgerSaver, path: Path) -> None:
    """Inputs, states, metadata, prompts, arguments and results of tools, questions, answers, memos, payloads and
    receipts of effects, messages of errors, reasons, and who gave an answer; in the database and its log."""
    found = b"".join(each.read_bytes() for each in path.parent.glob("runs.db*"))
    assert len(found) > 500_000
    assert SECRET.encode() not in found
    for part in ("patient", "Mind that", "And, the", "order-secret"):
        assert part.encode() not in found


def test_s6_it_reads_as_if_it_were_plain(lived: LedgerSaver) -> None:
    """And the ledger agrees with itself."""
    ledger = lived.ledger
    assert [] == ledger.verify()
    told = repr([ledger.interrupts(limit=50), ledger.effects(limit=50), ledger.runs(limit=50)])
    told += repr([ledger.events(run.run_id, limit=500) for run in ledger.runs(limit=50)])
    told += repr([(ledger.memos(run.run_id), ledger.inbox(run.run_id)) for run in ledger.runs(limit=50)])
    assert told.count(SECRET) > 30


def columns() -> list[tuple[str, str]]:
    return [(table, column) for table in OWN_TABLES for column in TABLES[table].columns]


@pytest.mark.parametrize(("table", "column"), columns())
def test_s6_of_every_table_what_is_plain_or_moved_is_refused_by_name(
    lived: LedgerSaver, path: Path, tmp_path: Path, table: str, column: str
) -> None:
    """Each payload of ledger and engine is there, and sealed for its row."""
    there = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(there)) as target:
        source.backup(target)
        rows = target.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall()
        assert rows or f"{table}.{column}" in NEVER_THERE
        if not rows:
            return
        plain: Any = b'{"x": 1}' if isinstance(rows[0][1], bytes) else "sha256:0"
        target.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (plain, rows[0][0]))
        target.commit()
        assert ("row_plaintext", f"{table}.{column}") == refused(there)
        if len(rows) > 1:
            target.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (rows[1][1], rows[0][0]))
            target.commit()
            assert ("row_forged", f"{table}.{column}") == refused(there)


def refused(path: Path) -> tuple[str, Any]:
    with LedgerSaver(path, encryption=NEWER) as saver, pytest.raises(EncryptionError) as error:
        saver.reencrypt()
    return error.value.code, error.value.details["what"]


def test_s6_a_forged_row_of_the_ledger_is_refused_where_it_is_read(
    lived: LedgerSaver, path: Path, tmp_path: Path
) -> None:
    """The answer to one question is none to another; a receipt is none of another effect."""
    there = tmp_path / "runs.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(there)) as target:
        source.backup(target)
        target.execute("UPDATE interrupt SET value = (SELECT max(value) FROM interrupt) WHERE thread_id = 't'")
        target.execute("UPDATE effect SET receipt = (SELECT receipt FROM effect ORDER BY effect_id LIMIT 1)")
        target.commit()
    with RunLedger(there, encryption=KEYS) as ledger:
        for read, what in ((ledger.interrupts, "interrupt.value"), (ledger.effects, "effect.receipt")):
            with pytest.raises(EncryptionError) as error:
                read(limit=50)
            assert ("row_forged", what) == (error.value.code, error.value.details["what"])


def test_s6_without_a_key_the_ledger_shows_ids_states_times_and_counts(lived: LedgerSaver, path: Path) -> None:
    """And says of payloads that they are encrypted."""
    known = lived.ledger
    with RunLedger(path, encryption=LOCKED) as ledger:
        runs = ledger.runs(limit=50)
        assert [(run.run_id, run.status, run.started_at, run.thread_id) for run in known.runs(limit=50)] == [
            (run.run_id, run.status, run.started_at, run.thread_id) for run in runs
        ]
        for run in runs:
            assert len(known.events(run.run_id, limit=500)) == len(ledger.events(run.run_id, limit=500))
            assert known.usage(run.run_id) == ledger.usage(run.run_id)
            assert len(known.visits(run.run_id)) == len(ledger.visits(run.run_id))
        shown = repr([ledger.interrupts(limit=50), ledger.effects(limit=50), runs, ledger.memos(runs[-1].run_id)])
    assert "(encrypted)" in shown
    assert SECRET not in shown


def test_s6_what_is_kept_of_a_deleted_thread_can_be_read(tmp_path: Path) -> None:
    """Its rows stand under another name then, and are sealed for that."""
    with LedgerSaver(tmp_path / "runs.db", encryption=KEYS) as saver:
        life(saver)
        before = {run.run_id: len(saver.ledger.visits(run.run_id)) for run in saver.ledger.runs(thread_id="t")}
        for thread in ("t", "chat"):
            saver.delete_thread(thread, keep_ledger=True)
        runs = saver.ledger.runs(thread_id="t")
        assert before == {run.run_id: len(saver.ledger.visits(run.run_id)) for run in runs}
        assert [] == saver.ledger.verify()
        for run in runs:
            assert saver.ledger.events(run.run_id, limit=500)
        saver.reencrypt()
        saver.prune(["fork", "keyed"])
        assert [] == saver.ledger.verify()
