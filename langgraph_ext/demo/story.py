"""The story: an order is charged and refunded by five processes, of which two are killed.

Process 1 is killed with SIGKILL when the bank has charged the order and has not answered yet. Process 2 goes on, asks
the bank about the charge, and runs the agent until it wants to refund: a person has to approve that. Process 3 is that
person's, and runs nothing. Process 4 refunds, and is killed when the bank has given the money back and has not answered
yet. Process 5 asks the bank about the refund, and finishes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph_ext import RunLedger
from langgraph_ext.demo.charges import Charge, read_charges
from langgraph_ext.demo.processes import DemoError, Moment, Process, kill_process, open_bank, run_process
from langgraph_ext.errors import InvalidArgument

__all__ = ["CENTS", "ORDER", "Told", "tell"]

ORDER, CENTS = "NL-7", 4200


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How it has ended; every part is read from files."""

    run_id: str
    charges: list[Charge]
    """What the bank was asked to do, a refund below zero."""
    said: str
    """The agent's last word; empty if it did not come to one."""
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


def tell(db: Path, model: str | None, say: Callable[[str], None]) -> Told:
    """Have the case run.

    Args:
        db: A new file, absolute; the bank's ledger goes beside it.
        model: The name of the agent's chat model; None: a scripted one.
        say: Is told what happens, as it does.

    Raises:
        InvalidArgument: There are files of an earlier run, or there is no such folder; nothing was begun.
        DemoError: It went another way.
    """
    charges = db.with_suffix(".charges.jsonl")
    _check(db, charges)

    def worker(job: str, *more: str) -> Process:
        return Process("langgraph_ext.demo.worker", (job, "--db", str(db), *more))

    with open_bank(charges, hold=(1, 2)) as bank:
        at = ("--bank", bank, *(() if model is None else ("--model", model)))
        say("Process 1 charges the order; the bank does not answer ...")
        kill_process(worker("start", *at), _held(charges, 1))
        say("Killed. Process 2 goes on: it asks the bank about the charge, and runs the agent ...")
        asked = _asked(_stop(worker("resume", *at)))
        say(f"The agent asks for {asked}. Process 2 is gone. Process 3 approves, and runs nothing ...")
        run_process(worker("approve"))
        say("Process 4 refunds; the bank does not answer ...")
        kill_process(worker("resume", *at), _held(charges, 2))
        say("Killed. Process 5 goes on: it asks the bank about the refund ...")
        final = _stop(worker("resume", *at))
    with RunLedger(db) as ledger:
        run_id = next(each.run_id for each in ledger.runs() if each.parent_run_id is None)
        sound = not ledger.verify()
    return Told(
        run_id=run_id,
        charges=read_charges(charges),
        said="" if final["question"] else final["said"],
        sound=sound,
    )


def _check(*files: Path) -> None:
    if not files[0].parent.is_dir():
        raise InvalidArgument(f"there is no folder {str(files[0].parent)!r} for the database; make it, or name another")
    if left := [each for each in files if each.exists()]:
        raise InvalidArgument(f"the demo wants a new file for its database; there is already {str(left[0])!r}")


def _stop(process: Process) -> dict[str, Any]:
    stop: dict[str, Any] = json.loads(run_process(process)[1])
    return stop


def _held(charges: Path, number: int) -> Moment:
    def has_come() -> bool:
        return sum(each.held for each in read_charges(charges)) >= number

    return Moment("while the bank did not answer", has_come)


def _asked(stop: dict[str, Any]) -> str:
    if stop["question"] is None:
        raise DemoError(f"the agent asked for no refund; it said: {stop['said']!r}")
    return ", ".join(f"{each['name']} {each['args']}" for each in stop["question"]["action_requests"])
