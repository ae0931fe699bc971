"""Forks: telling a process from the one it was forked off, without asking the system at every call."""

from __future__ import annotations

import os

__all__ = ["Ancestry"]


class Ancestry:
    """Where this process stands among its forks."""

    forks = 0
    """How many forks lie between this process and the one that imported this module."""

    @classmethod
    def note_fork(cls) -> None:
        """Called in the child."""
        cls.forks += 1


os.register_at_fork(after_in_child=Ancestry.note_fork)
