"""The server of scripted completions, as ChatOpenAI sees it: what it says, refuses, breaks off and holds back."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import pytest
from langchain_core.exceptions import ModelAPIError, ModelConnectionError, ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_openai import ChatOpenAI
from openai import APIError, DefaultAsyncHttpxClient, RateLimitError
from pydantic import SecretStr

from tests.support.completions import Completions, calls, completions, cuts, refuses, says, stalls


def model(url: str, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", base_url=url, api_key=SecretStr("x"), max_retries=0, **options)


async def pieces(url: str, **options: Any) -> AsyncIterator[AIMessageChunk]:
    async for chunk in model(url, **options).astream("hello"):
        assert isinstance(chunk, AIMessageChunk)
        yield chunk


async def collect(url: str, into: list[Any]) -> None:
    """Stream; what came is in `into` also when it breaks."""
    async for chunk in pieces(url):
        into.append(chunk.content)  # one by one: a list made in one go would be lost


async def streamed(url: str, **options: Any) -> AIMessageChunk:
    first, *others = [chunk async for chunk in pieces(url, **options)]
    return first.__add__(others)


def ask(url: str, form: str, **options: Any) -> AIMessage:
    """The whole answer: sync at once, async as a stream."""
    if form == "async":
        return asyncio.run(streamed(url, stream_usage=True, **options))
    return model(url, **options).invoke("hello")


def asked(message: AIMessage) -> list[tuple[str, Any, str | None]]:
    return [(call["name"], call["args"], call["id"]) for call in message.tool_calls]


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "completions" or "process_request" in each.name]


def test_it_says_a_text(form: str) -> None:
    with completions(says("two  words", usage=(7, 2))) as server:
        found = ask(server.url, form)
        server.assert_exhausted()
    assert ("two  words", "stop") == (found.content, found.response_metadata["finish_reason"])
    assert found.usage_metadata is not None
    assert (7, 2, 9) == tuple(found.usage_metadata[key] for key in ("input_tokens", "output_tokens", "total_tokens"))


def test_it_keeps_what_was_asked() -> None:
    with completions(says("a"), says("b")) as server:
        for form in ("sync", "async"):
            ask(server.url, form)
    once, stream = server.requests
    assert [{"role": "user", "content": "hello"}] == once["messages"] == stream["messages"]
    assert (True, {"include_usage": True}) == (stream["stream"], stream["stream_options"])


async def test_usage_is_streamed_only_if_asked_for() -> None:
    with completions(says("a b")) as server:
        found = [chunk async for chunk in pieces(server.url)]
    assert ["", "a ", "b"] == [chunk.content for chunk in found][:3]
    assert [None] == list({chunk.usage_metadata for chunk in found})


def test_it_calls_tools(form: str) -> None:
    """Names, torn arguments and ids come together again, beside a text."""
    reply = calls(("add", {"a": 1, "b": [2, 3]}), ("find", {"q": "öl"}), ("list", {}), text="let me see")
    with completions(reply, reply) as server:
        found, again = ask(server.url, form), ask(server.url, form)
    expected = [("add", {"a": 1, "b": [2, 3]}), ("find", {"q": "öl"}), ("list", {})]
    assert expected == [call[:2] for call in asked(found)] == [call[:2] for call in asked(again)]
    assert 6 == len({call[2] for call in asked(found) + asked(again)})
    assert ("let me see", "tool_calls") == (found.content, found.response_metadata["finish_reason"])


@pytest.mark.parametrize("ids", [["x", "x"], [None, "x"], [None, None]])
def test_ids_are_as_the_script_says(form: str, ids: list[str | None]) -> None:
    with completions(calls(("add", {"a": 1}), ("add", {"a": 2}), ids=ids)) as server:
        found = ask(server.url, form)
    assert [("add", {"a": 1}, ids[0]), ("add", {"a": 2}, ids[1])] == asked(found)


async def test_arguments_may_be_cut_short_or_no_json() -> None:
    """LangChain completes what has only been cut short; the chunks keep what came."""
    with completions(calls(("add", '{"a": 1, "b": "x'), ("add", "oh no"), finish_reason="length")) as server:
        found = await streamed(server.url)
    assert ['{"a": 1, "b": "x', "oh no"] == [chunk["args"] for chunk in found.tool_call_chunks]
    assert [{"a": 1, "b": "x"}] == [call["args"] for call in found.tool_calls]
    assert ["oh no"] == [call["args"] for call in found.invalid_tool_calls]
    assert "length" == found.response_metadata["finish_reason"]


def test_arguments_that_are_no_json_are_invalid_at_once() -> None:
    with completions(calls(("add", '{"a": 1, "b'))) as server:
        found = ask(server.url, "sync")
    assert ([], ['{"a": 1, "b']) == (found.tool_calls, [call["args"] for call in found.invalid_tool_calls])


def test_the_finish_reason_is_as_the_script_says(form: str) -> None:
    with completions(says("half a", finish_reason="length")) as server:
        assert "length" == ask(server.url, form).response_metadata["finish_reason"]


def test_it_refuses_with_a_time_to_wait(form: str) -> None:
    with completions(refuses(429, "slow down", code="rate_limit_exceeded", retry_after=0.05), says("a")) as server:
        with pytest.raises(ModelRateLimitError, match="slow down") as caught:
            ask(server.url, form)
        assert "a" == ask(server.url, form).content
    error = caught.value
    assert isinstance(error, RateLimitError)
    assert ("0.05", "rate_limit_exceeded") == (error.response.headers["retry-after"], error.code)


@pytest.mark.parametrize(("status", "error"), [(400, ModelInvalidRequestError), (500, ModelAPIError)])
def test_it_refuses_with_any_status(form: str, status: int, error: type[Exception]) -> None:
    with completions(refuses(status)) as server, pytest.raises(error, match=f"{status} - refused"):
        ask(server.url, form)


def test_an_answer_breaks_off(form: str) -> None:
    with completions(cuts(2, says("a b c"))) as server, pytest.raises(ModelConnectionError):
        ask(server.url, form)


async def test_what_came_before_a_stream_breaks_is_kept() -> None:
    found: list[Any] = []
    with completions(cuts(3, says("a b c"))) as server, pytest.raises(ModelConnectionError):
        await collect(server.url, found)
    assert ["", "a ", "b "] == found


async def test_a_stream_may_break_with_an_error_or_with_nothing() -> None:
    """One that ends as if it were whole lacks only its finish reason."""
    with completions(*(cuts(2, says("a b"), how=how) for how in ("error", "ended"))) as server:
        with pytest.raises(APIError, match="the server had an error"):
            await streamed(server.url)
        found = await streamed(server.url)
    assert ("a ", False) == (found.content, "finish_reason" in found.response_metadata)


async def test_a_stalled_stream_times_out() -> None:
    """The server does not wait for the end of it once the client has left."""

    async def give_up(url: str) -> None:
        async with asyncio.timeout(0.5):
            await collect(url, found)

    found: list[Any] = []
    begun = time.monotonic()
    with completions(stalls(2, says("a b c"), 60)) as server:
        with pytest.raises(TimeoutError):
            await give_up(server.url)
        while len(threads()) > 1:
            await asyncio.sleep(0.001)
    assert ["", "a "] == found
    assert time.monotonic() - begun < 30
    assert [] == threads()


def test_a_stall_ends(form: str) -> None:
    with completions(stalls(1, says("a b"), 0.05)) as server:
        assert "a b" == ask(server.url, form).content


def test_a_stall_ends_when_the_server_is_closed(form: str) -> None:
    """The client is told, and nothing is left behind: no thread, and no connection that has asked nothing."""
    errors: list[BaseException] = []

    def wait(url: str) -> None:
        with pytest.raises(ModelConnectionError) as caught:
            ask(url, form)
        errors.append(caught.value)

    with completions(stalls(1, says("a b"), 60)) as server:
        idle = socket.create_connection(("127.0.0.1", server.port))
        waiting = threading.Thread(target=wait, args=(server.url,))
        waiting.start()
        while not server.requests:
            time.sleep(0.001)
    waiting.join(30)
    with idle:
        assert (b"", 1, []) == (idle.recv(1), len(errors), threads())


def test_requests_at_once_get_a_reply_each() -> None:
    """A function sees the request, for where the order of requests is not certain."""

    async def ask_all(url: str) -> list[Any]:
        return [found.content for found in await asyncio.gather(*(streamed(url) for _ in range(8)))]

    with completions(*(says(str(n)) for n in range(8))) as server:
        assert [str(n) for n in range(8)] == sorted(asyncio.run(ask_all(server.url)))
        server.assert_exhausted()
    with completions(lambda request: says(request["messages"][0]["content"] + "!")) as server:
        assert "hello!" == ask(server.url, "sync").content


def test_a_request_too_many_or_too_few_is_told() -> None:
    with completions(says("a")) as server:
        with pytest.raises(AssertionError, match="0 requests, 1 replies"):
            server.assert_exhausted()
        ask(server.url, "sync")
        with pytest.raises(ModelInvalidRequestError, match="the script has no reply 2"):
            ask(server.url, "sync")
        with pytest.raises(AssertionError, match="2 requests, 1 replies"):
            server.assert_exhausted()


def test_a_failing_function_is_told_when_the_server_is_closed() -> None:
    server = Completions([lambda request: says(str(1 // 0))])
    with pytest.raises(ModelConnectionError):
        ask(server.url, "sync")
    with pytest.raises(ZeroDivisionError):
        server.close()
    assert [] == threads()


@pytest.mark.parametrize("keeps", [True, False])
async def test_connections_are_kept_if_asked_for(keeps: bool) -> None:
    """One that breaks off is closed in any case."""
    with completions(says("a"), says("b"), cuts(2, says("c d")), says("e"), keeps=keeps) as server:
        async with DefaultAsyncHttpxClient() as client:
            for expected, connections in (("a", 1), ("b", 1), ("", 1), ("e", 2)):
                with nullcontext() if expected else pytest.raises(ModelConnectionError):
                    assert expected == (await streamed(server.url, http_async_client=client)).content
                assert (connections if keeps else len(server.requests)) == server.connections
