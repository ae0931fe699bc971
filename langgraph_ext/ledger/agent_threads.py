"""Agent threads: how the ledger's threads and the names of agent runs belong together."""

from __future__ import annotations

from urllib.parse import quote

__all__ = ["beginning_of_keys", "is_of_visit", "thread_of"]

_VISIT = "visit:"


def thread_of(agent_run_id: str) -> str:
    """The thread of a root's own run in the ledger. If no visit drives it, its lease and its events are there, too."""
    return f"agent:{agent_run_id}"


def is_of_visit(key: str) -> bool:
    """Whether a key is that of an agent run that a node has, and not a caller's."""
    return key.startswith(_VISIT)


def beginning_of_keys(thread_id: str) -> tuple[str, str]:
    """How the keys of the agent runs begin that a thread's nodes have, and the first text behind all of these."""
    beginning = f"{_VISIT}{quote(thread_id, safe='')}"
    return f"{beginning}:", f"{beginning};"
