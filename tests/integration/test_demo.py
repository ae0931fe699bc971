"""The demo keeps its promise and says so: run as a newcomer runs it, then counted again from its files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ORDERS_IN_FAN_OUT = 20


def run_demo(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.orders.demo", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=110, check=False)


def price_tasks(log: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines of the fan-out in a work log: those of the first process, and those of all others."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    tasks = [line for line in lines if line["node"] == "price"]
    killed = lines[0]["pid"]
    return [task for task in tasks if task["pid"] == killed], [task for task in tasks if task["pid"] != killed]


def ids(lines: list[dict[str, Any]], event: str) -> list[str]:
    return sorted(line["task_id"] for line in lines if line["event"] == event)


def test_a_killed_batch_runs_no_saved_task_again_and_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    """Results saved before a SIGKILL are used, the others are made once more, and nobody sees it in the report."""
    demo = run_demo("--db", str(tmp_path / "orders.db"))
    assert demo.returncode == 0, demo.stdout + demo.stderr
    verdict = demo.stdout.splitlines()[-1]
    before, after = price_tasks(tmp_path / "orders.work.log")
    not_run_again = set(ids(before, "begin")) - set(ids(after, "begin"))

    assert "killed (SIGKILL)" in demo.stdout
    assert 0 < len(ids(before, "end")) < ORDERS_IN_FAN_OUT
    assert f"; {len(not_run_again)} tasks were not run again; saved and run again: 0; state complete: True;" in verdict
    assert 0 < len(not_run_again)
    assert not_run_again <= set(ids(before, "end"))
    assert ORDERS_IN_FAN_OUT - len(not_run_again) == len(ids(after, "end"))
    assert ids(after, "begin") == ids(after, "end")
    killed, undisturbed = tmp_path / "orders.report.json", tmp_path / "orders-uninterrupted.report.json"
    assert undisturbed.read_text(encoding="utf-8") == killed.read_text(encoding="utf-8")


def test_a_demo_that_came_too_late_to_kill_says_so_and_fails(tmp_path: Path) -> None:
    """A run that was never killed proves nothing; it must not look like a success."""
    demo = run_demo("--db", str(tmp_path / "orders.db"), "--kill-after", "99")

    assert demo.returncode == 1
    assert "was not killed in the fan-out" in demo.stdout
    assert "verdict" not in demo.stdout


def test_the_demo_refuses_files_of_an_earlier_run(tmp_path: Path) -> None:
    """Lines of an old work log would be counted as work of this run."""
    (tmp_path / "orders.work.log").touch()
    demo = run_demo("--db", str(tmp_path / "orders.db"))

    assert demo.returncode == 2
    assert "orders.work.log" in demo.stderr
