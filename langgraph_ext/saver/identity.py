"""Identity: where each task was seen last, so that one that turns up elsewhere is noticed (rules L1, L2).

Only a hint, of this saver alone and of the newest tasks: what differs from it is compared with the database.
"""

from __future__ import annotations

from langgraph_ext.saver.config import Address

__all__ = ["Seen"]

_MOST = 4096
"""Tasks that are remembered."""


class Seen:
    """Namespace and path of each task. Safe to use from any thread: the worst is a task forgotten early."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, str | None, str], tuple[str, str]] = {}

    def elsewhere(self, address: Address, task_id: str, task_path: str) -> bool:
        """Whether a task was seen in another place than this; remembers it if it was not seen at all."""
        key = address.thread_id, address.checkpoint_id, task_id
        place = address.checkpoint_ns, task_path
        if len(self._tasks) >= _MOST:
            self._tasks = {}
        return self._tasks.setdefault(key, place) != place
