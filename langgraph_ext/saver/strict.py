"""Strict: what LangGraph's strict msgpack mode would not read back is refused when it is written.

In that mode LangGraph reads a type that nobody allowed as the plain values it is made of: a dataclass comes back as a
dict, and whoever asks for its fields fails, far from where it was put. Allowed are LangGraph's safe types and those of
the serializer's own list (`JsonPlusSerializer(allowed_msgpack_modules=[…])`), which LangGraph fills from the graph's
schemas when LANGGRAPH_STRICT_MSGPACK is set.

An encoding names types, but not in two places: keys of dicts, and what a pydantic model holds, as that dumps itself. A
value with anything special there is read back, and compared.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY, JsonPlusSerializer
from langgraph.checkpoint.serde.types import SendProtocol, _DeltaSnapshot

from langgraph_ext.errors import InvalidArgument

__all__ = ["check_strict", "strictly"]

Name = tuple[str, str]
"""Module and name of a type."""

_DEEPEST = 100

_PLAIN = frozenset({str, int, float, bool, bytes, bytearray, type(None)})

_NATIVE = (str, int, float, bytes, bytearray, memoryview, dict, list, tuple, type(None), BaseException)
"""What is stored without its type: LangGraph reads a tuple as a list, and an exception as its text, in any mode."""


def check_strict(serde: object) -> None:
    """Strictness is known of LangGraph's serializer alone.

    Raises:
        InvalidArgument: It is another one.
    """
    if not isinstance(serde, JsonPlusSerializer):
        raise InvalidArgument(
            f"strict=True needs LangGraph's JsonPlusSerializer, and serde is a {type(serde).__name__}; leave one out"
        )


def strictly(
    serde: SerializerProtocol, named: Iterable[tuple[str, Any]], method: str
) -> Callable[[Any], tuple[str, bytes]]:
    """As the serializer's `dumps_typed`, but for unknown types.

    Args:
        serde: The saver's.
        named: The values that will be encoded, each with its channel, for messages.
        method: Whose they are, for messages.

    Returns:
        The encoder. It raises `InvalidArgument` for a type that is not allowed, that would be read back as another one,
        or that cannot be encoded at all.
    """
    assert isinstance(serde, JsonPlusSerializer), "a strict saver has checked that"
    held = list(named)

    def refused(value: Any, found: _Part, why: str, advice: str, name: Name | None = None) -> InvalidArgument:
        named = ".".join(name or _name_of(found.value))
        path = f"state.{_channel(held, value)}{found.path}"
        if isinstance(found.value, type) or inspect.isroutine(found.value):
            advice = "store the name of a class or function, and look it up where it is needed"
        return InvalidArgument(f"{method}: {path}: type {named} {why}; {advice}", details={"path": path, "type": named})

    def dumps(value: Any) -> tuple[str, bytes]:
        try:
            kind, data = serde.dumps_typed(value)
        except Exception as error:
            part = _smallest(serde, _Part("", value))
            raise refused(value, part, f"cannot be stored ({error})", _PLAIN_VALUES) from error
        if kind != "msgpack":
            return kind, data
        for name in _unknown_in(data, _allowed(serde)):
            part = next((part for part in _parts(_Part("", value)) if _name_of(part.value) == name), _Part("", None))
            allow = f"allow it: JsonPlusSerializer(allowed_msgpack_modules=[{name!r}]), or store plain values"
            raise refused(value, part, "is not among those that are read back", allow, name)
        if _may_change(value) and (lost := _changed(_Part("", value), serde.loads_typed((kind, data)))) is not None:
            if lost.is_key:
                raise refused(value, lost, "is not read back as the key of a dict", "use its value as the key")
            raise refused(value, lost, "is not read back from inside a pydantic model", _DECLARE)
        return kind, data

    return dumps


_PLAIN_VALUES = "store plain values, or make it a dataclass or a pydantic model, and allow that"

_DECLARE = "declare the model's field with this type, or store plain values"


def _channel(held: list[tuple[str, Any]], value: Any) -> str:
    return next((channel for channel, each in held if each is value), "?")


def _allowed(serde: JsonPlusSerializer) -> frozenset[tuple[str, ...]]:
    own: Any = serde._allowed_msgpack_modules
    return SAFE_MSGPACK_TYPES | frozenset(own) if isinstance(own, set | frozenset) else SAFE_MSGPACK_TYPES


def _unknown_in(data: bytes, allowed: frozenset[tuple[str, ...]]) -> list[Name]:
    """The types that an encoding names and that are not allowed."""
    unknown: list[Name] = []

    def hook(code: int, inner: bytes) -> None:
        held = ormsgpack.unpackb(inner, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)
        if code not in (EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY) and tuple(held[:2]) not in allowed:
            unknown.append((held[0], held[1]))

    ormsgpack.unpackb(data, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)
    return unknown


def _name_of(part: Any) -> Name:
    return type(part).__module__, type(part).__name__


# -- what a value is made of, as LangGraph's serializer sees it


class _Part(NamedTuple):
    path: str
    """Where in a channel's value it stands."""
    value: Any
    is_key: bool = False
    """Whether it is the key of a dict there."""


def _parts(part: _Part, depth: int = 0) -> Iterator[_Part]:
    """A part and all that it is made of."""
    yield part
    for each in _children(part) if depth < _DEEPEST else ():
        yield from _parts(each, depth + 1)


def _children(part: _Part) -> Iterator[_Part]:
    """What a part is made of, in the serializer's own order of asking what it is."""
    path, value, _ = part
    if isinstance(value, type):
        return
    if isinstance(value, dict):
        for key, held in value.items():
            where = f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"
            if type(key) not in _PLAIN:
                yield _Part(f"{path}[{key!r}] (the key)", key, is_key=True)
            yield _Part(path + where, held)
    elif isinstance(value, _DeltaSnapshot):
        yield _Part(path, value.value)
    elif (fields := _fields(value)) is not None:
        yield from (_Part(f"{path}.{name}", held) for name, held in fields.items())
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from (_Part(f"{path}[{at}]", held) for at, held in enumerate(value))


def _fields(value: Any) -> dict[str, Any] | None:
    """The fields of what has some."""
    if _is_model(value):
        own = value.__dict__ if hasattr(value, "__dict__") else value.dict()  # such as an Item of a store
        return {**own, **(getattr(value, "__pydantic_extra__", None) or {})}
    if callable(getattr(value, "_asdict", None)):
        return dict(value._asdict())
    if isinstance(value, Enum):
        return {"value": value.value}
    if isinstance(value, SendProtocol):
        return {name: getattr(value, name, None) for name in ("node", "arg", "timeout")}
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return None


def _is_model(value: Any) -> bool:
    """Whether it dumps itself, such as a pydantic model, of version 2 or 1."""
    return not isinstance(value, type) and any(callable(getattr(value, name, None)) for name in ("model_dump", "dict"))


def _smallest(serde: JsonPlusSerializer, part: _Part, depth: int = 0) -> _Part:
    """The innermost part that cannot be encoded."""
    for each in _children(part) if depth < _DEEPEST else ():
        try:
            serde.dumps_typed({each.value: None} if each.is_key else each.value)
        except Exception:  # noqa: BLE001 - whatever the serializer says of it
            return each if each.is_key else _smallest(serde, each, depth + 1)
    return part


# -- what its encoding does not tell


def _may_change(value: Any) -> bool:
    """Whether anything stands where an encoding names no types, and is not plain."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            if not _PLAIN.issuperset(map(type, each)):
                return True
            left += [held for held in each.values() if type(held) not in _PLAIN]
        elif type(each) is list:
            left += [held for held in each if type(held) not in _PLAIN]
        elif _is_model(each):
            if not _is_plain(_fields(each)):
                return True
        else:
            left += [child.value for child in _children(_Part("", each))]
    return False


def _is_plain(value: Any) -> bool:
    if type(value) is dict:
        return _PLAIN.issuperset(map(type, value)) and _is_plain(list(value.values()))
    if type(value) in (list, tuple):
        return all(type(held) in _PLAIN or _is_plain(held) for held in value)
    return type(value) in _PLAIN


def _changed(part: _Part, read: Any, depth: int = 0) -> _Part | None:
    """The first part that was not read back as what it was."""
    value = part.value
    if depth == _DEEPEST:
        return None
    if _is_of_a_type(value) and type(value) is not type(read):
        return part
    if isinstance(value, set | frozenset):
        return None  # read in another order; what is in it is named
    if isinstance(value, dict) and isinstance(read, dict):
        for key, other in zip(value, read, strict=False):
            if (lost := _changed(_Part(f"{part.path}[{key!r}] (the key)", key), other, depth + 1)) is not None:
                return lost._replace(is_key=True)
    found = {each.path: each.value for each in _children(_Part(part.path, read)) if not each.is_key}
    inner = (each for each in _children(part) if not each.is_key and each.path in found)
    return next(filter(None, (_changed(each, found[each.path], depth + 1) for each in inner)), None)


def _is_of_a_type(value: Any) -> bool:
    """Whether its type is stored with it, or should be."""
    return isinstance(value, Enum) or hasattr(value, "_asdict") or not isinstance(value, _NATIVE)
