"""The demo of agents: charge an order and refund it, killed twice on the way, approved by somebody else.

    python -m examples.returns.demo [--db PATH] [--model NAME]

Process 1 is killed with SIGKILL when the bank has charged the order and has not answered yet. Process 2 goes on, asks
the bank about the charge, and runs the agent until it wants to refund: a person has to approve that. Process 3 is that
person's, and runs nothing. Process 4 refunds, and is killed when the bank has given the money back and has not answered
yet. Process 5 asks the bank about the refund, and finishes.

Exit status: 0 the kills fell where they should, and the bank has one charge and one refund; 1 otherwise; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from examples.orders.charges import Charge, read_charges
from examples.orders.processes import DemoError, Files, Moment, Process, kill_process, open_bank, run_process, run_tree
from examples.returns.worker import CENTS, ORDER
from langgraph_ext import LedgerSaver

# A terminal says how wide it is; a pipe does not.
_PIPE_COLUMNS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the demo claims at the end; every part of it is computed."""

    charges: list[Charge]
    """What the bank was asked to do, a refund below zero."""
    said: str
    sound: bool
    """Nothing in the ledger contradicts itself."""

    @property
    def good(self) -> bool:
        """Whether the run lived up to the promise."""
        done = [(each.order, each.cents, each.held) for each in self.charges]
        return done == [(ORDER, CENTS, True), (ORDER, -CENTS, True)] and bool(self.said) and self.sound

    def __str__(self) -> str:
        charged = sum(each.cents > 0 for each in self.charges)
        return (
            f"killed twice; {charged} charge and {len(self.charges) - charged} refund at the bank, of which "
            f"{sum(each.held for each in self.charges)} were never answered; the agent: {self.said!r}; "
            f"ledger sound: {self.sound}"
        )


def main() -> int:
    """Run the demo; returns the exit status."""
    args = _arguments()
    console = Console() if sys.stdout.isatty() else Console(width=_PIPE_COLUMNS)
    with tempfile.TemporaryDirectory(prefix="returns-demo-") as folder:
        files = Files(args.db or Path(folder) / "returns.db")
        try:
            verdict = run(console, files, ["--model", args.model] if args.model else [])
        except DemoError as error:
            console.print(f"demo failed: {error}", style="bold red", markup=False)
            return 1
    console.print(f"verdict: {verdict}", style="bold green" if verdict.good else "bold red", soft_wrap=True)
    return 0 if verdict.good else 1


def run(console: Console, files: Files, options: list[str]) -> Verdict:
    """Run the case over five processes."""

    def worker(job: str, *more: str) -> Process:
        return Process("examples.returns.worker", (job, "--db", str(files.db), *more))

    with open_bank(files, hold=(1, 2)) as bank:
        at = ("--bank", bank, *options)
        console.print("Process 1 charges the order; the bank does not answer ...")
        kill_process(worker("start", *at), _held(files, 1))
        console.print("Killed. Process 2 goes on: it asks the bank about the charge, and runs the agent ...")
        stop = json.loads(run_process(worker("resume", *at)))
        asked = _asked(stop)
        console.print(
            f"The agent asks for {asked}. Process 2 is gone. Process 3 approves, and runs nothing ...", markup=False
        )
        run_process(worker("approve"))
        console.print("Process 4 refunds; the bank does not answer ...")
        kill_process(worker("resume", *at), _held(files, 2))
        console.print("Killed. Process 5 goes on: it asks the bank about the refund ...")
        final = json.loads(run_process(worker("resume", *at)))
    with LedgerSaver(files.db) as saver:
        run_id = next(each.run_id for each in saver.ledger.runs() if each.parent_run_id is None)
        sound = not saver.ledger.verify()
    console.print(f"$ langgraph-ext show {run_id[:13]}", style="bold", markup=False)
    console.print(run_tree(files.db, run_id), highlight=False, markup=False, soft_wrap=True)
    said = "" if final["question"] else final["said"]
    return Verdict(charges=list(read_charges(files.charges)), said=said, sound=sound)


def _held(files: Files, number: int) -> Moment:
    def has_come() -> bool:
        return sum(each.held for each in read_charges(files.charges)) >= number

    return Moment("while the bank did not answer", has_come)


def _asked(stop: dict[str, Any]) -> str:
    if stop["question"] is None:
        raise DemoError(f"the agent asked for no refund; it said: {stop['said']!r}")
    return ", ".join(f"{each['name']} {each['args']}" for each in stop["question"]["action_requests"])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples.returns.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--db", type=Path, help="a new file for the database; the bank's ledger goes beside it")
    parser.add_argument("--model", help='a chat model instead of the scripted one, such as "openai:gpt-5-mini"')
    args = parser.parse_args()
    if args.db is not None:
        args.db = args.db.resolve()
        left = [each for each in (args.db, Files(args.db).charges) if each.exists()]
        if left:
            parser.error(f"--db wants a new name; there is already {left[0]}")
    return args


if __name__ == "__main__":
    sys.exit(main())
