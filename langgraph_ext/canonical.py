"""Canonical JSON and digests: one value, one text.

UTF-8, keys sorted by code point, no insignificant space, no NaN or Infinity, integers exact (64 bits). Subclasses of
str and float (enumerations among them) and UUIDs are written as the text or number they are. All else is refused, with
the path of the offending part.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import orjson

__all__ = ["decode", "digest", "encode", "encode_exact", "encode_plain"]

_NOT_SILENTLY = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def encode(value: Any, *, where: str = "value") -> bytes:
    """Write `value` as canonical JSON.

    Args:
        value: None, bool, int (64 bits), finite float, str, or lists, tuples and str-keyed dicts of those.
        where: Name of the value, the beginning of the path in an error.

    Raises:
        TypeError: Some part is not JSON; the message holds its path.
    """
    return encode_plain(value, where=where, options=orjson.OPT_SORT_KEYS | _NOT_SILENTLY)


def encode_plain(value: Any, *, where: str = "value", options: int = _NOT_SILENTLY) -> bytes:
    """As `encode`, with keys in the order they have: for values whose order is worth keeping."""
    try:
        data = orjson.dumps(value, option=options)
    except TypeError:
        data = _encode_plainly(value, where, options)
    # orjson writes NaN and Infinity as null; a walk is needed only where a null was written.
    if b"null" in data and _is_lossy(value):
        raise TypeError(_culprit(value, where, _DEEPEST))
    return data


def encode_exact(value: Any, *, where: str = "value") -> bytes:
    """As `encode_plain`, for values that hold no float but finite ones: one check less."""
    try:
        return orjson.dumps(value, option=_NOT_SILENTLY)
    except TypeError:
        return _encode_plainly(value, where, _NOT_SILENTLY)


def decode(data: bytes) -> Any:
    """Read JSON."""
    return orjson.loads(data)


def digest(data: bytes) -> str:
    """SHA-256 of `data` as `sha256:<64 hex digits>`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _encode_plainly(value: Any, where: str, options: int) -> bytes:
    """A second try, without subclasses that orjson does not know (keys that are an enumeration's, numpy's floats)."""
    try:
        return orjson.dumps(_plain(value, _DEEPEST), option=options)
    except TypeError as error:
        raise TypeError(_culprit(value, where, _DEEPEST) or f"{where} is not JSON: {error}") from None


def _plain(value: Any, depth: int) -> Any:
    """The same value with str and float instead of their subclasses."""
    if depth == 0:
        return value
    if isinstance(value, dict):
        return {
            str.__str__(key) if isinstance(key, str) else key: _plain(part, depth - 1) for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(part, depth - 1) for part in value]
    return float(value) if isinstance(value, float) else value


_DEEPEST = 254
"""Levels of nesting that orjson writes."""


def _is_lossy(value: Any) -> bool:
    """Whether something in a value that orjson has written is a float that is none in JSON."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, dict):
        return any(map(_is_lossy, value.values()))
    return isinstance(value, list | tuple) and any(map(_is_lossy, value))


def _culprit(value: Any, path: str, depth: int) -> str | None:
    """The first part of `value` that is not JSON, as a sentence, or None."""
    if depth == 0:
        return f"{path[:80]}… is nested deeper than {_DEEPEST} levels, or holds itself"
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                return f"{path} has the key {key!r}, which is not text"
            if found := _culprit(part, f"{path}.{key}", depth - 1):
                return found
        return None
    if isinstance(value, list | tuple):
        return next(filter(None, (_culprit(part, f"{path}[{at}]", depth - 1) for at, part in enumerate(value))), None)
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{path} is {value!r}, which JSON cannot hold"
    try:
        orjson.dumps(value, option=_NOT_SILENTLY)
    except TypeError as error:
        return f"{path} is of type {type(value).__name__}, which JSON cannot hold ({error})"
    return None
