"""Scripted tools: they do what the script says, and what they did outside is on record."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import InjectedToolArg, ToolException
from pydantic import BaseModel, ValidationError

from langgraph_ext.errors import NotFound
from langgraph_ext.testing import EffectLog, acts_of, calls_of, fails, hangs, returns, scripted_tool, tries


def use(tool: Any, given: Any, form: str) -> Any:
    return tool.invoke(given) if form == "sync" else asyncio.run(tool.ainvoke(given))


def asked(call_id: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": "search", "args": args, "id": call_id}


@pytest.fixture
def log(tmp_path: Path) -> str:
    return str(tmp_path / "log")


def test_it_returns_values_and_what_functions_return(form: str, log: str) -> None:
    """A list gives each call that was not seen before its next step; the same call gets its own again."""
    tool = scripted_tool("search", ["found", lambda q: q * 2, returns([1])], log=log)
    said = [use(tool, {"q": q}, form) for q in ("a", "b", "a", "c")]
    assert ["found", "bb", "found", [1]] == said
    with pytest.raises(NotFound, match="tool 'search' has no step in its place; it has 0, 1, 2"):
        use(tool, {"q": "d"}, form)
    assert [("a", 1), ("b", 1), ("a", 2), ("c", 1)] == [(each.args["q"], each.tried) for each in tool.calls[:-1]]


def test_what_it_did_is_counted_by_call(form: str, log: str) -> None:
    """Twice the same call is a duplicate; another id is another act."""
    tool = scripted_tool("search", "found", log=log)
    for call_id in ("c1", "c2", "c1"):
        assert ("found", call_id) == (use(tool, asked(call_id, q="a"), form).content, call_id)
    use(scripted_tool("other", log=log), {}, form)

    assert ["c1", "c2", "c1"] == [act.tool_call_id for act in acts_of(log, "search")]
    assert {'search {"q": "a"} c1': 2, 'search {"q": "a"} c2': 1, "other {}": 1} == EffectLog(log).counts()
    assert (4, 3, 0) == (len(acts_of(EffectLog(log))), len(tool.calls), len(calls_of(log)))


def test_a_failing_tool_has_not_acted(form: str, log: str) -> None:
    tool = scripted_tool("search", tries(fails(ToolException("no")), "found"), log=log)
    with pytest.raises(ToolException):
        use(tool, {"q": "a"}, form)
    assert [] == acts_of(log)
    with pytest.raises(AssertionError, match="tool 'search'"):
        scripted_tool("search", [tries("a", "b", "c")], log=log).assert_exhausted()
    assert ("found", 1) == (use(tool, {"q": "a"}, form), len(acts_of(log)))
    assert ["failed", "answered"] == [each.outcome for each in tool.calls]


def test_it_waits_for_a_file(form: str, tmp_path: Path, log: str) -> None:
    flag = tmp_path / "now"
    tool = scripted_tool("search", returns(flag.exists, until=flag), log=log)
    threading.Timer(0.05, flag.touch).start()
    assert use(tool, {}, form) is True


def test_a_hanging_coroutine_is_cancelled_and_has_not_acted(log: str) -> None:
    tool = scripted_tool("search", hangs(), log=log)

    async def give_up() -> None:
        async with asyncio.timeout(0.05):
            await tool.ainvoke({})

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert (["left"], []) == ([each.outcome for each in tool.calls], acts_of(log))


def test_a_mapping_names_tool_calls(form: str) -> None:
    tool = scripted_tool("search", {"c1": "one", "c2": "two"})
    assert ["two", "one"] == [use(tool, asked(call_id), form).content for call_id in ("c2", "c1")]
    tool.assert_exhausted()


class Question(BaseModel):
    """What to look for."""

    q: str
    limit: int = 10


def test_its_schema_may_be_given(form: str) -> None:
    tool = scripted_tool("search", lambda q, limit: (q, limit), args=Question, return_direct=True)
    assert ("a", 10) == use(tool, {"q": "a"}, form)
    assert tool.return_direct
    with pytest.raises(ValidationError):
        use(tool, {"limit": 3}, form)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert schema["properties"] == scripted_tool("weather", args=schema).args
    assert {"city"} == set(scripted_tool("weather", args={"city": str}).args)


def test_an_act_may_have_a_key_of_its_own(form: str, log: str) -> None:
    tool = scripted_tool("charge", log=log, key=lambda args: f"charge {args['order']}")
    use(tool, {"order": 7, "cents": 700}, form)
    assert ["charge 7"] == EffectLog(log).keys()


class Injected(BaseModel):
    """A question, and what only the caller knows."""

    q: str
    state: Annotated[Any, InjectedToolArg] = None


def test_what_is_injected_is_given_and_is_no_part_of_the_call(form: str, log: str) -> None:
    """It may be another object each time: the call is the same."""
    tool = scripted_tool("search", tries("once", lambda q, state: state), args=Injected, log=log)
    first, second = object(), object()
    assert ["once", second] == [use(tool, {"q": "a", "state": state}, form) for state in (first, second)]
    assert [{"q": "a"}, {"q": "a"}] == [act.args for act in acts_of(log)]
