"""Behaviours: a run goes on with the version it began with, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_ext.engine import Behaviours, compile_spec
from langgraph_ext.errors import AdmissionError, InvalidArgument
from tests.support.agent_specs import everything, graph


def one() -> None:
    """A stand-in."""


def other() -> None:
    """Another."""


def test_c01_every_behaviour_that_a_release_names_is_found() -> None:
    """Those of its subagents too."""
    behaviours = Behaviours()
    for name in ("planner", "executor", "react"):
        behaviours.register(name, 1, one)
    behaviours.register("react", 2, other)

    found = behaviours.require(compile_spec(everything()).descriptor)
    assert {("executor", 1): one, ("planner", 1): one, ("react", 1): one} == found


def test_c01_a_version_that_is_not_there_is_refused_and_none_is_taken_instead() -> None:
    behaviours = Behaviours()
    behaviours.register("planner", 2, one)
    behaviours.register("executor", 1, one)
    with pytest.raises(AdmissionError) as raised:
        behaviours.require(compile_spec(graph()).descriptor)
    assert "node_abi_unavailable" == raised.value.code
    assert {"missing": [{"name": "planner", "version": 1}]} == raised.value.details


def test_registering_again_is_nothing_and_otherwise_is_refused() -> None:
    behaviours = Behaviours()
    behaviours.register("react", 1, one)
    behaviours.register("react", 1, one)
    with pytest.raises(InvalidArgument, match="new version"):
        behaviours.register("react", 1, other)


@pytest.mark.parametrize(("name", "version"), [("", 1), ("react", 0), ("react", True), ("react", "1")])
def test_a_behaviour_has_a_name_and_a_version(name: str, version: Any) -> None:
    with pytest.raises(InvalidArgument):
        Behaviours().register(name, version, one)
