"""Strict: what LangGraph's strict msgpack mode would not read back is refused when it is written.

In that mode LangGraph reads a type that nobody allowed as the plain values it is made of: a dataclass comes back as a
dict, and whoever asks for its fields fails, far from where it was put. Allowed are LangGraph's safe types and those of
the serializer's own list (`JsonPlusSerializer(allowed_msgpack_modules=[…])`), which LangGraph fills from the graph's
schemas when LANGGRAPH_STRICT_MSGPACK is set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_NUMPY_ARRAY, JsonPlusSerializer

from langgraph_ext.errors import InvalidArgument

__all__ = ["check_strict", "strictly"]

Name = tuple[str, str]
"""Module and name of a type."""

_DEEPEST = 100


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
        The encoder. It raises `InvalidArgument` for a type that is not allowed, or cannot be encoded at all.
    """
    assert isinstance(serde, JsonPlusSerializer), "a strict saver has checked that"
    held = list(named)

    def dumps(value: Any) -> tuple[str, bytes]:
        try:
            kind, data = serde.dumps_typed(value)
        except Exception as error:
            where, part = _smallest(serde, value)
            raise _refused(
                method, _channel(held, value) + where, _name_of(part), f"cannot be stored ({error})"
            ) from error
        if kind == "msgpack" and (unknown := _unknown_in(data, _allowed(serde))):
            for name in unknown:
                where = next((path for path, part in _parts(value) if _name_of(part) == name), "")
                raise _refused(method, _channel(held, value) + where, name, "is not among those that are read back")
        return kind, data

    return dumps


def _refused(method: str, path: str, name: Name, why: str) -> InvalidArgument:
    return InvalidArgument(
        f"{method}: state.{path}: type {'.'.join(name)} {why}; allow it: JsonPlusSerializer(allowed_msgpack_modules="
        f"[{name!r}]), or store plain values",
        details={"path": f"state.{path}", "type": ".".join(name)},
    )


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


def _parts(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A value and all that it is made of, each with where in it that stands."""
    yield path, value
    for where, part in _children(value) if depth < _DEEPEST else ():
        yield from _parts(part, path + where, depth + 1)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield (f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]"), part
            if not isinstance(key, str | int):
                yield f"[{key!r}] (the key)", key
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"[{at}]", part) for at, part in enumerate(value))
    elif dataclasses.is_dataclass(value):
        yield from ((f".{each.name}", getattr(value, each.name)) for each in dataclasses.fields(value))
    elif hasattr(value, "model_dump") or hasattr(value, "_asdict"):
        fields = value._asdict() if hasattr(value, "_asdict") else vars(value)
        yield from ((f".{name}", part) for name, part in fields.items())
    elif hasattr(value, "value") and type(value).__name__ == "_DeltaSnapshot":
        yield "", value.value


def _smallest(serde: JsonPlusSerializer, value: Any, path: str = "", depth: int = 0) -> tuple[str, Any]:
    """The innermost part that cannot be encoded, and where it stands."""
    for where, part in _children(value) if depth < _DEEPEST else ():
        try:
            serde.dumps_typed(part)
        except Exception:  # noqa: BLE001 - whatever the serializer says of it
            return _smallest(serde, part, path + where, depth + 1)
    return path, value
