"""Around models: what a caller may run around each call of a model that an agent run makes for a decision.

Each physical call is on record before it is made, whoever wants it (rule A12).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool

__all__ = ["AroundModel", "ModelCall", "Send"]


class ModelCall(NamedTuple):
    """A call of a model, as it is about to be made."""

    operation_id: str
    number: int
    """The how manieth of its operation it is on record as."""
    model: BaseChatModel
    messages: Sequence[BaseMessage]
    """What it is sent, a system prompt first."""
    tools: Sequence[BaseTool | dict[str, Any]]
    """What it may call; a dict is one that its provider runs."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """More arguments of this call, as the model is bound to them."""
    tags: tuple[str, ...] = ()


Send = Callable[[ModelCall], Awaitable[AIMessage]]
"""Makes a call, and waits for its whole answer."""

AroundModel = Callable[[ModelCall, Send], Awaitable[AIMessage]]
"""`around(call, send)`: the answer that counts. One call is on record for it, and it sends one at most; before it
sends another, it raises `AskedAgain`, and is called again when that is on record."""
