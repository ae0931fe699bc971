"""Requests: what a call of a graph says of the run that it begins (rules L50, L51)."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.definitions import Definition
from langgraph_ext.ledger.requests import Request
from langgraph_ext.saver.config import text

__all__ = ["request_of", "run_key_in"]

_LONGEST = 1024
"""Characters of a run key."""


def run_key_in(config: RunnableConfig) -> str | None:
    """The name that a caller gives to its request.

    Raises:
        InvalidArgument: It is no text, or empty, too long, or not valid Unicode.
    """
    run_key = config["configurable"].get("run_key")
    if run_key is None:
        return None
    if not isinstance(run_key, str) or not run_key or len(run_key) > _LONGEST:
        raise InvalidArgument(f"run_key is {run_key!r:.80}; it must be text of 1 to {_LONGEST} characters")
    return text(run_key, "run_key", "config")


def request_of(given: Any, run_key: str | None, definition: Definition | None, serde: SerializerProtocol) -> Request:
    """What a run begins with: new input, perhaps under a name, perhaps of a graph that is attached."""
    return Request(run_key=run_key, input_digest=_digest(given, serde), definition=definition, made_by=_versions())


def _digest(given: Any, serde: SerializerProtocol) -> str:
    """Of the input as JSON, which does not depend on the order of keys, if it is that; else as the serde has it."""
    try:
        return canonical.digest(canonical.encode(given, where="input"))
    except TypeError:
        kind, data = serde.dumps_typed(given)
        return canonical.digest(kind.encode() + b"\0" + data)


@cache
def _versions() -> str:
    return f"langgraph-ext {version('langgraph-ext')}, langgraph {version('langgraph')}"
