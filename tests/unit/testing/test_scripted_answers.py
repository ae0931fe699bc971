"""ScriptedChatModel: what a step says arrives as any provider's answer would, whole and streamed, sync and async."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core import exceptions
from langchain_core.messages import AIMessageChunk
from pydantic import BaseModel, ValidationError

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing import (
    ScriptedChatModel,
    breaks_after,
    call,
    calls,
    exits,
    fails,
    hangs,
    nothing,
    refuses,
    returns,
    say,
    scripted_tool,
    tries,
    truncated,
)
from tests.support.scripted import WAYS, chunks

FORMS = pytest.mark.parametrize("form", ["sync", "async"])


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


@pytest.fixture(params=["invoke", "ainvoke"])
def whole(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


def told(message: Any) -> tuple[Any, ...]:
    return message.content, message.tool_calls, message.invalid_tool_calls, message.response_metadata["finish_reason"]


def called(name: str, args: dict[str, Any], call_id: str | None) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def test_text_and_several_calls_come_in_one_answer(way: Any) -> None:
    step = calls("Let me see.", call("search", {"q": "ä\n"}), call("nobody_knows_me"))
    message = way(ScriptedChatModel(script=[step]), "hello")
    expected = [called("search", {"q": "ä\n"}, "call-0-0"), called("nobody_knows_me", {}, "call-0-1")]

    assert ("Let me see.", expected, [], "tool_calls") == told(message)
    assert "scripted" == message.response_metadata["model_name"]


@pytest.mark.parametrize(("ids", "arrived"), [((None, None), [None, None]), (("same", "same"), ["same", "same"])])
def test_missing_and_duplicate_ids_arrive_as_they_are(way: Any, ids: Any, arrived: Any) -> None:
    """And the calls stay apart."""
    step = calls(*[call("a", {"n": n}, id=each) for n, each in enumerate(ids)])
    message = way(ScriptedChatModel(script=[step]), "hello")
    assert [called("a", {"n": n}, each) for n, each in enumerate(arrived)] == message.tool_calls


@pytest.mark.parametrize("args", ['{"q": ', "[1]", "nonsense"])
def test_arguments_that_are_not_json_are_no_tool_call(whole: Any, args: str) -> None:
    message = whole(ScriptedChatModel(script=[calls(call("a", args), call("b"))]), "hello")
    [broken] = message.invalid_tool_calls
    assert ("a", args, "call-0-0") == (broken["name"], broken["args"], broken["id"])
    assert ["b"] == [each["name"] for each in message.tool_calls]


def test_a_truncated_answer_lacks_the_rest_of_its_last_call(way: Any) -> None:
    """`finish_reason` tells; a stream lets langchain-core repair what is left, so that it looks like a sound call."""
    message = way(ScriptedChatModel(script=[truncated("Let", call("write", {"text": "a long story"}))]), "hello")
    assert ("Let", "length") == (message.content, message.response_metadata["finish_reason"])
    if isinstance(message, AIMessageChunk):
        assert ['{"text": "a '] == [each["args"] for each in message.tool_call_chunks]
        assert [called("write", {"text": "a "}, "call-0-0")] == message.tool_calls
    else:
        assert ['{"text": "a '] == [each["args"] for each in message.invalid_tool_calls]


def test_arguments_that_are_cut_already_are_not_cut_again(whole: Any) -> None:
    message = whole(ScriptedChatModel(script=[truncated(call("write", '{"text": "a lo'))]), "hello")
    assert ['{"text": "a lo'] == [each["args"] for each in message.invalid_tool_calls]


def test_a_refusal_is_a_complete_answer_without_content(way: Any) -> None:
    script = [tries(refuses("No."), refuses("", finish_reason="content_filter"))]
    model = ScriptedChatModel(script=script)
    first, second = way(model, "hello"), way(model, "hello")
    assert ("", [], [], "refusal") == told(first)
    assert {"refusal": "No."} == first.additional_kwargs
    assert "content_filter" == second.response_metadata["finish_reason"]


def test_an_empty_answer_has_neither_text_nor_calls(way: Any) -> None:
    assert ("", [], [], "stop") == told(way(ScriptedChatModel(script=[nothing()]), "hello"))


def test_usage_is_counted_given_or_missing(way: Any) -> None:
    full = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "input_token_details": {"cache_read": 1}}
    steps = [say("hello", usage=(10, 5)), say("hello", usage=None), say("hello", usage=full), say("hello")]
    model = ScriptedChatModel(script=[tries(*steps)])
    given, missing, whole_one, counted = [way(model, "hello").usage_metadata for _ in steps]

    assert {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15} == given
    assert (None, full) == (missing, whole_one)
    assert {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5} == counted  # '["hello"]' and 'hello'
    assert None is way(ScriptedChatModel(script="hello", usage=None), "hello").usage_metadata


@FORMS
def test_a_stream_comes_in_real_chunks(form: str) -> None:
    """Text is split, a call is named first and its arguments come in pieces, usage and the end are on the last one."""
    step = calls("Let me see.", call("a", {"q": "lang"}), call("b", {"n": 1}), usage=(10, 5))
    found = chunks(ScriptedChatModel(script=[step], chunk_characters=8), "hello", form)
    parts = [each for chunk in found for each in chunk.tool_call_chunks]

    assert ["Let me s", "ee."] == [chunk.content for chunk in found if chunk.content]
    assert [("a", "call-0-0", 0, ""), (None, None, 0, '{"q": "l'), (None, None, 0, 'ang"}')] == [
        (part["name"], part["id"], part["index"], part["args"]) for part in parts[:3]
    ]
    assert [0, 0, 0, 1, 1] == [part["index"] for part in parts]
    assert 1 == len({chunk.id for chunk in found})
    assert [None] * (len(found) - 1) + ["last"] == [chunk.chunk_position for chunk in found]
    assert [None] * (len(found) - 1) + [15] == [(chunk.usage_metadata or {}).get("total_tokens") for chunk in found]
    assert [{}] * (len(found) - 1) == [chunk.response_metadata for chunk in found[:-1]]


@FORMS
def test_an_answer_is_on_record_before_its_last_piece_is_given(form: str) -> None:
    """Whoever has all of it can rely on that."""
    model = ScriptedChatModel(script=[say("hello", usage=None)], chunk_characters=3)
    seen: list[Any] = []

    async def look() -> None:
        async for _ in model.astream("hello"):
            seen.append(model.calls[0].outcome)

    if form == "async":
        asyncio.run(look())
    else:
        seen += [model.calls[0].outcome for _ in model.stream("hello")]
    assert [None, None, "answered"] == seen


def test_each_call_has_a_message_id_of_its_own() -> None:
    """Also of the same request; unless the step gives one."""
    model = ScriptedChatModel(script=[tries("hello", "hello", say("hello", message_id="m1"))])
    first, second, third = [model.invoke("hello").id for _ in range(3)]
    assert [f"scripted-{each.call_id}" for each in model.calls[:2]] == [first, second]
    assert (True, "m1") == (first != second, third)


MODEL_ERRORS = [
    "ModelAuthenticationError",
    "ModelPermissionDeniedError",
    "ModelInvalidRequestError",
    "ModelNotFoundError",
    "ModelRateLimitError",
    "ModelAPIError",
    "ModelConnectionError",
    "ModelTimeoutError",
    "ModelRefusalError",
    "ContextOverflowError",
]
KNOWN = [getattr(exceptions, name) for name in MODEL_ERRORS if hasattr(exceptions, name)]  # older ones have fewer
ERRORS = [*(kind("no") for kind in KNOWN), KeyError]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_any_error_is_raised_as_it_is(way: Any, error: Any) -> None:
    model = ScriptedChatModel(script=[tries(fails(error), "hello")])
    with pytest.raises(error if isinstance(error, type) else type(error)) as found:
        way(model, "hello")
    assert isinstance(error, type) or found.value is error
    assert "hello" == way(model, "hello").content
    assert [("failed", found.type.__name__), ("answered", None)] == [(c.outcome, c.error) for c in model.calls]


@FORMS
def test_a_stream_breaks_behind_half_a_call(form: str) -> None:
    found: list[AIMessageChunk] = []
    step = breaks_after("Let me", call("a", {"q": 1}), error=ConnectionResetError("gone"))
    model = ScriptedChatModel(script=[step], chunk_characters=99)
    with pytest.raises(ConnectionResetError):
        chunks(model, "hello", form, found)

    parts = [part for chunk in found for part in chunk.tool_call_chunks]
    assert (["Let me", "", ""], ["", '{"q"']) == ([each.content for each in found], [part["args"] for part in parts])
    assert {None} == {chunk.chunk_position for chunk in found}
    assert ["failed"] == [each.outcome for each in model.calls]


def test_a_broken_stream_gives_no_whole_answer(way: Any) -> None:
    with pytest.raises(ConnectionError):
        way(ScriptedChatModel(script=[breaks_after("par")]), "hello")


def test_a_hanging_coroutine_is_cancelled() -> None:
    model = ScriptedChatModel(script=[hangs()])

    async def give_up() -> None:
        async with asyncio.timeout(0.05):
            await model.ainvoke("hello")

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert [("left", "CancelledError")] == [(each.outcome, each.error) for each in model.calls]


def test_a_hanging_thread_ends_when_a_file_appears(tmp_path: Path) -> None:
    model = ScriptedChatModel(script=[hangs(until=tmp_path / "enough")])
    threading.Timer(0.05, (tmp_path / "enough").touch).start()
    with pytest.raises(TimeoutError, match="nobody gave up"):
        model.invoke("hello")
    assert [("failed", "TimeoutError")] == [(each.outcome, each.error) for each in model.calls]


def test_a_step_waits_and_calls_a_function_at_work(way: Any, tmp_path: Path) -> None:
    seen: list[Any] = []
    step = say("hello", seconds=0.02, during=lambda: seen.append([c.outcome for c in model.calls]))
    model = ScriptedChatModel(script=[step])
    started = time.monotonic()
    assert "hello" == way(model, "hello").content
    assert time.monotonic() - started >= 0.02
    assert [[None]] == seen  # it has begun, and not ended


@FORMS
def test_a_stream_that_is_left_has_no_answer(form: str) -> None:
    model = ScriptedChatModel(script=["a long answer"])

    async def leave() -> None:
        stream: Any = model.astream("hello")
        await anext(stream)
        await stream.aclose()

    if form == "async":
        asyncio.run(leave())
    else:
        stream: Any = model.stream("hello")
        next(stream)
        stream.close()
    assert ["left"] == [each.outcome for each in model.calls]


class Weather(BaseModel):
    """The weather."""

    degrees: int


def test_bound_tools_and_options_are_on_record(way: Any) -> None:
    model = ScriptedChatModel(script=["hello"])
    search = scripted_tool("search", args={"q": str})
    way(model.bind_tools([search, Weather], tool_choice="any").bind(stop=["END"], temperature=0), "hello")
    [made] = model.calls

    assert (["search", "Weather"], "any", ["END"]) == (made.tools, made.request["tool_choice"], made.request["stop"])
    assert {"temperature": 0} == made.request["kwargs"]
    assert ["q"] == made.request["tools"][0]["function"]["parameters"]["required"]
    assert ([{"type": "human", "content": "hello"}], None) == (made.messages, made.request["structured_output"])


def test_structured_output_is_made_of_a_call_and_on_record() -> None:
    model = ScriptedChatModel(script=[tries(call("Weather", {"degrees": 20}), call("Weather", {"degrees": "?"}))])
    asks = model.with_structured_output(Weather)
    assert Weather(degrees=20) == asks.invoke("how warm?")
    with pytest.raises(Exception, match="Weather"):
        asks.invoke("how warm?")
    assert ["Weather", "Weather"] == [each.request["structured_output"] for each in model.calls]
    assert ["Weather"] == model.calls[0].tools


def test_tokens_are_counted_without_a_tokenizer() -> None:
    model = ScriptedChatModel(script="hello")
    assert (2, 0) == (model.get_num_tokens("hello"), model.get_num_tokens(""))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (ScriptedChatModel, "needs a script"),
        (lambda: ScriptedChatModel(script=[], log=None), "has no step"),
        (lambda: ScriptedChatModel(script=["a"], roles={"b": ["c"]}), "not both"),
        (lambda: ScriptedChatModel(script=[7]), r"script\[0\] is no step: int"),
        (lambda: ScriptedChatModel(script=[returns("a")]), "nothing that a model does"),
        (lambda: ScriptedChatModel(script="a", by="moon"), "by is 'moon'"),
        (lambda: ScriptedChatModel(script="a", chunk_characters=0), "at least one"),
        (lambda: scripted_tool("a", say("b")), "does not say anything"),
        (lambda: fails("oops"), "cannot be raised"),  # type: ignore[arg-type]
        (lambda: exits("soon"), "use 'before'"),  # type: ignore[arg-type]
        (lambda: call("a", {"b": object()}), "not JSON"),
        (tries, "needs a step"),
    ],
)
def test_what_is_no_script_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        wrong()


def test_an_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValidationError, match="scripts"):
        ScriptedChatModel(script="a", scripts=["b"])
