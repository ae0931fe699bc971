"""Tables: what the demo prints, each made from facts that were read back from files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from examples.orders.charges import Fates
from examples.orders.facts import Checkpoint, FanOut
from examples.orders.graph import Question, euros
from examples.orders.processes import Ended
from examples.orders.worklog import Entry, Event


def processes(workers: Sequence[Ended]) -> Table:
    """Who ran when, and how it ended."""
    table = _table("Processes of the killed run", ["process", "pid", "job", "> from", "> to", "ended how"])
    begin = workers[0].started
    for number, worker in enumerate(workers, start=1):
        times = [f"{moment - begin:.2f} s" for moment in (worker.started, worker.ended)]
        _row(table, number, worker.pid, worker.job, *times, _ending(worker))
    return table


def nodes(entries: Iterable[Entry], workers: Sequence[Ended]) -> Table:
    """How often each node ran in each process."""
    names = [f"process {number}" for number in range(1, len(workers) + 1)]
    table = _table("Nodes: tasks ended / begun", ["node", *[f"> {name}" for name in names], "> ran again"])
    by_node: dict[str, list[Entry]] = {}
    for entry in entries:
        by_node.setdefault(entry.node, []).append(entry)
    for node, seen in by_node.items():
        _row(table, node, *[_ended_of_begun(seen, worker.pid) for worker in workers], _ran_again(seen))
    return table


def fates(fan_out: FanOut) -> Table:
    """What the kill cost, task by task."""
    table = _table(f"The {fan_out.total} tasks of the fan-out", ["at the kill", "afterwards", "> tasks", "orders"])
    rows = [
        ("result saved", "not run again", fan_out.kept),
        ("result saved", "RUN AGAIN", fan_out.repeated),
        ("ended, result not saved yet", "ran again", fan_out.lost),
        ("begun, not ended", "ran again", fan_out.cut_off),
    ]
    for at_kill, afterwards, tasks in rows:
        _row(table, at_kill, afterwards, len(tasks), " ".join(sorted(fan_out.orders[task] for task in tasks)))
    return table


def charges(fates: Fates) -> Table:
    """What became of every charge."""
    columns = ["at the second kill", "afterwards", "> count", "orders"]
    table = _table(f"The {len(fates.due)} charges, counted at the bank", columns)
    rows = [
        ("charged, receipt on record", "not charged again", fates.recorded),
        ("charged, no receipt on record", "not charged again", fates.unrecorded),
        ("begun, not charged: in doubt", "charged then", fates.begun),
        ("not begun", "charged then", fates.untouched),
    ]
    for at_kill, as_promised, orders in rows:
        _row(table, at_kill, as_promised, *_counted(orders - fates.repeated - fates.missed))
        for afterwards, broken in (("CHARGED MORE THAN ONCE", fates.repeated), ("NOT CHARGED", fates.missed)):
            if orders & broken:
                _row(table, at_kill, afterwards, *_counted(orders & broken))
    if fates.not_due:
        _row(table, "not to be charged", "CHARGED", *_counted(fates.not_due))
    return table


def _counted(orders: frozenset[str]) -> tuple[int, str]:
    return len(orders), " ".join(sorted(orders))


def checkpoints(history: Iterable[Checkpoint], workers: Sequence[Ended]) -> Table:
    """The thread as `saver.list` tells it, oldest first."""
    columns = ["> step", "source", "checkpoint", "process", "new in it", "saved beside it"]
    table = _table("Checkpoints of the thread", columns)
    for saved in history:
        saved_by = [n for n, w in enumerate(workers, start=1) if w.started <= saved.saved_at <= w.ended]
        process = saved_by[0] if saved_by else "?"
        changed = ", ".join(saved.changed) or "-"
        beside = f"{saved.results or 'no'} task{'s' * (saved.results != 1)}" + (" + answer" if saved.answered else "")
        _row(table, saved.step, saved.source, saved.checkpoint_id, process, changed, beside)
    return table


def question(asked: Question, approved: Sequence[str]) -> Table:
    """What `approve` asked, and what the demo answers."""
    table = _table(asked["question"], ["order", "customer", "country", "> total", "answer"])
    for order in asked["orders"]:
        answer = "ship" if order["order_id"] in approved else "decline"
        _row(table, order["order_id"], order["customer"], order["country"], euros(order["gross_cents"]), answer)
    return table


def totals(killed: Path, uninterrupted: Path) -> Table:
    """The two reports side by side."""
    table = _table("Report", ["", "> killed run", "> uninterrupted run"])
    ours, theirs = (json.loads(report.read_text(encoding="utf-8")) for report in (killed, uninterrupted))
    for name, value in ours.items():
        _row(table, name.removesuffix("_cents"), _value(name, value), _value(name, theirs[name]))
    return table


def _ending(worker: Ended) -> str:
    if worker.stop is None:
        return "killed (SIGKILL)"
    return "asks a human, exits" if worker.stop["question"] else "batch finished, exits"


def _ended_of_begun(entries: Iterable[Entry], pid: int) -> str:
    events = [entry.event for entry in entries if entry.pid == pid]
    begun = events.count(Event.BEGIN)
    asked = ", asked" if Event.PAUSE in events else ""
    return f"{events.count(Event.END)}/{begun}{asked}" if begun else "-"


def _ran_again(entries: Iterable[Entry]) -> int:
    begun = [entry.task_id for entry in entries if entry.event is Event.BEGIN]
    return len({task_id for task_id in begun if begun.count(task_id) > 1})


def _value(name: str, value: Any) -> str:
    if name.endswith("_cents"):
        return euros(value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items())
    if name == "rejected":
        return "\n".join(f"{reject['order_id']} {reject['reason']}" for reject in value)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _table(title: str, columns: Sequence[str]) -> Table:
    """A table; a column whose name starts with `> ` holds numbers."""
    table = Table(title=Text(title), title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column.removeprefix("> "), justify="right" if column.startswith("> ") else "left")
    return table


def _row(table: Table, *cells: object) -> None:
    table.add_row(*[Text(str(cell)) for cell in cells])
