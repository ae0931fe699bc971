"""The rules of the APIs for histories: what follows them passes, and each way to break one is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.message_rules import anthropic_faults, openai_faults

ASKS = {"role": "user", "content": "go"}


def calling(*ids: str, name: str = "add", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    made = [{"id": each, "type": "function", "function": {"name": name, "arguments": arguments}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": made, **more}


def result(call_id: str, content: Any = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_openai_takes_a_sound_history() -> None:
    history = [
        {"role": "system", "content": "Be brief."},
        {**ASKS, "name": "Ann"},
        calling("a", "b", content="let me see"),
        result("b"),
        result("a", ""),
        calling("a"),
        result("a", [{"type": "text", "text": "1"}]),
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "refusal": "no"},
        ASKS,
    ]
    assert [] == openai_faults(history)


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        ([], "there is no message"),
        ([ASKS, calling("a", "b"), result("a"), ASKS], "messages[3]: tool call 'b' has no tool message before it"),
        ([ASKS, calling("a")], "the end: tool call 'a' has no tool message before it"),
        ([ASKS, result("a")], "messages[1]: 'a' is no tool call of"),
        ([ASKS, calling("a"), result("a"), result("a")], "messages[3]: 'a' is no tool call of"),
        ([ASKS, calling("a"), result("a", None)], "messages[2]: content is neither text nor parts"),
        ([{"role": "human", "content": "go"}], "messages[0]: there is no role 'human'"),
        ([{**ASKS, "name": "Ann B"}], "messages[0]: name 'Ann B' is not of the form allowed"),
        ([{"role": "user", "content": None}], "messages[0]: content is neither text nor parts"),
        ([{"role": "assistant", "content": None}], "messages[0]: content is neither text nor parts"),
        ([{"role": "assistant", "content": "hi", "tool_calls": []}], "messages[0]: tool_calls are a list"),
        ([{**ASKS, "tool_calls": calling("a")["tool_calls"]}, result("a")], "messages[0]: tool_calls are a list"),
        ([calling("a", "a"), result("a"), result("a")], "messages[0]: two tool calls have one id"),
        ([calling("a" * 41), result("a" * 41)], "messages[0].tool_calls[0]: id 'aaaa"),
        ([calling("a", name="x.y"), result("a")], "messages[0].tool_calls[0]: name 'x.y' is not of the form"),
    ],
)
def test_openai_refuses(history: list[dict[str, Any]], fault: str) -> None:
    [found] = openai_faults(history)
    assert found.startswith(fault)


@pytest.mark.parametrize("arguments", [None, {}, "", "[]", '{"a": 1', '{"a": NaN}'])
def test_arguments_are_the_json_of_an_object(arguments: Any) -> None:
    [found] = openai_faults([calling("a", arguments=arguments), result("a")])
    assert found.startswith("messages[0].tool_calls[0]: arguments are not the JSON")


def says(text: str, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def uses(*ids: str, name: str = "add", args: Any = None) -> dict[str, Any]:
    made = [{"type": "tool_use", "id": each, "name": name, "input": {} if args is None else args} for each in ids]
    return {"role": "assistant", "content": made}


def results(*ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": each, "content": "1"} for each in ids]}


def test_anthropic_takes_a_sound_history() -> None:
    """Results in any order, and in several messages in a row, as long as nothing stands before them."""
    history = [ASKS, says("let me see"), uses("a", "b"), results("b"), results("a"), ASKS, uses("c"), results("c")]
    assert [] == anthropic_faults(history)
    assert [] == anthropic_faults([ASKS, says("The answer is")])
    assert [] == anthropic_faults([ASKS, {"role": "assistant", "content": ""}])[1:]


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        ([says("hi"), ASKS], "the first message is not the user's"),
        ([ASKS, {"role": "system", "content": "Be brief."}], "turn 1: there is no role 'system'"),
        ([ASKS, {"role": "assistant", "content": []}, ASKS], "turn 1: it has no content"),
        ([says(" ", "user")], "turn 0: a text is empty"),
        ([ASKS, says("The answer is ")], "turn 1: the last text of the assistant ends with white space"),
        ([ASKS, uses("a")], "the end: tool use 'a' has no result"),
        ([ASKS, uses("a", "b"), results("a")], "turn 2: tool use 'b' has no result"),
        ([ASKS, uses("a"), ASKS, results("a")], "turn 2: something stands before a result"),
        ([ASKS, uses("a"), results("a", "a")], "turn 2: a tool use has two results"),
        ([results("a")], "turn 0: 'a' is no tool use of the turn before"),
        ([ASKS, uses("a"), results("a"), uses("a"), results("a")], "turn 3: id 'a' was used before"),
        ([ASKS, uses("a:0"), results("a:0")], "turn 1: id 'a:0' is not of the form allowed"),
        ([ASKS, uses("a", name="x.y"), results("a")], "turn 1: name 'x.y' is not of the form allowed"),
        ([ASKS, uses("a", args="{}"), results("a")], "turn 1: the input is no object"),
    ],
)
def test_anthropic_refuses(history: list[dict[str, Any]], fault: str) -> None:
    [found] = anthropic_faults(history)
    assert found.startswith(fault)


def test_anthropic_takes_tool_uses_of_the_assistant_and_results_of_the_user_alone() -> None:
    assert "turn 0: tool uses are the assistant's" in anthropic_faults([{**uses("a"), "role": "user"}])
    assert "turn 1: results are the user's" in anthropic_faults([ASKS, {**results("a"), "role": "assistant"}])
