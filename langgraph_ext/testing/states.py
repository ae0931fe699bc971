"""States: the values at the head of a thread, as plain data.

No class of the user's is imported, and nothing of theirs is run: an object is its class's name and what it was made of.
Read in a child, since this loads LangGraph, which the harness's own process, and the command line, do without.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, JsonPlusSerializer

from langgraph_ext import LedgerSaver
from langgraph_ext.testing.differences import Flat, flat, named_but

__all__ = ["PlainSerde", "states_of"]

_SNAPSHOT = object()
"""Stands for what a DeltaChannel keeps: how often it does so is none of the run's results."""

_RESULTS = ("__end__", "__previous__")
"""Channels of the functional API that hold what a function returned; others of such names are LangGraph's own."""

_UNORDERED = ("set", "frozenset")


class PlainSerde:
    """Decodes what LangGraph's serializer has encoded into plain data; bytes of other serializers stay bytes."""

    def __init__(self) -> None:
        self._plain = JsonPlusSerializer(__unpack_ext_hook__=self._object)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Nothing is written with it."""
        raise NotImplementedError("states are read only")

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value as plain data."""
        kind, encoded = data
        if kind == "json":
            return json.loads(encoded)
        return self._plain.loads_typed(data) if kind in ("msgpack", "null") else encoded

    def _object(self, code: int, data: bytes) -> Any:
        """As JsonPlusSerializer's hook: `(module, name, arguments, …)` of an object."""
        if code == EXT_DELTA_SNAPSHOT:
            return _SNAPSHOT
        made = self._plain.loads_typed(("msgpack", data))
        if not (isinstance(made, list | tuple) and len(made) > 2):
            return made
        module, name, arguments = made[:3]
        if name in _UNORDERED:
            return {"class": name, "of": sorted(arguments, key=repr)}
        if isinstance(arguments, Mapping):
            return {"class": f"{module}.{name}", **arguments}
        return {"class": f"{module}.{name}", "of": arguments}


def states_of(database: str, threads: Sequence[str], ignored: Collection[str]) -> dict[str, Flat]:
    """By thread, its state; paths begin with a channel's name.

    Args:
        database: The file.
        threads: Their ids.
        ignored: Names of channels that are left out; `ALL` among them: all are.
    """
    with LedgerSaver(database, serde=PlainSerde()) as saver:
        return {each: flat(named_but(_state_of(saver, each), ignored)) for each in threads}


def _state_of(saver: LedgerSaver, thread_id: str) -> dict[str, Any]:
    """The values of a graph's own channels at its newest checkpoint; empty if there is none."""
    found = saver.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    values = {} if found is None else found.checkpoint["channel_values"]
    return {name: value for name, value in values.items() if _is_a_users(name) and value is not _SNAPSHOT}


def _is_a_users(channel: str) -> bool:
    return channel in _RESULTS or not (channel.startswith("__") or ":" in channel)
