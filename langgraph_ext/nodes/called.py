"""Called: what tells one durable call of a task from another, over crashes and in every process.

The task's own function is called once. Of those that it calls in turn, several may run side by side (the tool calls of
a model's answer do), and arrive in another order each time; so it is what they are called with that tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ormsgpack
from langchain_core.callbacks import BaseCallbackManager
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from langgraph_ext import canonical

__all__ = ["Called", "called_with", "own"]

_SERDE = JsonPlusSerializer()
"""Not the saver's: one that encrypts writes the same value differently each time."""

_SURROUNDINGS = (Runtime, BaseStore, BaseCallbackManager)
"""What LangGraph and LangChain inject: the same for all calls of a task, and not to be encoded."""

_UNKNOWN = "?"

_SETS = (["builtins", "set"], ["builtins", "frozenset"])
"""The serializer writes a set as an extension of type 0: these, and a list of its elements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One call of a durable function."""

    function: str
    """Module, qualified name and declared kind."""
    arguments: str
    """The digest of what it was called with; empty for the task's own function."""
    exact: bool
    """Whether the digest covers all of it."""

    @property
    def is_own(self) -> bool:
        """Whether it is the task's own function, and not called by that."""
        return not self.arguments


def own(function: Callable[..., Any], kind: str | None) -> Called:
    """The call of a task's own function."""
    return Called(function=_name(function, kind), arguments="", exact=True)


def called_with(
    function: Callable[..., Any], kind: str | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Called:
    """The call of a function by a task's own, or by what that calls."""
    first, named = [_shown(each) for each in args], {name: _shown(each) for name, each in kwargs.items()}
    digest = canonical.digest(canonical.encode([first, named], where="arguments"))
    exact = not any(each.startswith(_UNKNOWN) for each in (*first, *named.values()))
    return Called(function=_name(function, kind), arguments=digest, exact=exact)


def _name(function: Callable[..., Any], kind: str | None) -> str:
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    return name if kind is None else f"{name} ({kind})"


def _shown(value: Any) -> str:
    """A digest of an argument; of what cannot be encoded, its type."""
    if hasattr(value, "tool_call_id") and hasattr(value, "stream_writer"):  # ToolNode's own ToolRuntime
        return f"tool call {canonical.digest(str(value.tool_call_id).encode())}"
    if isinstance(value, _SURROUNDINGS) or _is_config(value):
        return type(value).__name__
    try:
        return canonical.digest(canonical.encode(value))
    except TypeError:
        pass
    try:
        kind, data = _SERDE.dumps_typed(value)
        if kind == "msgpack" and any(name.encode() in data for _, name in _SETS):
            data = _packed(_unpacked(data))
    except (TypeError, ValueError):
        return f"{_UNKNOWN} {type(value).__qualname__}"
    return f"{kind} {canonical.digest(data)}"


def _unpacked(data: bytes) -> Any:
    """What the serializer has written, the elements of each set in one order: each process has its own."""
    return ormsgpack.unpackb(data, ext_hook=_in_order, option=ormsgpack.OPT_NON_STR_KEYS)


def _in_order(tag: int, data: bytes) -> ormsgpack.Ext:
    held = _unpacked(data)
    if tag == 0 and held[:2] in _SETS:
        held[2] = sorted(held[2], key=_packed)
    return ormsgpack.Ext(tag, _packed(held))


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def _is_config(value: Any) -> bool:
    return isinstance(value, dict) and "configurable" in value and "callbacks" in value
