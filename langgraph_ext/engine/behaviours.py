"""Behaviours: what drives a role, by name and version. A run goes on with the version it began with, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langgraph_ext.errors import AdmissionError, InvalidArgument
from langgraph_ext.ledger.rows import text_or_none

__all__ = ["BehaviourFactory", "Behaviours"]

BehaviourFactory = Callable[..., Any]
"""Makes what drives one agent task."""

Version = tuple[str, int]


class Behaviours:
    """The behaviours that this process has."""

    def __init__(self) -> None:
        self._factories: dict[Version, BehaviourFactory] = {}

    def register(self, name: str, version: int, factory: BehaviourFactory) -> None:
        """Add one version of a behaviour. The same one again changes nothing.

        Args:
            name: Its name, not empty.
            version: From 1. What a stored continuation means may only change with it.
            factory: Makes what drives one agent task.

        Raises:
            InvalidArgument: The name is no text or empty, the version is no whole number from 1, or stands for another
                factory, or that cannot be called.
        """
        if not text_or_none(name, "name") or type(version) is not int or version < 1:
            raise InvalidArgument(f"behaviour {name!r} version {version!r}: give it a name, and a version from 1")
        if not callable(factory):
            raise InvalidArgument(f"behaviour {name!r} version {version!r}: its factory is a function, or a class")
        if self._factories.setdefault((name, version), factory) is not factory:
            raise InvalidArgument(
                f"behaviour {name!r} version {version} is registered with another factory; give that a new version"
            )

    def require(self, descriptor: Mapping[str, Any]) -> dict[Version, BehaviourFactory]:
        """Every behaviour that a release, or one of its subagents, names.

        Args:
            descriptor: Of the release: `Release.descriptor`, or as it was stored.

        Raises:
            AdmissionError: Some version is not there (`node_abi_unavailable`); `details["missing"]` lists the names and
                versions, sorted. A newer one is never taken instead.
        """
        named = set(_named_by(descriptor))
        missing = sorted(named - self._factories.keys())
        if missing:
            listed = ", ".join(f"{name!r} version {version}" for name, version in missing)
            raise AdmissionError(
                f"behaviours are not available in this process: {listed}; go on where they are registered",
                code="node_abi_unavailable",
                details={"missing": [{"name": name, "version": version} for name, version in missing]},
            )
        return {version: self._factories[version] for version in sorted(named)}


def _named_by(descriptor: Mapping[str, Any]) -> Iterator[Version]:
    for role in descriptor["roles"].values():
        yield role["behaviour"]["name"], role["behaviour"]["version"]
    for subagent in descriptor["subagents"].values():
        yield from _named_by(subagent)
