"""Models in a descriptor: what makes one another model, without secrets, the same in every process."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from langchain_core.language_models import BaseChatModel
from pydantic import SecretBytes, SecretStr

from langgraph_ext import canonical

__all__ = ["identity_of", "without_secrets"]

_SECRET = re.compile(
    r"(^|[_-])(api_?key|key|secret|password|passwd|token|credentials?|authorization|auth|headers?|cookies?)$", re.I
)
"""Names of parameters whose values are left out: `openai_api_key`, not `max_tokens`."""

_TOLD = ("model_name", "temperature", "max_tokens", "stop")

_LEFT_OUT = object()


def identity_of(model: BaseChatModel | str) -> dict[str, Any]:
    """What a descriptor says of a model.

    A name stands for itself. Of a chat model: its class, its type, and its parameters as langchain-core tells them for
    tracing (`_identifying_params`, and the few of `_get_ls_params` that change its answers). Left out are secrets, by
    type, by name and by value, and objects that are no plain values. The class is named without its module, which
    differs between a program and the worker that imports it.
    """
    if isinstance(model, str):
        return {"name": model}
    traced = model._get_ls_params()
    told = {name: value for name in _TOLD if (value := traced.get(f"ls_{name}")) is not None}
    secrets = _secrets_of(model)
    return {
        "class": type(model).__qualname__,
        "type": model._llm_type,
        "params": _plain({**told, **model._identifying_params}, secrets, frozenset(model.lc_secrets)),
    }


def without_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values by name, without those that are secrets by type or name, and without logins in URLs."""
    found: dict[str, Any] = _plain(values, frozenset())
    return found


def _secrets_of(model: BaseChatModel) -> frozenset[str]:
    """The texts of a model's own secrets, which parameters may hold once more under another name."""
    values = (getattr(model, name, None) for name in type(model).model_fields)
    texts = (value.get_secret_value() for value in values if isinstance(value, SecretStr))
    return frozenset(text for text in texts if text)


def _plain(value: Any, secrets: frozenset[str], names: frozenset[str] = frozenset()) -> Any:
    """The JSON value that stands for `value`, or `_LEFT_OUT`."""
    if isinstance(value, Enum):
        return _plain(value.value, secrets)
    if isinstance(value, str):
        return _LEFT_OUT if any(secret in value for secret in secrets) else _without_login(value)
    if value is None or isinstance(value, bool | int | float):
        return value if _is_json(value) else str(value)
    if isinstance(value, Mapping):
        kept = {str(key): _plain(part, secrets) for key, part in value.items() if not _is_secret(key, part, names)}
        return {key: part for key, part in kept.items() if part is not _LEFT_OUT}
    if isinstance(value, set | frozenset):
        return sorted(_parts(value, secrets), key=canonical.encode)
    if isinstance(value, list | tuple):
        return _parts(value, secrets)
    return value.__qualname__ if isinstance(value, type) else _LEFT_OUT


def _parts(values: Any, secrets: frozenset[str]) -> list[Any]:
    return [part for value in values if (part := _plain(value, secrets)) is not _LEFT_OUT]


def _is_secret(key: object, value: object, names: frozenset[str]) -> bool:
    named = isinstance(key, str) and (key in names or _SECRET.search(key) is not None)
    return named or isinstance(value, SecretStr | SecretBytes)


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or -(2**63) <= value < 2**63


def _without_login(text: str) -> str:
    """A URL without user, password and query; other text as it is."""
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return text.partition("://")[0]
    if not parts.netloc:
        return text
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
