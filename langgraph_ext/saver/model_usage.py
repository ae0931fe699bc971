"""Model usage: what LangChain tells of a model call, before it and after it, in the ledger's words (rules L34, L35).

How many tokens a prompt has is known for sure by its provider only, and afterwards. Before the call it is estimated by
langchain-core's approximate counter, and a quarter is added; of its output the model's own limit is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import LLMResult

from langgraph_ext.ledger.budgets import Budget, Price
from langgraph_ext.ledger.dimensions import to_cost_nusd
from langgraph_ext.ledger.model_calls import Bound, Reported

__all__ = ["bound_of", "bounded", "bytes_of", "model_of", "priced", "reported_of"]

_MARGIN = 1.25
"""By how much an estimate of a prompt is exceeded to be a bound."""

_OUTPUT_LIMITS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens_to_sample",
    "max_new_tokens",
    "num_predict",
)
"""What providers call the most tokens that a model may answer."""


def bound_of(
    messages: Sequence[BaseMessage], params: Mapping[str, Any], metadata: Mapping[str, Any], budget: Budget | None
) -> Bound:
    """What a call may use at most, as far as that can be told.

    Args:
        messages: The prompt.
        params: The call's invocation parameters.
        metadata: The call's.
        budget: Says what to take where the model has no limit of its output; and its price.

    Raises:
        InvalidArgument: The price is no price (`invalid_usage`).
    """
    model = model_of(params, metadata) or ""
    return bounded(messages, _output_limit(params, metadata), model=model, budget=budget, tools=_tools(params))


def bounded(
    messages: Sequence[BaseMessage] | None,
    answer: int | None,
    *,
    model: str,
    budget: Budget | None,
    tools: list[Any] | None = None,
) -> Bound:
    """As `bound_of`, of a call whose model and output limit are known.

    Args:
        messages: The prompt; None if nobody knows it, and then only the budget bounds the call.
        answer: The most tokens that the model may answer, if it has a limit.
        model: Its name.
        budget: As there.
        tools: What the model is told of its tools.
    """
    price = None if budget is None else budget.price
    if messages is not None and answer is not None:
        prompt = math.ceil(_MARGIN * count_tokens_approximately(messages, tools=tools or []))
        usage = {"input_tokens": prompt, "output_tokens": answer}
        return Bound(prompt + answer, None if price is None else to_cost_nusd(price(model, usage), up=True))
    most = None if budget is None else budget.tokens_per_call
    if most is None:
        return Bound(None, None)
    if price is None:
        return Bound(most, None)
    ends = ({"input_tokens": most, "output_tokens": 0}, {"input_tokens": 0, "output_tokens": most})
    return Bound(most, max(to_cost_nusd(price(model, usage), up=True) for usage in ends))


def reported_of(response: LLMResult) -> Reported:
    """What a provider says that a call has used; without its price."""
    generation = response.generations[0][0] if response.generations and response.generations[0] else None
    message = getattr(generation, "message", None)
    usage: Mapping[str, Any] = getattr(message, "usage_metadata", None) or {}
    if not usage:  # a plain language model's, in the words of the first provider that reported it
        told = (response.llm_output or {}).get("token_usage") or {}
        usage = {"input_tokens": told.get("prompt_tokens"), "output_tokens": told.get("completion_tokens")}
    cached: Mapping[str, Any] = usage.get("input_token_details") or {}
    tool_calls = getattr(message, "tool_calls", None)
    return Reported(
        tokens_in=usage.get("input_tokens"),
        tokens_out=usage.get("output_tokens"),
        cache_read=cached.get("cache_read"),
        cache_written=cached.get("cache_creation"),
        tool_calls=None if tool_calls is None else len(tool_calls),
    )


def priced(price: Price | None, model: str | None, reported: Reported) -> int | None:
    """What a call has cost, in billionths of a US dollar; None where there is no price, or not enough was reported.

    Raises:
        InvalidArgument: The price is no price (`invalid_usage`).
    """
    if price is None or reported.tokens_in is None or reported.tokens_out is None:
        return None
    usage = {"input_tokens": reported.tokens_in, "output_tokens": reported.tokens_out}
    if reported.cache_read is not None:
        usage["cache_read"] = reported.cache_read
    if reported.cache_written is not None:
        usage["cache_creation"] = reported.cache_written
    return to_cost_nusd(price(model or "", usage), up=False)


def model_of(params: Mapping[str, Any], metadata: Mapping[str, Any]) -> str | None:
    """What the called model is named by its provider."""
    for name in (metadata.get("ls_model_name"), params.get("model"), params.get("model_name")):
        if isinstance(name, str) and name:
            return name
    return None


def bytes_of(messages: Sequence[BaseMessage]) -> tuple[int, int]:
    """Bytes of the last message's content, and of those before it."""
    sizes = [len(str(message.content).encode(errors="replace")) for message in messages]
    return (sizes[-1] if sizes else 0), sum(sizes[:-1])


def _output_limit(params: Mapping[str, Any], metadata: Mapping[str, Any]) -> int | None:
    """The most tokens that the model may answer, in all the answers that it is asked for."""
    for limit in (*(params.get(name) for name in _OUTPUT_LIMITS), metadata.get("ls_max_tokens")):
        if type(limit) is int and limit > 0:
            answers = params.get("n")
            return limit * (answers if type(answers) is int and answers > 1 else 1)
    return None


def _tools(params: Mapping[str, Any]) -> list[Any]:
    found = params.get("tools") or params.get("functions") or ()
    return [tool for tool in found if isinstance(tool, dict)] if isinstance(found, list | tuple) else []
