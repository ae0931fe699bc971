"""Memos: what a durable body keeps between its attempts and its rounds (rule L44)."""

from __future__ import annotations

from functools import partial
from typing import Any

from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.ledger import memos
from langgraph_ext.ledger.encoded import Encoded, encode, value_of
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.nodes.fenced import Fenced
from langgraph_ext.nodes.place import Place
from langgraph_ext.saver.refusals import refuse

__all__ = ["Memos"]


class Memos:
    """Small values of a node's: `memo["cursor"] = 7`, and in its next attempt or round `memo["cursor"]`.

    They belong to the node, in one run: the rounds of a loop share them; the tasks of a fan-out, and a subgraph that is
    run again, have their own. Each write is a commit. A key that begins with `once:` never changes once it is written;
    one that begins with `session:` may be owned by a node around this one (`owner="outer"`, or `""` for the whole run),
    and is shared by all that is in it. Values are JSON, or what the saver's serde encodes, of 2 MiB at most.
    """

    def __init__(self, place: Place, key: FrameKey) -> None:
        self._place, self._key, self._fenced = place, key, Fenced(place, key)

    def get(self, key: str, default: Any = None, *, owner: str | None = None) -> Any:
        """The value of a key; `default` if it has none.

        Raises:
            InvalidArgument: The key is empty or too long, or the owner is neither this node nor around it
                (`memo_scope`).
            ConflictError: The attempt is no longer this one (`attempt_mismatch`); as a signal to LangGraph.
        """
        memos.check_key(key, owner)
        try:
            found = self._place.saver.database.read(self._read(key, owner))
        except LangGraphExtError as error:
            refuse(error)
        return self._decoded(found, default)

    async def aget(self, key: str, default: Any = None, *, owner: str | None = None) -> Any:
        """As `get`."""
        memos.check_key(key, owner)
        try:
            found = await self._place.saver.database.aread(self._read(key, owner))
        except LangGraphExtError as error:
            refuse(error)
        return self._decoded(found, default)

    def set(self, key: str, value: Any, *, owner: str | None = None) -> None:
        """Keep a value; it is committed when this returns.

        Raises:
            InvalidArgument: As `get`; or the value is too large (`output_limit`).
            ConflictError: The key begins with `once:` and has another value (`memo_conflict`), or the attempt is no
                longer this one (`attempt_mismatch`); as a signal to LangGraph.
        """
        memos.check_key(key, owner)
        self._fenced.commit(self._write(key, value, owner))

    async def aset(self, key: str, value: Any, *, owner: str | None = None) -> None:
        """As `set`."""
        memos.check_key(key, owner)
        await self._fenced.acommit(self._write(key, value, owner))

    def __getitem__(self, key: str) -> Any:
        found = self.get(key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __setitem__(self, key: str, value: Any) -> None:
        self.set(key, value)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key, _MISSING) is not _MISSING

    def _read(self, key: str, owner: str | None) -> Any:
        return partial(memos.read, frame=self._key, key=key, owner=owner)

    def _write(self, key: str, value: Any, owner: str | None) -> Any:
        packed = encode(value, self._place.saver.serde, what=f"memo {key!r}")
        return partial(memos.write, key=key, owner=owner, value=packed)

    def _decoded(self, found: Encoded | None, default: Any) -> Any:
        return default if found is None else value_of(found.type, found.data, self._place.saver.serde)


_MISSING: Any = object()
