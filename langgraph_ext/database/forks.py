"""Forks: telling a process from the one it was forked off, without asking the system at every call; and from none."""

from __future__ import annotations

import os

__all__ = ["Ancestry", "process_exists"]


class Ancestry:
    """Where this process stands among its forks."""

    forks = 0
    """How many forks lie between this process and the one that imported this module."""

    @classmethod
    def note_fork(cls) -> None:
        """Called in the child."""
        cls.forks += 1


def process_exists(pid: int) -> bool:
    """Whether there is a process of this id, a zombie included. Where asking would hurt it (Windows): yes."""
    if os.name != "posix" or pid <= 0:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # somebody else's
    return True


os.register_at_fork(after_in_child=Ancestry.note_fork)
