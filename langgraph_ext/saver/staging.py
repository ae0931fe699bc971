"""Staging: ends of attempts that nobody has stored yet (rules L4 and S11).

A body stages its end in memory; the saver's next call that concerns it settles it, in the same transaction as what
that call stores: the task's own `put_writes`, or else the first `put` below an anchor of it. LangGraph hands a saver no
writes of some tasks (`Command.PARENT`, a subgraph without a saver), and those of others late. Both may see the same
end: the second one finds it settled.

An end leaves the register when it is committed, and when it was refused for good; a call that failed otherwise leaves
it there, for the next. What is lost with the process is given up by the next admission, which tells the register too
(`forget`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from langgraph_ext.database import Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import settlement
from langgraph_ext.ledger.settlement import PartKey, Staged

__all__ = ["Staging", "beside"]

T = TypeVar("T")

_MOST = 65_536
"""How many ends are kept. The oldest are dropped: their invocations failed long ago, and nobody came back for them."""

_REFUSALS = ("terminal_conflict", "terminal_mismatch")

Place = tuple[str, str, str]
"""`(thread_id, checkpoint_id, task_id)` of a task, or `(thread_id, checkpoint_ns, checkpoint_id)` of an anchor."""


class Staging:
    """The staged ends of one saver, one an attempt. Safe to use from any thread."""

    def __init__(self) -> None:
        self.any = False
        """Whether there are any: all that a call needs to look at where no attempts are made."""
        self._mutex = threading.Lock()
        self._lent: set[str] = set()
        """Attempts that somebody is asking to go on with."""
        self._staged: dict[str, Staged] = {}
        """By attempt, the oldest first."""
        self._of_task: dict[Place, dict[str, Staged]] = {}
        self._anchored: dict[Place, dict[str, Staged]] = {}

    def add(self, staged: Staged) -> None:
        """Stage an end, before its task's writes are handed to the saver. It takes the place of the attempt's last."""
        with self._mutex:
            self._remove(staged.attempt_id)
            while len(self._staged) >= _MOST:
                self._remove(next(iter(self._staged)))
            self._staged[staged.attempt_id] = staged
            for index, place in self._places(staged):
                index.setdefault(place, {})[staged.attempt_id] = staged
            self.any = True

    def of_task(self, thread_id: str, checkpoint_id: str, task_id: str) -> tuple[Staged, ...]:
        """What a task's `put_writes` has to settle, oldest first."""
        with self._mutex:
            return tuple(self._of_task.get((thread_id, checkpoint_id, task_id), {}).values())

    def anchored(self, thread_id: str, checkpoint_ns: str, parent_id: str | None) -> tuple[Staged, ...]:
        """What a `put` below this parent has to settle, oldest first; nothing where there is no parent."""
        if parent_id is None:
            return ()
        with self._mutex:
            return tuple(self._anchored.get((thread_id, checkpoint_ns, parent_id), {}).values())

    @contextmanager
    def lent(self, key: PartKey) -> Iterator[Sequence[Staged]]:
        """Around an admission: the ends of this part of a task. They stay staged, if it does not `forget` them.

        A result may be given back to several at once. An attempt that asks can be gone on with by one of them, so it is
        not lent to another one meanwhile.
        """
        with self._mutex:
            held = self._of_task.get(key[:3], {}).values() if self.any else ()
            lent = [each for each in held if each.key == key and each.attempt_id not in self._lent]
            alone = {each.attempt_id for each in lent if not each.has_returned}
            self._lent |= alone
        try:
            yield lent
        finally:
            with self._mutex:
                self._lent -= alone

    def done(self, *staged: Staged) -> None:
        """These were committed. Another end that their attempt has staged since stays."""
        with self._mutex:
            for each in staged:
                kept = self._staged.get(each.attempt_id)
                if kept is not None and kept.digest == each.digest:
                    self._remove(each.attempt_id)

    def forget(self, attempt_ids: Iterable[str]) -> None:
        """Attempts that an admission has interrupted, or lets go on: what they had staged concerns nobody any more."""
        with self._mutex:
            for attempt_id in attempt_ids:
                self._remove(attempt_id)

    @contextmanager
    def settling(self, staged: Sequence[Staged]) -> Iterator[None]:
        """Around the commit that settles them: afterwards they are done, or refused for good, or staged as before."""
        try:
            yield
        except ConflictError as refusal:
            if refusal.code in _REFUSALS:
                refused = refusal.details.get("attempt_id")
                self.done(*(each for each in staged if each.attempt_id == refused))
            raise
        self.done(*staged)

    def _remove(self, attempt_id: str) -> None:
        """Take an attempt's end out, if there is one. Only for the holder of the mutex."""
        staged = self._staged.pop(attempt_id, None)
        if staged is None:
            return
        for index, place in self._places(staged):
            held = index[place]
            del held[attempt_id]
            if not held:
                del index[place]
        self.any = bool(self._staged)

    def _places(self, staged: Staged) -> Iterator[tuple[dict[Place, dict[str, Staged]], Place]]:
        """Every place it can be found at, each once."""
        thread_id, checkpoint_id, task_id, _ = staged.key
        yield self._of_task, (thread_id, checkpoint_id, task_id)
        for anchor in dict.fromkeys(staged.anchors):
            yield self._anchored, (thread_id, *anchor)


def beside(
    tx: Tx,
    store: Callable[[Tx], T],
    staged: Sequence[Staged],
    *,
    now_us: int,
    is_stored: Callable[[T], bool] = lambda _: True,
) -> T:
    """Run the transaction `store` and settle these ends with it.

    Args:
        tx: The open transaction.
        store: What the call stores. It may come to nothing.
        staged: The ends; they are checked before `store` writes.
        now_us: Microseconds since the epoch, UTC.
        is_stored: Whether `store` did store, by its answer. If not, nothing is settled: the caller tries another way.

    Raises:
        ConflictError: One of the ends can never be settled; nothing is stored.
    """
    ends = settlement.check(tx, staged)
    answer = store(tx)
    if is_stored(answer):
        settlement.write(tx, ends, now_us=now_us)
    return answer
