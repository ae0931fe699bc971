"""Scenarios: a function named `module:function`, found in the caller's process, loaded in the server's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from langgraph_ext.errors import InvalidArgument

__all__ = ["Loading", "Scenario", "find_scenario", "load"]


class Loading(BaseException):
    """The module being loaded for the harness calls the harness itself: a script without a guard around its last lines.

    Whatever the scenario needs stands above that call, so loading ends there. A `BaseException`, so that no handler of
    the script's takes it for a failure.
    """

    under_way: ClassVar[bool] = False

    @classmethod
    def end_here(cls) -> None:
        """Called by the harness before anything else."""
        if cls.under_way:
            raise cls


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Where a function is."""

    module: str
    function: str
    file: str | None = None
    """The file of a module that may not be found by its name: a script, or what pytest has imported by its path."""

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


def find_scenario(target: str) -> Scenario:
    """The scenario that `module:function` names; `__main__` is the script that is running. Imports nothing.

    Raises:
        InvalidArgument: It is not of this form, or `__main__` has no file.
    """
    module, _, function = str(target).partition(":")
    if module.endswith(".py") and module not in sys.modules:
        named = ".".join(part for part in Path(module.removesuffix(".py")).parts if part.isidentifier())
        raise InvalidArgument(f"{target!r} names a file, not a module; write '{named}:{function or 'scenario'}'")
    if not (function.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise InvalidArgument(f"{target!r} names no scenario; write 'module:function', such as 'tests.orders:scenario'")
    known = sys.modules.get(module)
    file = getattr(known, "__file__", None)
    if module != "__main__":
        return Scenario(module=module, function=function, file=file)
    spec = getattr(known, "__spec__", None)
    if spec is not None:  # python -m
        return Scenario(module=spec.name, function=function, file=file)
    if file is None:
        raise InvalidArgument(
            f"{target!r} is in no file, so another process cannot load it; put it into a module, and name that"
        )
    return Scenario(module=Path(file).stem, function=function, file=str(Path(file).resolve()))


def load(scenario: Scenario) -> Callable[..., Any]:
    """Import the module, and return the function.

    Raises:
        AttributeError: The module has no such function; whatever importing it raises is raised, too.
    """
    Loading.under_way = True
    try:
        module = sys.modules.get(scenario.module) or _load(scenario)
    finally:
        Loading.under_way = False
    function: Callable[..., Any] = getattr(module, scenario.function)
    if not callable(function):
        raise AttributeError(f"{scenario} is a {type(function).__name__}, not a function")
    return function


def _load(scenario: Scenario) -> ModuleType:
    """As `import_module`, but that a module which ends with `Loading` is kept as far as it came."""
    parent, _, name = scenario.module.rpartition(".")
    try:
        spec = find_spec(scenario.module)
    except ModuleNotFoundError:
        if scenario.file is None:
            raise
        spec = None
    if spec is None and scenario.file is not None:
        spec = spec_from_file_location(scenario.module, scenario.file)
        parent = ""
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {scenario.module!r}", name=scenario.module)
    module = sys.modules[scenario.module] = module_from_spec(spec)
    with suppress(Loading):
        spec.loader.exec_module(module)
    if parent:
        setattr(import_module(parent), name, module)
    return module
