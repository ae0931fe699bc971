"""`langgraph-ext demo` keeps its promise and says so: run as a newcomer runs it, then counted again from its files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.completions import calls, completions, says
from tests.support.programs import run_demo, run_python

ROOT = Path(__file__).parents[2]
ORDER = "NL-7"


def at_the_bank(db: Path) -> list[tuple[str, int]]:
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in db.with_suffix(".charges.jsonl").read_text("utf-8").splitlines()
    ]
    return [(line["order"], line["cents"]) for line in lines]


def environment(folder: Path) -> dict[str, str]:
    """Without a key; temporary files go into a folder of the test's."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return ours | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}


def told(folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    command = ("-m", "langgraph_ext.cli", "demo")
    return run_python(*command, *options, cwd=folder, env=environment(folder))


def test_an_order_is_charged_and_refunded_once_over_two_kills(tmp_path: Path) -> None:
    """A person approved in a process of its own; the tree of the run names both attempts and the agent's run."""
    db = tmp_path / "returns.db"
    ran = run_demo("langgraph_ext.cli", "demo", "--db", str(db))
    assert (0, "") == (ran.returncode, ran.stderr), ran.stdout
    assert [(ORDER, 4200), (ORDER, -4200)] == at_the_bank(db)
    assert "verdict: killed twice; 1 charge and 1 refund at the bank, of which 2 were never answered" in ran.stdout
    assert 2 == ran.stdout.count("interrupted")
    again = told(tmp_path, "--db", db)
    assert (2, "") == (again.returncode, again.stdout)
    assert f"there is already '{db}'" in again.stderr


@pytest.mark.slow
def test_for_programs_it_is_json_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Whatever modules stand in the working folder."""
    (tmp_path / "json.py").write_text("raise RuntimeError")
    command = [sys.executable, "-P", "-m", "langgraph_ext.cli", "demo", "--json"]  # -P: as the installed command
    there: Any = {"cwd": tmp_path, "env": environment(tmp_path), "timeout": 110}
    ran = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", **there)
    assert (0, "") == (ran.returncode, ran.stderr)
    said = json.loads(ran.stdout)
    assert (True, True, "Your money is on its way back.") == (said["good"], said["sound"], said["said"])
    assert [(ORDER, 4200, True), (ORDER, -4200, True)] == [
        (each["order"], each["cents"], each["held"]) for each in said["charges"]
    ]
    assert ["json.py"] == [each.name for each in tmp_path.iterdir()]


@pytest.mark.slow
def test_without_its_key_the_refund_is_made_twice_and_the_demo_says_so(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "langgraph_ext", tmp_path / "langgraph_ext")
    graph = tmp_path / "langgraph_ext" / "demo" / "graph.py"
    code = graph.read_text(encoding="utf-8")
    line = 'ToolPolicy(effect="once", on_unknown=find_refund)'
    assert 1 == code.count(line)
    graph.write_text(code.replace(line, 'ToolPolicy(effect="repeatable")'), encoding="utf-8")
    ran = run_demo("langgraph_ext.cli", "demo", root=tmp_path)
    assert 1 == ran.returncode
    assert "1 charge and 2 refund" in ran.stdout


@pytest.mark.slow
def test_a_model_that_is_named_runs_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its provider's client, over HTTP; an answer that is on record is asked for once, over all processes."""
    db = tmp_path / "returns.db"
    refund = calls(("refund", {"order": ORDER, "cents": 4200}))
    with completions(calls(("find_order", {"order": ORDER})), refund, says("Done, you have it back.")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = run_demo("langgraph_ext.cli", "demo", "--model", "openai:any", "--db", str(db))
        server.assert_exhausted()
    assert (0, "") == (ran.returncode, ran.stderr), ran.stdout
    assert [(ORDER, 4200), (ORDER, -4200)] == at_the_bank(db)
    assert "the agent: 'Done, you have it back.'" in ran.stdout


@pytest.mark.slow
def test_a_model_that_does_otherwise_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that wants no refund, and one that fails: with what it has said."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with completions(says("I would rather not.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = run_demo("langgraph_ext.cli", "demo", "--model", "openai:any")
    assert (1, "the demo failed: the agent asked for no refund; it said: 'I would rather not.'\n") == (
        ran.returncode,
        ran.stderr,
    )
    with completions() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = run_demo("langgraph_ext.cli", "demo", "--model", "openai:any")
    assert 1 == ran.returncode
    assert "the script has no reply 1" in ran.stderr
    assert ran.stderr.endswith("the demo failed: process 'resume' ended with status 1\n")
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--model", "openai:gpt-5-mini"), "see to OPENAI_API_KEY or OPENAI_ADMIN_KEY in the environment"),
        (("--model", "anthropic:claude"), "requires the langchain-anthropic package"),
        (("--model", "acme-large"), "Unable to infer model provider"),
        (("--model", ""), "--model is empty"),
        (("--db", "missing/returns.db"), "there is no folder"),
    ],
)
def test_what_cannot_be_run_is_told_before_anything_is_begun(
    tmp_path: Path, options: tuple[str, ...], why: str
) -> None:
    ran = told(tmp_path, *options)
    assert (2, "") == (ran.returncode, ran.stdout)
    assert why in ran.stderr
    assert 1 == ran.stderr.count("\n")
    assert [] == list(tmp_path.iterdir())
