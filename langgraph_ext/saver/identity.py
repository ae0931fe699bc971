"""Identity: where each task was seen last, so that one that turns up elsewhere is noticed (rules L1, L2).

Only a hint, of this saver alone and of the newest tasks: what differs from it is compared with the database.
"""

from __future__ import annotations

from langgraph_ext.saver.config import Address

__all__ = ["Seen"]

_MOST = 1024
"""Tasks that are remembered."""


class Seen:
    """Namespace and path of each task. Safe to use from any thread: the worst is a task forgotten early."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[str, str]] = {}

    def elsewhere(self, address: Address, task_id: str, task_path: str) -> bool:
        """Whether a task was seen in another place than this; remembers it if it was not seen at all.

        Task ids are as good as unique: two checkpoints that share one are compared in vain.
        """
        if len(self._tasks) >= _MOST:
            self._tasks = {}
        place = address.checkpoint_ns, task_path
        return self._tasks.setdefault(task_id, place) != place
