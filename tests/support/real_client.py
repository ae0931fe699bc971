"""ChatOpenAI against a scripted server: agents of it, and what must hold of every server in the end."""

from __future__ import annotations

import gc
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI
from openai import DefaultHttpxClient
from pydantic import SecretStr

from langgraph_ext.engine import AgentSpec
from tests.support.completions import Completions, Step, completions
from tests.support.message_rules import openai_faults

__all__ = ["Adder", "agent_at", "answered", "serving", "shown", "told_by"]


@contextmanager
def serving(*script: Step) -> Iterator[Completions]:
    """A server; in the end all of its replies were asked for, by requests that OpenAI would take, and no connection to
    it and nothing else that warns when it is thrown away is left.
    """
    gc.freeze()  # so that only what is made in the block is looked through
    with completions(*script) as server:
        yield server
        server.assert_exhausted()
        assert [[]] * len(server.requests) == [openai_faults(each["messages"]) for each in server.requests]
        gc.collect()  # what was left open warns now, and warnings are errors
        gc.unfreeze()
        assert [] == _connections(server.port)


def _connections(port: int) -> list[int]:
    """File descriptors of this process's connections to a port here."""
    found = []
    for fd in map(int, os.listdir("/dev/fd")):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                with socket.socket(fileno=os.dup(fd)) as each:
                    found += [fd] if each.getpeername()[1:2] == (port,) else []
        except OSError:
            pass  # closed meanwhile, or not connected
    return found


def agent_at(url: str, *tools: Any, model: dict[str, Any] | None = None, **more: Any) -> AgentSpec:
    """An agent of the model that is served there; `model` holds options of its client."""
    options: dict[str, Any] = {"max_retries": 0, "stream_usage": True, "http_client": _unused(), **(model or {})}
    return AgentSpec(model=ChatOpenAI(model="m", base_url=url, api_key=SecretStr("x"), **options), tools=tools, **more)


@cache
def _unused() -> DefaultHttpxClient:
    """The client of sync calls, which the engine makes none of: to make one each time takes long."""
    return DefaultHttpxClient()


class Adder(list[tuple[int, int]]):
    """A tool that adds, and keeps what it was asked to."""

    @property
    def tool(self) -> BaseTool:
        def add(a: int, b: int) -> str:
            """Add."""
            self.append((a, b))
            return str(a + b)

        return StructuredTool.from_function(add)


def shown(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each message of a request; a tool call as its name and arguments."""
    found = []
    for message in request["messages"]:
        found += [(message["role"], message["content"])] if message["content"] is not None else []
        found += [
            (message["role"], f"{call['function']['name']} {call['function']['arguments']}")
            for call in message.get("tool_calls", ())
        ]
    return found


def told_by(request: dict[str, Any]) -> list[str]:
    """The texts of the tool messages of a request."""
    return [text for role, text in shown(request) if role == "tool"]


def answered(messages: Sequence[dict[str, Any]]) -> list[tuple[list[str], list[str]]]:
    """Of each assistant message with tool calls: their ids, and those that the tool messages behind it name."""
    found: list[tuple[list[str], list[str]]] = []
    for message in messages:
        if message.get("tool_calls"):
            found.append(([call["id"] for call in message["tool_calls"]], []))
        elif message["role"] == "tool":
            found[-1][1].append(message["tool_call_id"])
    return found
