"""S6: a strict saver refuses what LangGraph's strict msgpack mode would not read back, before anything is written."""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument
from tests.support.backends import SqliteBackend
from tests.support.build import cid, config
from tests.support.ciphers import KEYS
from tests.support.driver import Driver

HERE = __name__


@dataclasses.dataclass
class Customer:
    name: str
    more: Any = None


class Order(BaseModel):
    customer: Any = None


class Colour(enum.Enum):
    RED = 1


class Opaque:
    """Nothing can store it."""


UNKNOWN = {
    "in a list and a dict": ([1, 2, 3, {"customer": Customer("x")}], "[3].customer", "Customer"),
    "itself": (Customer("x"), "", "Customer"),
    "of pydantic": ({"order": Order()}, ".order", "Order"),
    "an enumeration": ({"a b": (Colour.RED,)}, "['a b'][0]", "Colour"),
    "in another one": (Customer("x", [Colour.RED]), ".more[0]", "Colour"),
    "what cannot be stored": ({"x": [Opaque()]}, ".x[0]", "Opaque"),
}
"""A value, where in it what is unknown stands, and what that is."""

KNOWN = [
    None,
    1,
    "x",
    b"x",
    [{"a": [1, {2}]}],
    HumanMessage("x"),
    [AIMessage("x")],
    Send("n", {"a": 1}),
    Interrupt("x"),
]


@pytest.fixture
def strict(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> Driver:
    return forms(backend.open(strict=True))


@pytest.mark.parametrize("name", UNKNOWN)
def test_s6_an_unknown_type_is_refused_by_name_and_path(strict: Driver, name: str) -> None:
    """By put and by put_writes, with and without a parent that is remembered; nothing is stored."""
    value, where, kind = UNKNOWN[name]
    strict.save(cid(0), {"a": 1}, {"a": 1})

    for attempt in (
        lambda: strict.save(cid(1), {"a": 1, "orders": value}, {"a": 1, "orders": 1}, parent=cid(0)),
        lambda: strict.save(cid(1), {"orders": value}, {"orders": 1}, thread="u"),
        lambda: strict.save(cid(2), {"orders": value}, {"orders": 1}, parent=cid(7), new={}),
        lambda: strict.put_writes(config("t", "", cid(0)), [("a", 1), ("orders", value)], "task"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            attempt()
        assert f"state.orders{where}: type {HERE}.{kind} " in str(refused.value)
        assert (f"state.orders{where}", f"{HERE}.{kind}") == (
            refused.value.details["path"],
            refused.value.details["type"],
        )
    assert [cid(0)] == [each.checkpoint["id"] for each in strict.list(None)]
    assert [] == strict.get_tuple(config("t")).pending_writes  # type: ignore[union-attr]


@pytest.mark.parametrize("value", KNOWN)
def test_s6_what_is_known_is_stored(strict: Driver, value: Any) -> None:
    strict.save(cid(0), {"a": value}, {"a": 1})
    strict.put_writes(config("t", "", cid(0)), [("a", value)], "task")
    found = strict.get_tuple(config("t"))
    assert found is not None
    assert ({"a": value}, [("task", "a", value)]) == (found.checkpoint["channel_values"], found.pending_writes)


def test_s6_types_of_the_serializers_own_list_are_known(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """Those, and no others; so are LangGraph's, which clones a saver to add its graph's."""
    serde = JsonPlusSerializer(allowed_msgpack_modules=[(HERE, "Customer")])
    driver = forms(backend.open(strict=True, serde=serde, encryption=KEYS))
    driver.save(cid(0), {"a": Customer("x")}, {"a": 1})
    with pytest.raises(InvalidArgument, match="Colour"):
        driver.save(cid(1), {"a": Customer("x", Colour.RED)}, {"a": 2}, parent=cid(0))
    clone = driver.saver.with_allowlist([(HERE, "Colour")])
    Driver(clone, driver.form, driver.loop).save(cid(1), {"a": Customer("x", Colour.RED)}, {"a": 2}, parent=cid(0))


def test_s6_a_graph_is_told_what_it_may_not_keep(backend: SqliteBackend) -> None:
    """The run fails at the node that returned it."""

    class State(TypedDict):
        orders: Annotated[list[Any], operator.add]

    builder = StateGraph(State).add_node("n", lambda state: {"orders": [{"customer": Customer("x")}]})
    app = builder.add_edge(START, "n").compile(checkpointer=backend.open(strict=True))
    with pytest.raises(InvalidArgument, match=r"state\.orders\[0\]\.customer: type .*Customer"):
        app.invoke({"orders": []}, config("t"), durability="sync")  # type: ignore[arg-type]


def test_s6_strictness_needs_langgraphs_serializer() -> None:
    class Other:
        def dumps_typed(self, value: Any) -> Any: ...
        def loads_typed(self, data: Any) -> Any: ...

    with pytest.raises(InvalidArgument, match="JsonPlusSerializer"):
        LedgerSaver(":memory:", serde=Other(), strict=True)
