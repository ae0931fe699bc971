"""Which step of a script a call gets: decided by what the call is and what is on record, the same after a restart."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.testing import ScriptedChatModel, calls_of, fails, say, tries
from tests.support.scripted import WAYS, conversation


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "calls")


def test_a_list_is_played_along_the_conversation(way: Any) -> None:
    """Whoever asks, and in whatever order."""
    model = ScriptedChatModel(script=["a", "b", "c"])
    assert ["c", "a", "b", "b"] == [way(model, conversation(n)).content for n in (2, 0, 1, 1)]


def test_a_restart_gets_the_same_step_and_the_next_try(way: Any, log: str) -> None:
    def fresh() -> ScriptedChatModel:
        return ScriptedChatModel(script=["a", tries(fails(TimeoutError), "b", "c")], log=log)

    with pytest.raises(TimeoutError):
        way(fresh(), conversation(1))
    said = [way(fresh(), conversation(n)).content for n in (1, 0, 1, 0, 1)]
    assert ["b", "a", "c", "a", "c"] == said
    assert [(1, 1), (1, 2), (0, 1), (1, 3), (0, 2), (1, 4)] == [(each.place, each.tried) for each in calls_of(log)]


def test_another_request_begins_with_the_first_try() -> None:
    model = ScriptedChatModel(script=[tries("a", "b")])
    assert ["a", "b", "a"] == [model.invoke(asked).content for asked in ("x", "x", "y")]


def test_bound_tools_make_another_request_and_ids_of_messages_do_not() -> None:
    model = ScriptedChatModel(script=[tries("a", "b", "c")])
    bound = model.bind_tools([{"type": "function", "function": {"name": "f", "parameters": {}}}])
    said = [asked.invoke([HumanMessage("x", id=n)]).content for asked, n in ((model, "1"), (model, "2"), (bound, "3"))]
    assert ["a", "b", "a"] == said


def test_by_request_each_new_request_gets_the_next_step(way: Any, log: str) -> None:
    def fresh() -> ScriptedChatModel:
        return ScriptedChatModel(script=["a", "b", "c"], by="request", log=log)

    assert ["a", "b", "a", "c", "b"] == [way(fresh(), asked).content for asked in ("x", "y", "x", "z", "y")]


def test_a_function_may_tell_the_turn_or_the_key() -> None:
    turns = ScriptedChatModel(script=["a", "b"], by=lambda messages: len(messages) - 1)
    assert ["b", "a"] == [turns.invoke(asked).content for asked in ([("user", "x"), ("user", "y")], "x")]
    keys = ScriptedChatModel(script={"x": "a", "y": "b"}, by=lambda messages: str(messages[-1].content))
    assert ["b", "a"] == [keys.invoke(asked).content for asked in ("y", "x")]


@pytest.mark.parametrize("where", ["metadata", "configurable"])
def test_a_call_may_be_named_in_its_config(way: Any, where: str) -> None:
    model = ScriptedChatModel(script={"plan": "a", "act": tries("b", "c")})

    def ask(key: str, text: str) -> Any:
        return way(model.with_config({where: {"call_key": key}}), text).content

    assert ["b", "a", "c"] == [ask("act", "1"), ask("plan", "2"), ask("act", "3")]  # its key says that it is the same
    assert ["act", "plan", "act"] == [each.key for each in model.calls]
    listed = ScriptedChatModel(script=["a", "b"])
    named = [listed.with_config({where: {"call_key": key}}) for key in "xyx"]
    assert ["a", "b", "a"] == [way(each, f"{n}").content for n, each in enumerate(named)]


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_a_call_may_be_named_where_events_are_streamed() -> None:
    model = ScriptedChatModel(script={"plan": "a", "act": "b c d e"})
    stream = model.stream_events("hello", {"metadata": {"call_key": "act"}}, version="v3")
    assert ("b c d e", ["act"]) == (str(stream.text), [each.key for each in model.calls])


def test_a_mapping_may_name_turns() -> None:
    model = ScriptedChatModel(script={1: "b", 0: "a"})
    assert ["a", "b"] == [model.invoke(conversation(n)).content for n in (0, 1)]


def test_one_step_answers_every_call() -> None:
    """Its calls of tools are still told apart by the turn."""
    model = ScriptedChatModel(script=say("a"))
    assert ["a"] * 3 == [model.invoke(conversation(n)).content for n in (0, 5, 0)]
    assert [0, 5, 0] == [each.place for each in model.calls]
    model.assert_exhausted()


def test_each_role_plays_its_own_script(log: str) -> None:
    planner = ScriptedChatModel(roles={"planner": ["a", "b"], "executor": ["c"]}, role="planner", log=log)
    executor = planner.as_role("executor")
    assert ["a", "c", "b"] == [
        asked.invoke(conversation(n)).content for asked, n in ((planner, 0), (executor, 0), (planner, 1))
    ]
    assert ["planner", "executor", "planner"] == [each.name for each in executor.calls]
    assert [0, 1] == [each.place for each in calls_of(log, "planner")]
    executor.assert_exhausted()


def test_a_role_that_does_not_exist_is_refused() -> None:
    """Whoever asks for it; and a script for one, where the roles are known."""
    with pytest.raises(InvalidArgument, match="no role 'planer'; the script has 'planner'"):
        ScriptedChatModel(roles={"planner": ["a"]}, role="planer")
    with pytest.raises(InvalidArgument, match="no role ''"):
        ScriptedChatModel(roles={"planner": ["a"]})
    with pytest.raises(InvalidArgument, match="no role 'x'"):
        ScriptedChatModel(roles={"planner": ["a"]}, role="planner").as_role("x")
    with pytest.raises(InvalidArgument, match=r"a script for \['planer'\]"):
        ScriptedChatModel(roles={"planer": ["a"]}, role="planer", known_roles=["planner", "executor"])


def test_a_request_without_a_step_is_named(way: Any) -> None:
    model = ScriptedChatModel(script=["a"])
    said = r"for turn 1 .*it has 0.*3 messages, the last from human: 'and then"
    with pytest.raises(NotFound, match=said) as found:
        way(model, conversation(1))
    assert ("script_exhausted", [("refused", None)]) == (
        found.value.code,
        [(each.outcome, each.place) for each in model.calls],
    )
    with pytest.raises(NotFound, match="no step by the key 'x'; it has 'y'"):
        ScriptedChatModel(script={"y": "a"}).invoke("hello", {"metadata": {"call_key": "x"}})


def test_a_script_is_exhausted_when_each_try_was_had_and_every_call_had_one() -> None:
    """A call without a step is told even if somebody swallowed its error."""
    model = ScriptedChatModel(script=["a", tries("b", "c"), "d"])
    model.invoke(conversation(0))
    model.invoke(conversation(1))
    with pytest.raises(NotFound):
        model.invoke(conversation(7))
    with pytest.raises(AssertionError) as found:
        model.assert_exhausted()
    told = str(found.value).splitlines()
    assert ["nobody had script[1], try 2", "nobody had script[2]"] == told[1:3]
    assert "script had no step for a call" in told[3]
    assert 4 == len(told)


def test_copies_go_on_with_the_same_script() -> None:
    model = ScriptedChatModel(script=[tries("a", "b", "c")])
    others = [model.model_copy(update={"max_tokens": 5}), copy.deepcopy(model)]
    assert ["a", "b", "c"] == [each.invoke("x").content for each in (model, *others)]


def test_a_line_that_was_cut_short_is_no_call(log: str) -> None:
    model = ScriptedChatModel(script=[tries("a", "b")], log=log)
    model.invoke("x")
    with open(log, "a") as file:
        file.write('{"begins": {"call_id": "')
    assert "b" == model.invoke("x").content
    assert [1, 2] == [each.tried for each in calls_of(log)]


def test_a_line_that_is_half_written_is_read_when_it_is_whole(log: str) -> None:
    """By one who has looked in between, too."""
    other, model = ScriptedChatModel(script="a", log=log), ScriptedChatModel(script="a", log=log)
    other.invoke("x")
    lines = Path(log).read_bytes()
    seen = []
    for size in (5, len(lines) - 5, len(lines)):
        Path(log).write_bytes(lines[:size])
        seen.append([each.outcome for each in model.calls])
    assert [[], [None], ["answered"]] == seen


def test_a_log_that_was_removed_begins_anew(log: str) -> None:
    model = ScriptedChatModel(script=[tries("a", "b")], log=log)
    model.invoke("x")
    Path(log).unlink()
    assert ([], "a") == (model.calls, model.invoke("x").content)
