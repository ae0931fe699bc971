"""Cases: what an agent is asked in a scenario, and the folder in which it is played.

An agent has one tool, `pay`. Its model asks for some payments at once, and says that it is done when it has the
results. What was paid is written down in a file beside the database, and synced, before the tool returns: that file is
the outside world, and holds what has happened, whatever became of the process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.tools import StructuredTool

from langgraph_ext.testing import EffectLog, ScriptedChatModel, call, calls, kill_myself, say

__all__ = ["Case", "Place", "pays", "receipt"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one side plays a case: a folder of its own."""

    folder: Path

    @property
    def database(self) -> str:
        """The path of the SQLite file."""
        return str(self.folder / "runs.db")

    @property
    def effects(self) -> EffectLog:
        """The outside world."""
        return EffectLog(self.folder / "effects")

    @property
    def model_log(self) -> Path:
        """The file of the calls of the model, of all processes."""
        return self.folder / "model"


def pays(case: Case) -> list[Any]:
    """A model that asks for all payments at once, and is done then."""
    return [calls(*(call("pay", {"order": order}) for order in case.orders)), say("done")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What an agent is asked, and how."""

    orders: tuple[str, ...]
    """What is to be paid."""
    seconds: tuple[float, ...] = (0.15,)
    """How long each payment takes before it acts; the last value goes for the rest."""
    script: Callable[[Case], list[Any]] = pays
    """What the model says; a module-level function."""
    approval: bool = False
    """Whether a person decides on each payment."""
    model_calls: int | None = None
    """The limit on calls of the model."""

    def model(self, place: Place) -> ScriptedChatModel:
        """The model: the same object on both sides."""
        return ScriptedChatModel(script=self.script(self), log=place.model_log)

    def tool(self, place: Place, kill_after: int | None) -> StructuredTool:
        """The tool, in both forms.

        Args:
            place: Where its effects are written down.
            kill_after: The process kills itself right after this effect, by its number from 1.
        """

        def act(order: str) -> str:
            place.effects.record(order)
            if kill_after is not None and len(place.effects.effects()) >= kill_after:
                kill_myself()
            return receipt(order)

        def pay(order: str) -> str:
            """Pay an order."""
            time.sleep(self._pace(order))
            return act(order)

        async def apay(order: str) -> str:
            await asyncio.sleep(self._pace(order))
            return await asyncio.to_thread(act, order)

        return StructuredTool.from_function(pay, coroutine=apay)

    def _pace(self, order: str) -> float:
        number = self.orders.index(order) if order in self.orders else 0
        return self.seconds[min(number, len(self.seconds) - 1)]


def receipt(order: str) -> str:
    """What the tool returns for an order."""
    return f"paid {order}"
