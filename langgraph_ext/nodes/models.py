"""Models: chat models that a spec has only the names of, made with LangChain's `init_chat_model` (extra `langchain`).

A release is known by the names: in another process, or with a newer integration, it is the same one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from langchain_core.language_models import BaseChatModel

from langgraph_ext.engine import Release
from langgraph_ext.errors import AdmissionError
from langgraph_ext.ledger.texts import cut, message_of

__all__ = ["EXTRA", "langchain", "with_models"]

EXTRA = "pip install 'langgraph-ext[langchain]'"
"""How what needs LangChain is installed."""

_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|CREDENTIALS)\b")
"""The name of an environment variable that holds a key, as integrations write it."""


def with_models(release: Release) -> Release:
    """The release, in which each model that is a name is one that can be called.

    Raises:
        AdmissionError: One cannot be made (`model_not_made`): its provider is not known, its integration or LangChain
            is not installed, or it wants what is not there, such as a key.
    """
    models = release.live.models
    names = sorted({each for each in models.values() if isinstance(each, str)})
    if not names:
        return release
    made = {name: _made(name) for name in names}
    live = {role: made[each] if isinstance(each, str) else each for role, each in models.items()}
    return replace(release, live=replace(release.live, models=live))


def _made(name: str) -> BaseChatModel:
    make = _maker(name)
    try:
        model = make(name)
    except Exception as error:  # an integration's own code; whatever it raises is why there is no model
        raise _not_made(name, f"cannot be made: {_told(error)}") from error
    if not isinstance(model, BaseChatModel):
        raise _not_made(name, f"gives a value of type {type(model).__name__}, and no chat model; pass one")
    return model


def _maker(name: str) -> Callable[[str], Any]:
    found = langchain("langchain.chat_models")
    if found is None:
        raise _not_made(name, f"is a name, and LangChain makes models of names; install it: {EXTRA}")
    make: Callable[[str], Any] = found.init_chat_model
    return make


def langchain(module: str) -> Any:
    """A module of LangChain's, which is an optional extra; None if that is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "langchain":
            raise
        return None


def _told(error: Exception) -> str:
    """What has gone wrong. What a constructor says of its arguments may hold a key, and is left to the cause.

    The variables that it would take one from are named.
    """
    said = message_of(error)
    if type(error) is ValueError or isinstance(error, ImportError):
        return cut(said.partition("\n")[0])
    variables = " or ".join(dict.fromkeys(_VARIABLE.findall(said)))
    see_to = f"see to {variables} in the environment; " if variables else ""
    return f"{type(error).__name__}; {see_to}the cause says more"


def _not_made(name: str, why: str) -> AdmissionError:
    return AdmissionError(f"model {name!r} {why}", code="model_not_made", details={"model": name})
