"""Company: when it is worth a moment to wait for calls whose commit can be shared."""

from __future__ import annotations

from collections.abc import Sequence

from langgraph_ext.database.appends import Append

__all__ = ["Company", "Crowd"]

_PASSED_OVER = 64
"""Most chances to linger that are passed over after it was in vain."""

_MANY = 4
"""So many transactions of threads of their own are a crowd."""

_FADES = 0.8
"""What is left of a crowd's size with each group that is smaller."""


class Company:
    """Whether lingering is worth it: after each wait in vain, twice as many chances are passed over.

    Some graphs never bring company in time: LangGraph holds the next put back until the writes are stored when a
    DeltaChannel or an error handler is involved, and parallel nodes end one by one. Races on the counters are harmless.
    """

    def __init__(self) -> None:
        self._in_vain = 0
        self._pass_over = 0

    def expected(self) -> bool:
        """Whether the next call should linger."""
        if self._pass_over > 0:
            self._pass_over -= 1
            return False
        return True

    def came(self, company: bool) -> None:
        """Learn from a wait that is over."""
        self._in_vain = 0 if company else min(_PASSED_OVER, self._in_vain * 2 or 1)
        self._pass_over = self._in_vain


class Crowd:
    """Whether many graphs run at once, so that who leads should wait for more of them. Only for the leader.

    They share one interpreter, and that is what all of them wait for. Each commit takes it away from them a few times,
    so fewer and larger groups leave them more of it. Counted are the appends that have a key, of which each run has one
    at a time; so the tasks of a fan-out, whose commit their run waits for, are no crowd.
    """

    def __init__(self) -> None:
        self._usual = 0.0

    def is_late(self, queued: int) -> bool:
        """Whether there usually are more calls than these in a group."""
        return self._usual >= _MANY and queued < self._usual

    def came(self, appends: Sequence[Append | None]) -> None:
        """Learn from a group."""
        usual = self._usual * _FADES
        if len(appends) > usual:
            usual = max(usual, sum(append is not None and append.key is not None for append in appends))
        self._usual = usual
