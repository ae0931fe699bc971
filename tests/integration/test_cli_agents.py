"""Agent runs of the engine on the command line: `show` and `resolve-operation`, run as people run them."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from langgraph_ext import AgentGraphEngine, AgentSpec, LedgerSaver, ToolPolicy
from langgraph_ext.cli.app import app
from langgraph_ext.testing import ScriptedChatModel, call, calls, fixed_ids
from tests.support.apps import line, says
from tests.support.pages import masked, python

RESOLVE = "langgraph-ext resolve-operation doubt-000001 doubt-000004"


class Bank:
    """An agent with a tool that does not come back the first time: whoever has called it knows nothing."""

    def __init__(self) -> None:
        self.charged: list[int] = []
        self.called = asyncio.Event()
        script = [
            calls("At once.", call("charge", {"cents": 700}), call("look", {"what": "sky"}), call("dance")),
            "All is paid.",
        ]
        policies = {"look": ToolPolicy(effect="repeatable")}
        self.spec = AgentSpec(
            model=ScriptedChatModel(script=script), tools=[self.charge, self.look], tool_policies=policies
        )

    async def charge(self, cents: int) -> str:
        """Charge the customer."""
        self.charged.append(cents)
        if len(self.charged) == 1:
            await asyncio.sleep(0.1)  # the other call of the decision comes to its end
            self.called.set()
            await asyncio.sleep(60)
        return f"charged {cents}"

    async def look(self, what: str) -> str:
        """Look at something."""
        return f"a secret {what}"


async def leave_in_doubt(path: Path) -> Bank:
    """The agent run `doubt-000001`, whose worker was cancelled while it charged."""
    bank = Bank()
    async with AgentGraphEngine(path, ids=fixed_ids("doubt")) as engine:
        run = await engine.astart(bank.spec, "pay", key="order-7")
        worker = asyncio.create_task(engine.adrive(run.agent_run_id))
        await bank.called.wait()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        await engine.adrive(run.agent_run_id)
    return bank


@pytest.fixture(autouse=True)
def _of_any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in doubt, one that has ended, and one of a graph, which has the thread of an agent's."""
    path = tmp_path_factory.mktemp("agents") / "runs.db"
    asyncio.run(leave_in_doubt(path))
    with AgentGraphEngine(path, ids=fixed_ids("ended")) as engine:
        engine.run(AgentSpec(model=ScriptedChatModel(script=["Hello, you."])), "hello")
    with LedgerSaver(path) as saver:
        config: Any = {"configurable": {"thread_id": "agent:graph-1"}, "metadata": {"run_id": "graph-1"}}
        line(saver, a=says("a")).invoke({"log": []}, config)
    return path


@pytest.fixture
def db(written: Path, tmp_path: Path) -> Path:
    """The same in a file that may be changed."""
    return Path(shutil.copy(written, tmp_path / "runs.db"))


def ask(db: Path, *args: str) -> tuple[int, str, str]:
    """Exit status and output of a command, run here."""
    ran = CliRunner().invoke(app, [*args, "--db", str(db)])
    return ran.exit_code, ran.stdout, ran.stderr


def ask_elsewhere(db: Path, *args: str) -> str:
    """What a command prints that is run in a process of its own."""
    return python("-m", "langgraph_ext.cli", *args, "--db", str(db), cwd=db.parent)


def test_an_agent_run_is_a_tree_of_its_tasks_decisions_and_slots(written: Path) -> None:
    """And each call in doubt is told with the commands that resolve it, as they are to be typed."""
    expected = f"""\
agent run doubt-000001  running  9 ms  started 2026-11-30T00:00:00Z  key order-7  paused since 2026-11-30T00:00:00Z  \
1 call in doubt  loops 1/100  tickets 1 consumed  model calls 1  tool calls 2  tokens 2 in, 14 out
└─ react  waiting  wait_batch  id doubt-000002
   └─ model business-model:1  completed  id doubt-000003  tokens 2 in, 14 out
      ├─ slot call-0-0 charge  admitted  unknown  in doubt  id doubt-000004
      ├─ slot call-0-1 look  settled  id doubt-000005  "a secret sky"
      └─ slot call-0-2 dance  settled  rejected  "tool_unknown: there is no tool 'dance'; there are: charge,…
in doubt: charge  id doubt-000004  called 2026-11-30T00:00:00Z  look outside
├─ if it happened: {RESOLVE} --db {written} --result JSON
└─ if not, and it is to be called again: {RESOLVE} --db {written} --did-not-happen
"""
    assert masked(expected) == masked(ask_elsewhere(written, "show", "doubt"))


def test_the_transcript_is_told_when_it_is_asked_for(written: Path) -> None:
    _, out, _ = ask(written, "show", "doubt", "--transcript")
    _, ended, _ = ask(written, "show", "ended", "--transcript")

    told = """transcript
├─ 1 input  "pay"
└─ 2 decision  "At once."  calls charge {"cents":700}  calls look {"what":"sky"}  calls dance {}
in doubt: charge"""
    assert told in out
    assert ended.endswith('transcript\n├─ 1 input  "hello"\n└─ 2 decision  "Hello, you."\n')


def test_programs_are_told_all_of_an_agent_run(written: Path) -> None:
    """With its payloads whole; messages as langchain-core writes them."""
    told = json.loads(ask(written, "show", "doubt", "--json", "--transcript")[1])

    assert ["run", "agent_run", "tasks", "operations", "slots", "tickets", "doubts", "requests", "transcript"] == list(
        told
    )
    assert ("agent:doubt-000001", "running", ["doubt-000004"]) == (
        told["run"]["thread_id"],
        told["agent_run"]["status"],
        told["doubts"],
    )
    assert "a secret sky" == told["slots"][1]["result"]["data"]["content"]
    assert ["human", "ai"] == [each["message"]["type"] for each in told["transcript"]]
    assert "transcript" not in json.loads(ask(written, "show", "ended", "--json")[1])


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_no_payload_is_printed_where_none_is_wanted(written: Path, options: list[str]) -> None:
    code, out, _ = ask(written, "show", "doubt", "--transcript", "--no-payloads", *options)

    assert (0, True) == (code, "doubt-000005" in out)
    assert [] == [word for word in ("secret", "sky", "cents", "At once", "pay") if word in out]


async def test_a_run_is_shown_while_it_goes(tmp_path: Path) -> None:
    """From another process; what is under way has no result, and is not in doubt."""
    bank, path = Bank(), tmp_path / "runs.db"
    async with AgentGraphEngine(path, ids=fixed_ids("going")) as engine:
        run = await engine.astart(bank.spec, "pay")
        worker = asyncio.create_task(engine.adrive(run.agent_run_id))
        await bank.called.wait()
        out = await asyncio.to_thread(ask_elsewhere, path, "show", "going")
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

    assert (True, False) == ("charge  admitted  dispatched  id" in out, "in doubt" in out)


@pytest.mark.parametrize(
    ("said", "state", "charged"),
    [(["--result", '"receipt 7"'], "completed", [700]), (["--did-not-happen"], "ready", [700, 700])],
)
def test_what_was_found_out_is_said_and_the_run_goes_on(
    tmp_path: Path, said: list[str], state: str, charged: list[int]
) -> None:
    """A call that was made is not made again; one that was not, is."""
    path = tmp_path / "runs.db"
    bank = asyncio.run(leave_in_doubt(path))

    code, out, _ = ask(path, "resolve-operation", "doubt", "doubt-000004", *said)
    assert (0, f"tool charge  {state}  id doubt-000004\n") == (code, out)
    with AgentGraphEngine(path) as engine:
        run = engine.drive("doubt-000001", bank.spec)
        result = engine.slots("doubt-000001")[0].result

    assert ("succeeded", "All is paid.", charged) == (run.status, run.output, bank.charged)
    assert result is not None
    assert ("receipt 7" if len(charged) == 1 else "charged 700") == result.content


def test_programs_are_told_what_became_of_a_resolved_call(db: Path) -> None:
    code, out, _ = ask(db, "resolve-operation", "doubt-000001", "doubt-000004", "--result", '{"paid": 7}', "--json")
    told = json.loads(out)["operation"]

    assert (0, "completed", False) == (code, told["state"], told["in_doubt"])
    assert (2, "") == ask(db, "resolve-operation", "doubt", "doubt-000004", "--result", "1")[:2]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["doubt", "doubt-000004"], "pass --result JSON or --did-not-happen, one of them"),
        (["doubt", "doubt-000004", "--result", "1", "--did-not-happen"], "pass --result JSON or --did-not-happen"),
        (["doubt", "doubt-000004", "--result", "paid"], "--result is not JSON"),
        (["doubt", "doubt-000005", "--result", "1"], "operation 'doubt-000005' is completed, and not in doubt"),
        (["doubt", "nothing", "--did-not-happen"], "agent run 'doubt-000001' has no operation 'nothing'"),
        (["ended", "ended-000003", "--did-not-happen"], "agent run 'ended-000001' is succeeded"),
        (["nobody", "doubt-000004", "--did-not-happen"], "run 'nobody' is not in this ledger"),
    ],
)
def test_what_cannot_be_resolved_is_one_line_and_exit_status_2(written: Path, args: list[str], said: str) -> None:
    code, out, err = ask(written, "resolve-operation", *args)

    assert (2, "", 1) == (code, out, err.count("\n"))
    assert err.startswith(f"error: {said}")


def test_a_run_of_a_graph_is_shown_as_ever_whatever_its_thread_is_called(written: Path) -> None:
    code, out, _ = ask(written, "show", "graph", "--transcript")

    assert (0, True) == (code, out.startswith("run graph-1  succeeded"))
