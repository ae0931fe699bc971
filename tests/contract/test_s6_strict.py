"""S6: a strict saver refuses what LangGraph's strict msgpack mode would not read back, before anything is written."""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph import START, StateGraph
from langgraph.store.base import Item
from langgraph.types import Command, Interrupt, Overwrite, Send
from pydantic import BaseModel

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument
from tests.support.backends import SqliteBackend
from tests.support.build import cid, config
from tests.support.ciphers import KEYS
from tests.support.driver import Driver

HERE = __name__

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@dataclasses.dataclass
class Customer:
    name: str
    more: Any = None


class Colour(enum.Enum):
    RED = 1


class Word(enum.StrEnum):
    YES = "yes"


class Order(BaseModel):
    customer: Any = None


class Bill(BaseModel):
    """What it holds is declared, and is made anew when it is read."""

    customer: Customer | None = None
    colours: dict[Colour, int] = {}


class Point(NamedTuple):
    x: Any


@dataclasses.dataclass(frozen=True)
class Place:
    name: str


def function() -> None:
    """Nothing can store it either."""


class Opaque:
    """Nothing can store it."""


ITEM = Item(value={"x": Customer("x")}, key="k", namespace=(), created_at=NOW, updated_at=NOW)

UNKNOWN = {
    "in a list and a dict": ([1, 2, 3, {"customer": Customer("x")}], "[3].customer", "Customer"),
    "itself": (Customer("x"), "", "Customer"),
    "of pydantic": ({"order": Order()}, ".order", "Order"),
    "an enumeration": ({"a b": (Colour.RED,)}, "['a b'][0]", "Colour"),
    "in another one": (Customer("x", [Colour.RED]), ".more[0]", "Colour"),
    "what cannot be stored": ({"x": [Opaque()]}, ".x[0]", "Opaque"),
    "what cannot be stored, sent": (Send("n", [Opaque()]), ".arg[0]", "Opaque"),
    "what cannot be stored as a key": ([{Place("x"): 1}], f"[0][{Place('x')!r}] (the key)", "Place"),
    "sent": ([Send("n", {"customer": Customer("x")})], "[0].arg.customer", "Customer"),
    "asked": (Interrupt({"customer": Customer("x")}), ".value.customer", "Customer"),
    "in a command": (Command(update={"customer": Customer("x")}), ".update.customer", "Customer"),
    "in what overwrites": (Overwrite([Customer("x")]), ".value[0]", "Customer"),
    "in an item of a store": (ITEM, ".value.x", "Customer"),
    "in a deque": (deque([1, Customer("x")]), "[1]", "Customer"),
    "in a set": ({Place("x")}, "[0]", "Place"),
    "in a frozen set": (frozenset({Place("x")}), "[0]", "Place"),
    "in a snapshot": (_DeltaSnapshot([Customer("x")]), "[0]", "Customer"),
    "a named tuple": ([Point(1)], "[0]", "Point"),
    "an enumeration in a message": (
        AIMessage("x", additional_kwargs={"x": Colour.RED}),
        ".additional_kwargs.x",
        "Colour",
    ),
    "an artifact": ([ToolMessage("x", tool_call_id="1", artifact=Customer("x"))], "[0].artifact", "Customer"),
    "in an artifact": (ToolMessage("x", tool_call_id="1", artifact=[{"x": Point(1)}]), ".artifact[0].x", "Point"),
    "a model in an artifact": (ToolMessage("x", tool_call_id="1", artifact=Order()), ".artifact", "Order"),
    "a key in an artifact": (
        ToolMessage("x", tool_call_id="1", artifact={Word.YES: 1}),
        ".artifact[<Word.YES: 'yes'>] (the key)",
        "Word",
    ),
    "a key": ([{"x": {Colour.RED: 1}}], "[0].x[<Colour.RED: 1>] (the key)", "Colour"),
    "a key that is text": ({Word.YES: 1}, "[<Word.YES: 'yes'>] (the key)", "Word"),
    "in a key": ({(1, Colour.RED): 1}, "[(1, <Colour.RED: 1>)] (the key)[1]", "Colour"),
}
"""A value, where in it what is unknown stands, and what that is."""

ADVICE = {
    "a class": ([Customer], r"state\.a\[0\]: type builtins\.type .*store the name of a class or function"),
    "a class without fields": ({"x": Opaque}, r"state\.a\.x: type builtins\.type .*store the name of a class"),
    "a function": ({"x": function}, r"state\.a\.x: type builtins\.function .*store the name of a class or function"),
    "what cannot be stored": (Opaque(), r"cannot be stored .*store plain values, or make it a dataclass"),
    "a key": ({Colour.RED: 1}, r"is not read back as the key of a dict; use its value as the key"),
    "a key that is a time": ({NOW: 1}, r"type datetime\.datetime is not read back as the key of a dict"),
    "an artifact": (ToolMessage("x", tool_call_id="1", artifact=Customer("x")), r"pydantic model; declare the model's"),
    "another one": (Customer("x"), r"allow it: JsonPlusSerializer"),
}
"""A value, and what the error says of it."""

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
    {1: {2.5: {None: {True: {b"x": {("a", 1): 1}}}}}},
    ToolMessage("x", tool_call_id="1", artifact={"a": [1, {"b": NOW, "c": {UUID(int=1)}}]}),
    deque([Send("n", AIMessage("x"))]),
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


def test_s6_what_a_model_declares_is_known(backend: SqliteBackend, forms: Callable[[Any], Driver]) -> None:
    """It reads its own dump back; what it holds undeclared it does not, though its type is allowed."""
    allowed = [(HERE, name) for name in ("Bill", "Order", "Customer", "Colour")]
    driver = forms(backend.open(strict=True, serde=JsonPlusSerializer(allowed_msgpack_modules=allowed)))
    bill = Bill(customer=Customer("x"), colours={Colour.RED: 1})
    driver.save(cid(0), {"a": [bill]}, {"a": 1})
    assert [bill] == driver.read().checkpoint["channel_values"]["a"]
    with pytest.raises(InvalidArgument, match=r"state\.a\.customer: type .*Bill is not read back from inside"):
        driver.save(cid(1), {"a": Order(customer=bill)}, {"a": 2}, parent=cid(0))


@pytest.mark.parametrize("name", ADVICE)
def test_s6_who_is_refused_is_told_what_helps(strict: Driver, name: str) -> None:
    value, says = ADVICE[name]
    with pytest.raises(InvalidArgument, match=says):
        strict.save(cid(0), {"a": value}, {"a": 1})


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
