"""What the parts of a spec have in common: frozen, no unknown fields, and one error for everything of the wrong shape.

A live value (a model, a tool, a function) is looked at, never copied or called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from langgraph_ext.engine.diagnostics import from_pydantic
from langgraph_ext.errors import SpecInvalid

__all__ = [
    "Count",
    "Flag",
    "Function",
    "Model",
    "Named",
    "OutputSchema",
    "Part",
    "Seconds",
    "Text",
    "Tool",
    "Usd",
]

T = TypeVar("T")


class Part(BaseModel):
    """One part of a spec: immutable, with the fields it declares and no others.

    Raises:
        SpecInvalid: A field is missing, unknown, or of another type. What the values mean is looked at by
            `compile_spec`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    if not TYPE_CHECKING:  # type checkers see the fields

        def __init__(self, /, **given: Any) -> None:
            try:
                super().__init__(**given)
            except ValidationError as error:
                raise SpecInvalid(from_pydantic(error)) from None

    def __deepcopy__(self, memo: object = None) -> Self:
        return self  # nothing of it changes, and what lives in it must not be copied


def _a_model(given: object) -> BaseChatModel | str:
    if isinstance(given, BaseChatModel) or (isinstance(given, str) and given):
        return given
    raise ValueError("a model is a langchain-core chat model, or the name of one")


def _a_tool(given: object) -> BaseTool | Callable[..., Any]:
    if isinstance(given, BaseTool) or (callable(given) and not isinstance(given, type)):
        return given
    raise ValueError("a tool is a langchain-core tool, or a function")


def _a_function(given: object) -> Callable[..., Any]:
    if callable(given):
        return given
    raise ValueError("this is to be a function")


def _a_schema(given: object) -> type[BaseModel] | Mapping[str, Any]:
    if isinstance(given, type) and issubclass(given, BaseModel):
        return given
    if isinstance(given, Mapping):
        return _frozen(deepcopy(dict(given)))
    raise ValueError("an output schema is a pydantic model, or a JSON Schema as a dict")


def _frozen(given: Mapping[str, T]) -> Mapping[str, T]:
    return MappingProxyType(dict(given))


def _as_dict(given: object) -> object:
    return dict(given) if isinstance(given, Mapping) else given


Text = StrictStr
Flag = StrictBool
Count = StrictInt
Seconds = StrictFloat
Usd = StrictFloat
# Each is one validator instead of a union, so that an error names one place and not every branch.
Model = Annotated[BaseChatModel | str, PlainValidator(_a_model)]
Tool = Annotated[BaseTool | Callable[..., Any], PlainValidator(_a_tool)]
Function = Annotated[Callable[..., Any], PlainValidator(_a_function)]
OutputSchema = Annotated[type[BaseModel] | Mapping[str, Any], PlainValidator(_a_schema)]
Named = Annotated[Mapping[StrictStr, T], BeforeValidator(_as_dict), AfterValidator(_frozen)]
"""Parts by name; their order means nothing."""
