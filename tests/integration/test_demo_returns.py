"""The demo of agents keeps its promise and says so: run as a newcomer runs it, then counted again from its files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import run_demo

ROOT = Path(__file__).parents[2]
DEMO = "examples.returns.demo"


def at_the_bank(db: Path) -> list[tuple[str, int]]:
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in db.with_suffix(".charges.jsonl").read_text("utf-8").splitlines()
    ]
    return [(line["order"], line["cents"]) for line in lines]


def test_an_order_is_charged_and_refunded_once_over_two_kills(tmp_path: Path) -> None:
    """A person approved in a process of its own; the tree of the run names both attempts and the agent's run."""
    db = tmp_path / "returns.db"
    ran = run_demo(DEMO, "--db", str(db))
    assert (0, "") == (ran.returncode, ran.stderr), ran.stdout
    assert [("NL-7", 4200), ("NL-7", -4200)] == at_the_bank(db)
    assert "verdict: killed twice; 1 charge and 1 refund at the bank, of which 2 were never answered" in ran.stdout
    assert 2 == ran.stdout.count("interrupted")
    again = run_demo(DEMO, "--db", str(db))
    assert 2 == again.returncode
    assert "wants a new name" in again.stderr


@pytest.mark.slow
def test_without_its_key_the_refund_is_made_twice_and_the_demo_says_so(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    graph = tmp_path / "examples" / "returns" / "graph.py"
    code = graph.read_text(encoding="utf-8")
    line = 'ToolPolicy(effect="once", on_unknown=find_refund)'
    assert 1 == code.count(line)
    graph.write_text(code.replace(line, 'ToolPolicy(effect="repeatable")'), encoding="utf-8")
    ran = run_demo(DEMO, root=tmp_path)
    assert 1 == ran.returncode
    assert "1 charge and 2 refund" in ran.stdout
