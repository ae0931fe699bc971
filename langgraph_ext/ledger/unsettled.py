"""Unsettled: how an attempt ended, where that is known to this process and not yet on record (rules L16, L17, L19).

Its body is over, and on record it runs: its end is staged, and no call of the saver's has come that would store it, or
the commit of one has failed. LangGraph tries a task again without telling the saver; a caller may be cancelled in that
very moment, the file be locked. Under the same lease nobody would ever give such an attempt up, so who asks for the
next one says what is known of the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph_ext.database import Tx
from langgraph_ext.ledger import attempts, effects
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus, Error
from langgraph_ext.ledger.settlement import Staged

__all__ = ["NOTHING", "Unsettled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """What a process knows of the attempts of one part of a task."""

    staged: Sequence[Staged] = ()
    """Ends that are still to be stored."""
    failed: Sequence[tuple[str, Error]] = ()
    """Attempts of which a function inside has raised, and what; that they failed may be on record, or not."""

    def returned(self, last: Attempt, epoch: int) -> bytes | None:
        """The result of an attempt whose body ran to its end; None if it did not, as far as is known.

        Its end stays staged: the call that stores what the task wrote settles it.
        """
        end = self._end_of(last, epoch)
        return end.writes if end is not None and end.has_returned else None

    def asks(self, last: Attempt, epoch: int) -> bool:
        """Whether the body of an attempt has paused at a question."""
        end = self._end_of(last, epoch)
        return end is not None and not end.has_returned

    def fail(self, tx: Tx, last: Attempt, epoch: int, *, now_us: int) -> bool:
        """Record that an attempt failed in its settlement, if it did and that could not be recorded then.

        Returns:
            Whether it has ended now.
        """
        error = dict(self.failed).get(last.attempt_id)
        if error is None or not _runs(last, epoch):
            return False
        ended = attempts.end(tx, last, AttemptStatus.FAILED, now_us=now_us, error=error)
        effects.doubt_left(tx, [last.attempt_id], now_us=now_us)
        return ended

    def _end_of(self, last: Attempt, epoch: int) -> Staged | None:
        """The end of an attempt that runs on record; one that has failed in its settlement is none."""
        if not _runs(last, epoch):
            return None
        ends = (each for each in self.staged if (each.attempt_id, each.epoch) == (last.attempt_id, epoch))
        return next((each for each in ends if not each.inside.has_failed), None)


NOTHING = Unsettled()


def _runs(last: Attempt, epoch: int) -> bool:
    """One of an earlier epoch is given up instead: another may have held the thread meanwhile."""
    return last.status is AttemptStatus.RUNNING and last.epoch == epoch
