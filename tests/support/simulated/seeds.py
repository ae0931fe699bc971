"""Seeds that have failed: files in tests/seeds, each with the shortest list of events that still makes it fail."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from langgraph_ext.database import Database
from tests.support.simulated.world import Event, Outcome, simulate

__all__ = ["FOLDER", "keep", "load", "shortened"]

FOLDER = Path(__file__).parents[2] / "seeds"


def shortened(outcome: Outcome, database: Database | None = None) -> Outcome:
    """The same seed, without each event that it fails without."""
    for event in list(outcome.events):
        fewer = [each for each in outcome.events if each != event]
        again = simulate(outcome.seed, fewer, database=database)
        outcome = again if again.found else outcome
    return outcome


def keep(outcome: Outcome, folder: Path = FOLDER) -> Path:
    """Write it down."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{outcome.seed}.json"
    told = {"seed": outcome.seed, "found": outcome.found[:3], "events": [list(each) for each in outcome.events]}
    path.write_text(json.dumps(told, indent=1) + "\n")
    return path


def load(path: Path) -> tuple[int, Sequence[Event]]:
    """A seed, and what goes wrong in it."""
    told = json.loads(path.read_text())
    return told["seed"], [Event(*each) for each in told["events"]]
