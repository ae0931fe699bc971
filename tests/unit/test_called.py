"""What tells one durable call from another: the same in every process, and another for other arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from langgraph_ext.nodes.called import called_with, own


def act(*args: Any, **kwargs: Any) -> None:
    """What is called."""


def calls(*args: Any, kind: str | None = None, **kwargs: Any) -> Any:
    return called_with(act, kind, args, kwargs)


def runtime(call: str) -> Any:
    given: dict[str, Any] = {"state": {}, "config": {}, "stream_writer": print, "store": None, "context": None}
    if "tools" in ToolRuntime.__dataclass_fields__:
        given["tools"] = []
    return ToolRuntime(tool_call_id=call, **given)


class Opaque:
    """What no serializer knows."""


def test_a_call_is_known_again_by_its_arguments() -> None:
    """Whatever JSON holds, and what LangGraph's serializer encodes."""
    for value in (1, "a", {"b": [None]}, AIMessage("hello", id="1"), b"bytes"):
        assert (calls(value), calls(word=value)) == (calls(value), calls(word=value))
        assert calls(value).exact
    told = [calls(1), calls("1"), calls(1, 1), calls(word=1), calls(1, kind="k"), calls(AIMessage("a", id="1"))]

    assert len(told) == len({(each.function, each.arguments) for each in told})


@dataclass
class Basket:
    """Holds a set at some depth."""

    items: Any


class Order(BaseModel):
    """Likewise."""

    items: set[int]


def test_the_order_of_a_set_tells_nothing() -> None:
    """It differs between processes; so it does between these two, of numbers that fall into one place of a table."""
    one, other = (set(each) for each in ([0, 8, 16], [16, 8, 0]))
    assert list(one) != list(other)
    for hold in (set, frozenset, Basket, lambda held: Order(items=held), lambda held: {"a": [(1, held)]}):
        assert calls(hold(one)) == calls(hold(other))
        assert calls(hold(one)).exact
        assert calls(hold(one)) != calls(hold(one | {1}))
    assert calls({frozenset(one), frozenset({1})}) == calls({frozenset({1}), frozenset(other)})
    assert 4 == len({calls(each).arguments for each in ({1, 2}, frozenset({1, 2}), [1, 2], {"1", "2"})})


def test_what_is_injected_tells_nothing_but_the_tool_call() -> None:
    """Stores, runtimes and configs are those of the whole task; ToolNode's runtime names the call."""
    for injected in (Runtime(), InMemoryStore(), {"configurable": {"thread_id": "t"}, "callbacks": None}):
        assert calls(1, injected).exact
    assert calls(1, Runtime()) == calls(1, Runtime(context=2))
    assert calls(runtime("a")) == calls(runtime("a"))
    assert calls(runtime("a")) != calls(runtime("b"))


@pytest.mark.parametrize("value", [Opaque(), [Opaque()], print])
def test_what_cannot_be_encoded_is_told_by_its_type(value: Any) -> None:
    assert not calls(value).exact
    assert calls(value) == calls(value)
    assert calls(Opaque()) != calls(print)


def test_a_tasks_own_function_has_no_arguments() -> None:
    assert (own(act, None).is_own, calls().is_own) == (True, False)
    assert f"{__name__}.act (worker)" == own(act, "worker").function
