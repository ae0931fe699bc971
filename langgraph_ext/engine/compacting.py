"""Compacting: when the history of a role is summarised before its model is called, and where it is cut (rule E17).

Above the soft limit, the oldest rows become a summary, as much at a time as fits in the limit, until what is left takes
half of it. A cut never parts a decision from its results. The rows stay; the window begins behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph_ext.engine.contexts import Head
from langgraph_ext.engine.runtimes import Runtime

__all__ = ["PROMPT", "cut_of", "is_too_large", "request_of", "tokens_of_text"]

PROMPT = (
    "You keep the memory of an agent. Summarise the conversation below for the agent, who will go on with it and will "
    "not see it again: what was asked for, what was found and done, with names, numbers and ids as they are, what was "
    "decided, and what is still to do. Write the summary and nothing else."
)

_CHARACTERS = 4
"""A token is about so many."""

_BESIDE = 64
"""Tokens of a request beside its messages."""


def tokens_of_text(text: str) -> int:
    """How many tokens a text is about."""
    return -(-len(text) // _CHARACTERS)


def is_too_large(compaction: Mapping[str, Any], tokens: int) -> bool:
    """Whether a request of so many tokens is above the soft limit."""
    soft = compaction["soft_tokens"]
    return soft is not None and tokens > soft


def cut_of(compaction: Mapping[str, Any], head: Head, sizes: Sequence[tuple[int, str, int]]) -> int | None:
    """The last row of what is to be summarised next; None if nothing can be.

    Args:
        compaction: The release's, of a request that is too large.
        head: Where the context stands.
        sizes: Seq, kind and tokens of the rows of its window.
    """
    soft = compaction["soft_tokens"]
    groups = _groups(sizes)
    if len(groups) < 2:
        return None  # what came last stays: there is nothing before it
    most = max(soft - _BESIDE, 1)
    left = sum(size for _, size in groups)
    taken, cut = max(head.tokens - left, 0), None  # the summary so far is part of what is summarised
    for last, size in groups[:-1]:
        if cut is not None and (taken + size > most or left <= soft // 2):
            break
        taken, left, cut = taken + size, left - size, last
    return cut


def _groups(sizes: Sequence[tuple[int, str, int]]) -> list[tuple[int, int]]:
    """Last seq and tokens of the parts between which a history may be cut: a decision with its results is one."""
    groups: list[tuple[int, int]] = []
    for seq, kind, tokens in sizes:
        if kind == "result" and groups:
            groups[-1] = (seq, groups[-1][1] + tokens)
        else:
            groups.append((seq, tokens))
    return groups


def request_of(runtime: Runtime, role: str, cut: int) -> dict[str, Any]:
    """What a compaction's model is asked: the summary so far, and the rows up to the cut."""
    head = runtime.context
    return {
        "role": role,
        "task": runtime.task.context_id,
        "covers": head.covers,
        "summary": head.summary,
        "upto": cut,
        "tokens": _BESIDE + head.tokens - sum(tokens for seq, _, tokens in runtime.sizes if seq > cut),
    }
