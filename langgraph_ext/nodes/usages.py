"""Usages: what a body says of a call of its own, before it and after it, in the ledger's words (rules L34, L35)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.budgets import Budget
from langgraph_ext.ledger.dimensions import Dimension, to_cost_nusd, units_of
from langgraph_ext.ledger.model_calls import Bound, Reported
from langgraph_ext.saver import model_usage

__all__ = ["bound_for", "messages_of", "named", "reported_in"]

_COUNTS = {
    "input_tokens": "tokens_in",
    "output_tokens": "tokens_out",
    "cache_read": "cache_read",
    "cache_creation": "cache_written",
    "tool_calls": "tool_calls",
}
"""By the words of `Budget(price=…)`: the columns."""

_BESIDES = ("cost_usd", "total_tokens", "input_token_details", "output_token_details")
"""What else may stand in a report: LangChain's `usage_metadata` has the last three."""


def named(model: object) -> tuple[str | None, str]:
    """Provider and model of `"provider:model"`; a name without a colon has no provider.

    Raises:
        InvalidArgument: It is no text, or empty.
    """
    if not isinstance(model, str) or not model:
        raise InvalidArgument(f'frame.call: model is {model!r}; it must be text, such as "openai:gpt-5.5"')
    provider, colon, name = model.partition(":")
    return (provider, name) if colon and provider and name else (None, model)


def messages_of(prompt: object) -> list[BaseMessage] | None:
    """A prompt as messages, whose tokens can be estimated; None if there is none.

    Raises:
        InvalidArgument: It is neither text nor what LangChain takes for messages.
    """
    if prompt is None:
        return None
    if isinstance(prompt, str):
        return [HumanMessage(prompt)]
    try:
        return convert_to_messages(prompt)  # type: ignore[arg-type]
    except (ValueError, TypeError, NotImplementedError, AttributeError, KeyError):
        kind = type(prompt).__name__
        raise InvalidArgument(
            f"frame.call: prompt is a {kind} that is no prompt; give text, or messages as LangChain takes them"
        ) from None


def bound_for(
    kind: str,
    messages: Sequence[BaseMessage] | None,
    *,
    model: str,
    max_tokens: int | None,
    max_cost_usd: float | None,
    budget: Budget | None,
) -> Bound:
    """What a call may use at most, as far as that can be told. What is no model uses no tokens, unless it says so.

    Raises:
        InvalidArgument: A limit can be none, or the price is no price (`invalid_usage`).
    """
    units_of(Dimension.TOKENS, max_tokens, name="max_tokens")
    units_of(Dimension.COST_USD, max_cost_usd, name="max_cost_usd")
    if kind == "model" or max_tokens is not None:
        bound = model_usage.bounded(messages, max_tokens, model=model, budget=budget)
    else:
        bound = Bound(0, None)
    return bound if max_cost_usd is None else Bound(bound.tokens, math.ceil(max_cost_usd * 10**9))


def reported_in(usage: object, *, kind: str, model: str, budget: Budget | None) -> Reported:
    """What a report says; without its cost where it says none and the price function fails.

    Raises:
        InvalidArgument: It is no report, or names what nobody counts, or amounts that can be none (`invalid_usage`).
    """
    if usage is None:
        usage = {}
    if not isinstance(usage, Mapping):
        raise _mistaken(f"is a {type(usage).__name__}")
    if unknown := sorted(str(name) for name in usage if name not in _COUNTS and name not in _BESIDES):
        raise _mistaken(f"holds {unknown[0]!r}")
    cached = usage.get("input_token_details") or {}
    words = {"cache_read": cached.get("cache_read"), "cache_creation": cached.get("cache_creation"), **usage}
    if kind != "model":
        words = {"input_tokens": 0, "output_tokens": 0, **words}
    counts = {column: words.get(name) for name, column in _COUNTS.items()}
    cost = words.get("cost_usd")
    reported = Reported(**counts, cost_nusd=None if cost is None else to_cost_nusd(cost, up=False))
    reported.check()
    return reported


def _mistaken(why: str) -> InvalidArgument:
    known = ", ".join([*_COUNTS, _BESIDES[0]])
    return InvalidArgument(
        f"frame.call: what usage= returned {why}; return a dict of {known}, or LangChain's usage_metadata. What the "
        "call may have used stays reserved",
        code="invalid_usage",
    )
