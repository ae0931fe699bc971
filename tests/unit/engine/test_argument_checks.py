"""Arguments of tools: what langchain-core would not take is found before anything is called."""

from __future__ import annotations

import copy
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId, StructuredTool, Tool, tool
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import Field as FieldV1

from langgraph_ext import canonical
from langgraph_ext.engine.argument_checks import argument_fault, without_injected
from langgraph_ext.engine.injected import InjectedIdempotencyKey

CALLED: list[Any] = []


@tool
def refund(
    order: int,
    key: Annotated[str, InjectedIdempotencyKey],
    call: Annotated[str, InjectedToolCallId],
    user: Annotated[dict[str, Any], InjectedToolArg],
    config: RunnableConfig,
    note: str | None = None,
) -> str:
    """Pay an order back."""
    CALLED.append(order)
    return "done"


class Transfer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    amount: int = Field(gt=0)
    key: Annotated[str, InjectedToolArg]
    to: list[str] = Field(default_factory=list)


class TransferV1(BaseModelV1):
    amount: int = FieldV1(gt=0)
    key: Annotated[str, InjectedToolArg]


def paid(**given: Any) -> str:
    CALLED.append(given)
    return "done"


class Lookup(BaseTool):
    name: str = "lookup"
    description: str = "Look something up."

    def _run(self, word: str, config: RunnableConfig, key: Annotated[str, InjectedToolArg], many: int = 1) -> str:
        CALLED.append(word)
        return word


BY_DICT = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "minimum": 1}},
    "required": ["amount", "key"],
    "additionalProperties": False,
}

INJECTED: dict[str, frozenset[str]] = {"refund": frozenset({"key", "call", "user"})}
TOOLS: dict[str, BaseTool] = {
    "function": refund,
    "model": StructuredTool.from_function(paid, name="pay", description="Pay.", args_schema=Transfer),
    "model of v1": StructuredTool.from_function(paid, name="pay", description="Pay.", args_schema=TransferV1),
    "schema": StructuredTool.from_function(paid, name="pay", description="Pay.", args_schema=BY_DICT),
    "class": Lookup(),
    "single": Tool(name="echo", description="Echo.", func=paid),
}


def fault(kind: str, args: Any) -> str | None:
    made = TOOLS[kind]
    return argument_fault(made, args, INJECTED.get(made.name, frozenset({"key"})))


FITS: list[tuple[str, Any]] = [
    ("function", {"order": 1}),
    ("function", {"order": "1", "note": None, "unknown": 1}),
    ("function", {"order": 1, "key": 5, "user": None, "call": [], "config": "x"}),
    ("model", {"amount": "5", "to": ["a"]}),
    ("model", {"amount": 5, "key": None}),
    ("model of v1", {"amount": "5", "key": []}),
    ("schema", {"amount": 5}),
    ("schema", {"amount": 5.0, "key": None}),
    ("class", {"word": "a"}),
    ("class", {"word": "a", "config": 3, "key": 4, "many": "5"}),
    ("single", {"__arg1": "a"}),
]


@pytest.mark.parametrize(("kind", "args"), FITS)
def test_e15_what_langchain_takes_fits(kind: str, args: Any) -> None:
    """Coercions of pydantic count, and injected arguments are neither judged nor wanted."""
    assert None is fault(kind, args)


INTEGER = "Input should be a valid integer"
TEXT = "Input should be a valid string"
LARGE = "it is of type int, which JSON cannot hold (Integer exceeds 64-bit range)"
UNFIT: list[tuple[str, Any, list[str]]] = [
    ("function", {}, ["/order: Field required"]),
    ("function", {"order": [], "note": 1}, [f"/note: {TEXT}", f"/order: {INTEGER}"]),
    ("model", {"amount": 0, "to": [1]}, ["/amount: Input should be greater than 0", f"/to/0: {TEXT}"]),
    ("model", {"amount": 1, "x": "secret"}, ["/x: Extra inputs are not permitted"]),
    ("model of v1", {"amount": "x"}, ["/amount: value is not a valid integer"]),
    ("model of v1", {}, ["/amount: field required"]),
    ("schema", {"amount": "5"}, ['/amount: must be of type "integer"']),
    ("schema", {"amount": 0}, ["/amount: must fit minimum 1"]),
    ("schema", {"amount": 1, "x": 1}, ["the arguments: Additional properties are not allowed ('x' was unexpected)"]),
    ("class", {"many": []}, [f"/many: {INTEGER}", "/word: Field required"]),
    ("single", {}, ["the arguments: must be exactly one"]),
    ("single", {"a": 1, "b": 2}, ["the arguments: must be exactly one"]),
    ("function", None, ["the arguments: must be an object, which holds them by name"]),
    ("schema", "{}", ["the arguments: must be an object, which holds them by name"]),
    ("schema", {"amount": -(2**64)}, [f"/amount: {LARGE}"]),
    ("schema", {"\ud800": float("inf")}, ["/?: it is inf, which JSON cannot hold"]),
    ("model", {"amount": 1, "to": [float("nan")]}, ["/to/0: it is nan, which JSON cannot hold"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "args", "expected"), UNFIT)
def test_e15_what_does_not_fit_is_told_by_its_place(kind: str, args: Any, expected: list[str]) -> None:
    """Sorted by pointer, without the values."""
    head, *lines = str(fault(kind, args)).splitlines()
    assert f"{TOOLS[kind].name!r} was not called, because its arguments do not fit:" == head
    assert [f"- {each}" for each in expected] == [line.partition(", unable")[0] for line in lines]


@pytest.mark.parametrize(("kind", "args"), [(kind, args) for kind, args in FITS if kind.startswith("model")])
def test_e15_a_call_of_what_fits_is_made(kind: str, args: Any) -> None:
    """With what is injected, langchain-core comes to the same verdict."""
    assert "done" == TOOLS[kind].invoke(args | {"key": "k"})


@pytest.mark.parametrize(("kind", "args"), [(kind, args) for kind, args, _ in UNFIT if kind.startswith("model")])
def test_e15_langchain_refuses_what_does_not_fit(kind: str, args: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        TOOLS[kind].invoke(args | {"key": "k"})


def test_e15_at_most_twenty_faults_of_512_characters_are_told() -> None:
    many = StructuredTool.from_function(paid, name="many", description="Many.", args_schema=Transfer)

    _, *lines = str(argument_fault(many, {f"{n:02}" + "x" * 600: n for n in range(30)}, {"key"})).splitlines()

    assert (20, {514}) == (len(lines), {len(line) for line in lines})
    assert [f"- /{n:02}" for n in range(20)] == [line[:5] for line in lines]


class Either(BaseModel):
    a: int | None = None
    b: int | None = None
    key: Annotated[str, InjectedToolArg] = ""

    @model_validator(mode="after")
    def one(self) -> Either:
        if (self.a is None) == (self.b is None):
            raise ValueError("give a or b")
        return self


class Asking(Either):
    key: Annotated[str, InjectedToolArg]


class Breaking(BaseModel):
    a: int
    key: Annotated[str, InjectedToolArg]

    @model_validator(mode="before")
    @classmethod
    def look(cls, data: dict[str, Any]) -> dict[str, Any]:
        data["to"].append(data["key"])
        return data


def by(schema: Any) -> BaseTool:
    return StructuredTool.from_function(paid, name="pay", description="Pay.", args_schema=schema)


def test_e15_validators_of_the_whole_model_are_asked() -> None:
    assert "the arguments: Value error, give a or b" in str(argument_fault(by(Either), {"key": "x"}, {"key"}))
    assert None is argument_fault(by(Either), {"a": 1}, {"key"})


def test_e15_what_depends_on_injected_arguments_is_left_to_the_call() -> None:
    """They are not known here: a validator that wants them says nothing, or breaks."""
    assert None is argument_fault(by(Asking), {}, {"key"})
    with pytest.raises(ValidationError):
        by(Asking).invoke({"key": "k"})
    assert None is argument_fault(by(Breaking), {"a": "x"}, {"key"})


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    a: int = Field(alias="A")
    user: Annotated[str, InjectedToolArg] = Field(alias="userId")
    team: Annotated[str, InjectedToolArg] = Field(validation_alias=AliasChoices("teamId", AliasPath("ids", 0)))


class AliasedV1(BaseModelV1):
    a: int = FieldV1(alias="A")
    user: Annotated[str, InjectedToolArg] = FieldV1(alias="userId")


@pytest.mark.parametrize("given", [{"userId": "root"}, {"teamId": 1}, {"ids": ["root"]}])
def test_e15_a_model_does_not_reach_an_injected_argument_by_its_alias(given: dict[str, Any]) -> None:
    assert None is argument_fault(by(Aliased), {"A": 1, "user": "x"}, {"user", "team"})
    assert "is filled in by the program" in str(argument_fault(by(Aliased), {"A": 1} | given, {"user", "team"}))
    assert "/A: Field required" in str(argument_fault(by(Aliased), {}, {"user", "team"}))


def test_e15_aliases_of_v1() -> None:
    assert None is argument_fault(by(AliasedV1), {"A": 1, "user": 1}, {"user"})
    assert "/userId: is filled in by the program" in str(argument_fault(by(AliasedV1), {"userId": 1}, {"user"}))


def test_e15_a_schema_that_requires_nothing() -> None:
    assert None is argument_fault(by({"properties": {"a": {"type": "integer"}}}), {"b": "x"}, ())


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


def test_e15_a_tool_without_arguments_is_called_without_any() -> None:
    """As langchain-core does, whatever a model has given."""
    assert None is argument_fault(by(Nothing), {"x": 1}, ())
    assert "done" == by(Nothing).invoke({"x": 1})


def test_e15_of_a_union_only_places_in_the_arguments_are_told() -> None:
    @tool
    def either(value: list[int] | dict[str, int]) -> str:
        """Take either."""
        return "done"

    told = str(argument_fault(either, {"value": {"x": "y"}}, ()))
    assert ["- /value", "- /value/x"] == sorted({line.partition(": ")[0] for line in told.splitlines()[1:]})


@pytest.mark.parametrize("kind", TOOLS)
def test_e15_no_tool_is_called_and_no_argument_changed(kind: str) -> None:
    CALLED.clear()
    args = {"amount": "5", "order": "1", "word": "a", "to": ["x"], "key": {"a": []}}
    before = copy.deepcopy(args)

    fault(kind, args)
    argument_fault(by(Breaking), args, ())

    assert ([], before) == (CALLED, args)


names = st.sampled_from(["amount", "order", "key", "word", "to", "user", "config", "many", "args", "kwargs", "self"])
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda part: st.lists(part, max_size=4) | st.dictionaries(names | st.text(), part, max_size=6),
)


@given(args=st.dictionaries(names | st.text(), any_json, max_size=8) | any_json)
def test_e15_no_arguments_break_the_check(args: Any) -> None:
    """Whatever a model gives, it is told within the bounds, the same each time, and as text that can be stored."""
    for kind in TOOLS:
        told = fault(kind, args)
        assert told == fault(kind, args)
        if told is not None:
            canonical.encode(told)
            _, *lines = told.split("\n- ")
            assert 1 <= len(lines) <= 20
            assert all(len(line) <= 512 for line in lines)


def test_e15_what_a_model_supplies_for_injected_arguments_is_dropped() -> None:
    args = {"order": 1, "key": "mine", "user": {}}

    assert {"order": 1} == without_injected(args, {"key", "user", "call"})
    assert {"order": 1, "key": "mine", "user": {}} == args
