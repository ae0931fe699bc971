"""Releases: agent specs, compiled. A run is pinned to its release by the digest of the descriptor.

The descriptor is what can be stored: plain values as canonical JSON. What lives (models, tools, functions) stands
beside it under the names that the descriptor uses, and never in it. Two processes that compile the same spec get the
same digest, however its keys and sets are ordered, and whether the code was imported or run as a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from langgraph_ext import canonical

__all__ = ["DESCRIPTOR_VERSION", "Live", "Release"]

DESCRIPTOR_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What of a release lives in this process only, under the names that the descriptor uses."""

    models: Mapping[str, BaseChatModel | str]
    """By model name; a `str` is the name of a model that nobody has made yet."""
    tools: Mapping[str, BaseTool]
    keys: Mapping[str, tuple[str, ...]]
    """By tool name: the arguments that take the idempotency key."""
    hooks: Mapping[tuple[str, str], Callable[..., Any]]
    """By kind (`before_model` …) and name."""
    reconcile: Mapping[str, Callable[..., Any]]
    """By tool name: finds out what came of a call of which nobody knows."""
    approval_when: Mapping[str, Callable[..., Any]]
    """By the name of what is called: whether this call needs the approval."""
    approval_text: Mapping[str, Callable[..., Any]]
    """By the name of what is called: what a person is shown."""
    output_type: type[BaseModel] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """An agent spec, compiled. Two are equal if their digests are."""

    body: bytes = field(repr=False)
    """The descriptor as canonical JSON."""
    digest: str
    """Of the body: `sha256:` and 64 hex digits."""
    live: Live = field(repr=False)
    subagents: Mapping[str, Release]
    """By name. The descriptor holds theirs."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Release) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def descriptor(self) -> dict[str, Any]:
        """The descriptor as plain values: a copy, whatever is done to it."""
        found: dict[str, Any] = canonical.decode(self.body)
        return found
