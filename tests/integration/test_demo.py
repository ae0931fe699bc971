"""The demo keeps its promise and says so: run as a newcomer runs it, then counted again from its files."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import run_demo

ROOT = Path(__file__).parents[2]
DEMO = "examples.orders.demo"
ORDERS_IN_FAN_OUT = 20


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def price_tasks(log: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The lines of the fan-out in a work log: those of the first process, and those of all others."""
    lines = lines_of(log)
    tasks = [line for line in lines if line["node"] == "price"]
    killed = lines[0]["pid"]
    return [task for task in tasks if task["pid"] == killed], [task for task in tasks if task["pid"] != killed]


def ids(lines: list[dict[str, Any]], event: str) -> list[str]:
    return sorted(line["task_id"] for line in lines if line["event"] == event)


def times_charged(charges: Path) -> Counter[str]:
    """How often the bank has charged each order, by its own ledger."""
    return Counter(line["order"] for line in lines_of(charges))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a demo that succeeded has printed, and the folder of its files."""
    folder = tmp_path_factory.mktemp("demo")
    ran = run_demo(DEMO, "--db", str(folder / "orders.db"))
    assert (0, "") == (ran.returncode, ran.stderr), ran.stdout
    return ran.stdout, folder


def test_a_killed_batch_runs_no_saved_task_again_and_ends_like_an_undisturbed_one(demo: tuple[str, Path]) -> None:
    """Results saved before a SIGKILL are used, the others are made once more, and nobody sees it in the report."""
    printed, folder = demo
    verdict = printed.splitlines()[-1]
    before, after = price_tasks(folder / "orders.work.log")
    not_run_again = set(ids(before, "begin")) - set(ids(after, "begin"))

    assert printed.count("killed (SIGKILL)") == 2
    assert 0 < len(ids(before, "end")) < ORDERS_IN_FAN_OUT
    assert f"; {len(not_run_again)} tasks were not run again; saved and run again: 0;" in verdict
    assert "; state complete: True;" in verdict
    assert 0 < len(not_run_again)
    assert not_run_again <= set(ids(before, "end"))
    assert ORDERS_IN_FAN_OUT - len(not_run_again) == len(ids(after, "end"))
    assert ids(after, "begin") == ids(after, "end")
    killed, undisturbed = folder / "orders.report.json", folder / "orders-uninterrupted.report.json"
    assert undisturbed.read_text(encoding="utf-8") == killed.read_text(encoding="utf-8")


def test_a_process_killed_between_a_charge_and_its_record_charges_no_order_twice(demo: tuple[str, Path]) -> None:
    """Counted at the bank, which charges whatever it is asked to; one of its answers never came."""
    printed, folder = demo
    names = "orders.charges.jsonl", "orders-uninterrupted.charges.jsonl"
    killed, undisturbed = (times_charged(folder / name) for name in names)

    assert [True] == [line["held"] for line in lines_of(folder / "orders.charges.jsonl") if line["held"]]
    assert dict.fromkeys(undisturbed, 1) == killed
    assert f"; {len(killed)} orders to charge, {len(killed)} charges at the bank; charged more than once: 0;" in printed
    assert "killed again with 0 orders charged and not recorded" not in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "instead", "why"),
    [
        pytest.param(
            'receipt = frame().once("charge", {"order": order_id, "cents": cents}, pay)',
            "receipt = pay(frame().attempt_id)",
            r"charged more than once: [1-9]",
            id="no effect",
        ),
        pytest.param(
            '@durable(effect="write", on_unknown="probe", probe=find_charge)',
            '@durable(effect="write", on_unknown="retry")',
            r"charged more than once: [1-9]",
            id="retried blindly",
        ),
        pytest.param(
            '@durable(effect="write", on_unknown="probe", probe=find_charge)',
            '@durable(effect="write")',
            r"\[recovery_required\]",
            id="no probe",
        ),
    ],
)
def test_without_what_makes_it_durable_the_demo_fails(tmp_path: Path, line: str, instead: str, why: str) -> None:
    """It would say so: orders are charged twice, or the run stops until somebody has looked."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    graph = tmp_path / "examples" / "orders" / "graph.py"
    code = graph.read_text(encoding="utf-8")
    assert code.count(line) == 1
    graph.write_text(code.replace(line, instead), encoding="utf-8")
    demo = run_demo(DEMO, root=tmp_path)

    assert demo.returncode == 1
    assert re.search(why, demo.stdout), demo.stdout


@pytest.mark.slow
def test_a_demo_that_came_too_late_to_kill_says_so_and_fails(tmp_path: Path) -> None:
    """A run that was never killed proves nothing; it must not look like a success."""
    demo = run_demo(DEMO, "--db", str(tmp_path / "orders.db"), "--kill-after", "99")

    assert demo.returncode == 1
    assert "was not killed in the fan-out" in demo.stdout
    assert "verdict" not in demo.stdout


def test_the_demo_refuses_files_of_an_earlier_run(tmp_path: Path) -> None:
    """Lines of an old work log would be counted as work of this run."""
    (tmp_path / "orders.work.log").touch()
    demo = run_demo(DEMO, "--db", str(tmp_path / "orders.db"))

    assert demo.returncode == 2
    assert "orders.work.log" in demo.stderr
