"""Durable nodes and attached graphs under LangGraph's API server: its adapter, and a real `langgraph dev`."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.config import get_config
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver, with_ledger
from langgraph_ext.nodes import Frame
from langgraph_ext.saver import host
from tests.support.acted import Acts
from tests.support.apps import line
from tests.support.backends import SqliteBackend
from tests.support.server import ServerAdapter

METADATA = {"langgraph_version": "1.2", "langgraph_api_url": "http://localhost", "run_attempt": 1}
"""Of each run that the server starts."""


def config(name: str) -> Any:
    return {"configurable": {"thread_id": name}, "metadata": METADATA}


def build(acts: Acts, checkpointer: Any) -> Any:
    """As the server does it: the graph was attached before it got its checkpointer."""

    def act(frame: Frame) -> Any:
        assert host.saver_in(get_config()).attached.any, "the invocation holds its thread"
        return {"log": [frame.once("act", {}, lambda key: "done")]}

    nodes = {"act": acts.node("act", act, effect="write"), "ask": acts.node("ask", _ask)}
    return with_ledger(line(None, **nodes)).copy(update={"checkpointer": checkpointer})


def _ask(frame: Frame) -> Any:
    return {"log": [interrupt("sure?")]}


def test_l12_an_attached_graph_holds_its_thread_under_the_servers_adapter(
    backend: SqliteBackend, saver: LedgerSaver
) -> None:
    """Several loops, each with a saver of its own on one file. One invocation is one epoch."""

    def serve(number: int) -> list[str]:
        async def story() -> list[str]:
            own = backend.open()
            acts = Acts(own, "async", "async", asyncio.get_running_loop())
            told = []
            for turn in range(3):
                name = f"{number}-{turn}"
                app = build(acts, ServerAdapter(own, run_id=f"run {name}"))
                await app.ainvoke({"log": ["in"]}, config(name))
                app = build(acts, ServerAdapter(own, run_id=f"run {name}"))
                told.append((await app.ainvoke(Command(resume="yes"), config(name)))["log"])
            return told

        return asyncio.run(story())

    with ThreadPoolExecutor(3) as pool:
        told = [log for logs in pool.map(serve, range(3)) for log in logs]
    found = [each for run in saver.ledger.runs() for each in saver.ledger.attempts(run.run_id)]

    assert [["in", "done", "yes"]] * 9 == told
    assert {("act", 1, "succeeded", 1), ("ask", 1, "succeeded", 2)} == {
        (each.node, each.number, str(each.status), each.epoch) for each in found
    }
    assert (9, []) == (len(saver.ledger.effects()), saver.ledger.verify())


def test_l14_durable_nodes_run_under_the_servers_adapter_without_being_attached(
    backend: SqliteBackend, saver: LedgerSaver, loop: asyncio.AbstractEventLoop
) -> None:
    """Sync bodies in the loop's threads, and async ones; another process of the server goes on."""
    for form in ("sync", "async"):
        name = f"thread {form}"
        acts = Acts(saver, form, "async", loop)  # type: ignore[arg-type]
        nodes = {"act": acts.node("act"), "ask": acts.node("ask", _ask)}
        for given in ({"log": ["in"]}, Command(resume="yes")):
            app = line(ServerAdapter(backend.open(), run_id=f"run {form}"), **nodes)
            end = loop.run_until_complete(app.ainvoke(given, config(name)))
        assert ["in", "act", "yes"] == end["log"]

    assert [("act", 1, "succeeded"), ("ask", 1, "succeeded")] * 2 == acts.attempts()
    assert [] == saver.ledger.verify()


# -- a real server


SERVER = Path(__file__).parents[1] / "support" / "langgraph_dev"
"""What `langgraph dev` is pointed at: graph, saver and `langgraph.json`."""


class Dev:
    """A `langgraph dev` in a folder, and a client of it."""

    def __init__(self, folder: Path, **environment: str) -> None:
        from langgraph_sdk import get_sync_client

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.folder, self._url = folder, f"http://127.0.0.1:{port}"
        offline = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "RUNS": str(folder)}
        where = os.pathsep.join((str(SERVER.parents[2]), os.environ.get("PYTHONPATH", "")))
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
        shutil.copytree(SERVER, folder, dirs_exist_ok=True)
        self._log = (folder / "server.log").open("a")
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **offline, **environment, "PYTHONPATH": where},
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.client = get_sync_client(url=self._url)
        self.until(self._answers)

    def _answers(self) -> bool:
        import httpx

        assert self._process.poll() is None, (self.folder / "server.log").read_text()[-3000:]
        try:
            return bool(httpx.get(f"{self._url}/ok").status_code == 200)
        except httpx.TransportError:
            return False

    def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()[-3000:]
            time.sleep(0.1)

    def kill(self) -> None:
        self.client.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


def needs_server(test: Any) -> Any:
    test = pytest.mark.skipif(
        importlib.util.find_spec("langgraph_api") is None,
        reason="no langgraph dev here: pip install 'langgraph-cli[inmem]', which is no part of the extra dev",
    )(test)
    return pytest.mark.slow(pytest.mark.timeout(300)(test))


@needs_server
def test_l12_l28_a_real_server_is_killed_and_goes_on(tmp_path: Path) -> None:
    """Asked, answered, killed behind an effect, started again: every effect is done once, by one invocation each."""
    dev = Dev(tmp_path, SLOW="1")
    try:
        thread = dev.client.threads.create()["thread_id"]
        dev.client.runs.wait(thread, "agent", input={"log": ["in"]})
        assert ["ask"] == dev.client.threads.get_state(thread)["next"]
        dev.client.runs.create(thread, "agent", command={"resume": "yes"})
        dev.until(lambda: "mail" in (tmp_path / "effects").read_text())
    finally:
        dev.kill()
    dev = Dev(tmp_path)
    try:
        if not any(thread == each["thread_id"] for each in dev.client.threads.search()):  # its own files lag behind
            dev.client.threads.create(thread_id=thread, graph_id="agent")
        dev.client.runs.wait(thread, "agent", input=None, multitask_strategy="enqueue")
        log = dev.client.threads.get_state(thread)["values"]["log"]
    finally:
        dev.kill()

    assert (["in", "charge", "yes", "mail"], ["charge", "mail"]) == (log, (tmp_path / "effects").read_text().split())
    with LedgerSaver(tmp_path / "runs.db") as saver:
        (run,) = saver.ledger.runs(thread_id=thread)
        found = [(each.node, each.number, str(each.status)) for each in saver.ledger.attempts(run.run_id)]
        assert [] == saver.ledger.verify()
    assert [("charge", 1, "succeeded"), ("ask", 1, "succeeded"), ("mail", 1, "interrupted")] == found[:3]
    assert ("mail", 2, "succeeded") == found[-1]


@needs_server
def test_a15_an_agent_under_a_real_server_is_killed_in_its_tool_and_pays_once(tmp_path: Path) -> None:
    """Asked and approved through the server; killed behind the payment; the doubt is asked about, and answered."""
    dev = Dev(tmp_path, SLOW="1")
    try:
        thread = dev.client.threads.create()["thread_id"]
        dev.client.runs.wait(thread, "support", input={"messages": [{"role": "user", "content": "Pay a."}]})
        (asked,) = dev.client.threads.get_state(thread)["tasks"][0]["interrupts"]
        assert "approval" == asked["value"]["kind"]
        answer = {"decisions": [{"type": "approve"}], "request_id": asked["value"]["request_id"]}
        dev.client.runs.create(thread, "support", command={"resume": answer})
        dev.until((tmp_path / "effects").exists)
    finally:
        dev.kill()
    dev = Dev(tmp_path)
    try:
        if not any(thread == each["thread_id"] for each in dev.client.threads.search()):  # its own files lag behind
            dev.client.threads.create(thread_id=thread, graph_id="support")
        dev.client.runs.wait(thread, "support", input=None, multitask_strategy="enqueue")
        (asked,) = dev.client.threads.get_state(thread)["tasks"][0]["interrupts"]
        assert "doubt" == asked["value"]["kind"]
        answer = {"decisions": [{"type": "respond", "message": "paid a"}], "request_id": asked["value"]["request_id"]}
        dev.client.runs.wait(thread, "support", command={"resume": answer})
        messages = dev.client.threads.get_state(thread)["values"]["messages"]
    finally:
        dev.kill()

    assert ["human", "ai", "tool", "ai"] == [each["type"] for each in messages]
    assert ("It is paid.", "pay a\n") == (messages[-1]["content"], (tmp_path / "effects").read_text())
    with LedgerSaver(tmp_path / "runs.db") as saver:
        assert [] == saver.ledger.verify()
