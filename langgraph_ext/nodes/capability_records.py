"""Capability records: what a capability node keeps of its visit besides the call itself, as one memo of the visit.

    args, call_id, as_call   what it calls with, of which call, and whether that is a tool call
    asked, decision          what a person is shown, and what they have decided
    before, after            what the hooks have decided
    digest                   of the arguments as they are called with
    outcome                  what counts, if that is not what the call has returned

Whatever stands in it is not asked again. It is written when something must not be lost, and with the call's beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from langgraph_ext.database import Tx
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger import memos
from langgraph_ext.ledger.encoded import Encoded, encode, value_of
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.nodes.fenced import Fenced
from langgraph_ext.nodes.place import Place
from langgraph_ext.saver.refusals import refuse

__all__ = ["Record"]

T = TypeVar("T")


class Record:
    """What is known of a visit.

    Args:
        place: Where its attempt stands.
        key: The attempt.
        ordinal: Which part of its task it is.
    """

    def __init__(self, place: Place, key: FrameKey, ordinal: int) -> None:
        self._key, self._memo = key, f"capability:{ordinal}"
        self._database, self._serde = place.saver.database, place.saver.serde
        self._fenced = Fenced(place, key)
        self._fields: dict[str, Any] = {}
        self._is_kept = False
        """Whether it is stored as it is here."""

    def __contains__(self, field: str) -> bool:
        return field in self._fields

    def __getitem__(self, field: str) -> Any:
        return self._fields[field]

    def note(self, **fields: Any) -> None:
        """Add to it; nothing is stored yet."""
        self._fields |= fields
        self._is_kept = False

    async def read(self) -> bool:
        """Read what an earlier go at this visit has kept, if that was not done; whether there is anything."""
        if not self._fields:
            try:
                found = await self._database.aread(partial(memos.read_of_visit, frame=self._key, key=self._memo))
            except LangGraphExtError as error:
                refuse(error)
            if found is not None:
                self._fields = dict(value_of(found.type, found.data, self._serde))
                self._is_kept = True
        return bool(self._fields)

    async def keep(self) -> None:
        """Store it, if it is not."""
        if not self._is_kept:
            await self._fenced.acommit(self._keeping())
            self._is_kept = True

    async def kept_with(self, act: Callable[..., T]) -> T:
        """Commit an act of the attempt, and store this in the same transaction."""
        done = await self._fenced.acommit(act if self._is_kept else partial(_both, first=self._keeping(), then=act))
        self._is_kept = True
        return done

    def encoded(self, value: Any, what: str) -> Encoded:
        """A value as it is stored.

        Raises:
            InvalidArgument: Nothing encodes it.
        """
        return encode(value, self._serde, what=what)

    def _keeping(self) -> Callable[..., None]:
        return partial(memos.write, key=self._memo, owner=None, value=self.encoded(self._fields, "record of a call"))


def _both(tx: Tx, key: FrameKey, *, first: Callable[..., None], then: Callable[..., T], now_us: int) -> T:
    first(tx, key, now_us=now_us)
    return then(tx, key, now_us=now_us)
