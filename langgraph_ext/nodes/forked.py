"""Forked: what a node does, in a fork, about an effect that the run it was forked from had committed (rule L47).

Somebody is asked by a question of LangGraph's, in its turn (turns.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from langgraph_ext.errors import AdmissionError
from langgraph_ext.ledger import forks
from langgraph_ext.ledger.effect_keys import Key
from langgraph_ext.ledger.encoded import Encoded
from langgraph_ext.ledger.forks import Choice, Meeting, Met
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.nodes.fenced import Fenced
from langgraph_ext.nodes.place import Place
from langgraph_ext.saver.refusals import refuse

__all__ = ["Forked"]

_WAIT_SECONDS = 30.0
"""How long a question waits for those that came before it, when the task was run before."""

_PAUSE_SECONDS = 0.005


class Wanted(Protocol):
    """An effect, as its body asks for it."""

    @property
    def effect_id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def part(self) -> str | None: ...
    @property
    def key(self) -> Key: ...
    @property
    def payload_digest(self) -> str: ...


class Forked:
    """What one attempt does about such effects. Sync and async methods differ in how they wait, and in nothing else."""

    def __init__(self, place: Place, key: FrameKey, fenced: Fenced, on_fork: str) -> None:
        self._place, self._key, self._fenced, self._on_fork = place, key, fenced, on_fork
        self._is_fork: bool | None = None
        """None until it was looked up."""

    def receipt(self, wanted: Wanted) -> Encoded | None:
        """The old receipt, if that is given back; None if the effect is done.

        Raises:
            AdmissionError: Somebody has answered that the fork stops (`cancelled`); as a signal to LangGraph.
            GraphInterrupt: Somebody has to answer first.
        """
        if not self._minds(wanted):
            return None
        if self._is_fork is None:
            self._is_fork = self._place.saver.database.read(forks.is_fork, self._key.run)
        meeting: Meeting | None = self._fenced.commit(self._meet(wanted)) if self._is_fork else None
        if meeting is None:
            return None
        for _ in self._waits(meeting):
            time.sleep(_PAUSE_SECONDS)
        choose = self._choose(meeting.met)
        return self._outcome(meeting.met if choose is None else self._fenced.commit(choose))

    async def areceipt(self, wanted: Wanted) -> Encoded | None:
        """As `receipt`."""
        if not self._minds(wanted):
            return None
        if self._is_fork is None:
            self._is_fork = await self._place.saver.database.aread(forks.is_fork, self._key.run)
        meeting: Meeting | None = await self._fenced.acommit(self._meet(wanted)) if self._is_fork else None
        if meeting is None:
            return None
        for _ in self._waits(meeting):
            await asyncio.sleep(_PAUSE_SECONDS)
        choose = self._choose(meeting.met)
        return self._outcome(meeting.met if choose is None else await self._fenced.acommit(choose))

    def _minds(self, wanted: Wanted) -> bool:
        """Whether a fork may not simply act: what has a key of the caller's own is known again by that."""
        return self._on_fork != "act" and not wanted.key.business

    def _meet(self, wanted: Wanted) -> Callable[..., Meeting | None]:
        return partial(
            forks.meet,
            effect_id=wanted.effect_id,
            name=wanted.name,
            part=wanted.part,
            key=wanted.key,
            payload_digest=wanted.payload_digest,
            asks=self._on_fork == "ask",
        )

    def _waits(self, meeting: Meeting) -> Iterator[None]:
        """As long as it is not the turn of its question, if it is one."""
        met, turns = meeting.met, self._place.now.turns
        if met.ordinal is None:
            return
        turns.catch_up(meeting.earlier)
        deadline = time.monotonic() + _WAIT_SECONDS
        while not turns.has_come(met):
            if time.monotonic() > deadline:
                refuse(
                    AdmissionError(
                        f"effect {met.name!r} of node {met.node_path!r}: whether this fork does it again was not the "
                        "first question of its task, and what was asked before it does not come; its answer could be "
                        "taken for that one's. Act in the same order each time, or give the effects a key=",
                        code="part_ambiguous",
                        details={"name": met.name, "effect_id": met.before_id},
                    )
                )
            yield

    def _choose(self, met: Met) -> Callable[..., Met] | None:
        """The transaction that says what is done, as the node declares it or somebody answers; None if it is known."""
        choice = met.choice or Choice.REUSE if met.ordinal is None else self._place.now.turns.ask(met)
        return partial(forks.choose, met=met, choice=choice) if met.choice is None else None

    def _outcome(self, met: Met) -> Encoded | None:
        if met.choice is Choice.STOP:
            refuse(
                AdmissionError(
                    f"effect {met.name!r} of node {met.node_path!r} was committed by the run that this one was forked "
                    "from, and somebody has answered that the fork stops here; it is cancelled. Fork again, or begin "
                    "another run with new input",
                    code="cancelled",
                    details={"name": met.name, "effect_id": met.before_id},
                )
            )
        return met.receipt
