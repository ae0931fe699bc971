"""Inside: what an application does to its own tables in the settlement's transaction (rule L53).

A body registers functions; when its end is settled they run, in their order, after what the task wrote was stored and
before the attempt is moved. All of it is committed, or none. One that raises ends the attempt as failed (`endings.py`),
in a commit of its own; it has then had its chance: whichever other transaction comes upon the same end is given the
same error, and nothing runs again until the next attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langgraph_ext.database import AppTx, Tx

__all__ = ["Inside", "InsideFailed"]


class InsideFailed(Exception):
    """What a settlement raises in place of an error of the application's; nothing of the transaction is stored."""

    def __init__(self, attempt_id: str, error: BaseException) -> None:
        super().__init__(attempt_id, error)
        self.attempt_id = attempt_id
        self.error = error


class Inside:
    """The functions of one attempt's end. Only one transaction of a database runs at a time, so it needs no lock."""

    __slots__ = ("_error", "_fns")

    def __init__(self, fns: Sequence[Callable[[AppTx], Any]] = ()) -> None:
        self._fns = tuple(fns)
        self._error: BaseException | None = None

    def run(self, tx: Tx, attempt_id: str) -> None:
        """Run them. A transaction that is rolled back for others' sake is repeated, and they run again in it.

        Raises:
            InsideFailed: One of them raised, now or before.
        """
        self.refuse_failed(attempt_id)
        try:
            for fn in self._fns:
                tx.apart(fn)
        except KeyboardInterrupt:
            raise  # it may be anybody's, in whose thread the transaction happens to run
        except BaseException as error:  # noqa: BLE001 - given to the caller
            self._error = _that_may_be_raised(error)
        self.refuse_failed(attempt_id)

    @property
    def has_failed(self) -> bool:
        """Whether one of them has raised."""
        return self._error is not None

    def refuse_failed(self, attempt_id: str) -> None:
        """Raise what one of them has raised, if one has.

        Raises:
            InsideFailed: So it is.
        """
        if self._error is not None:
            raise InsideFailed(attempt_id, self._error)


NOTHING = Inside()
"""Of an end that has none."""


def _that_may_be_raised(error: BaseException) -> BaseException:
    """Generators, which stand between here and the caller, would take it for their own end."""
    if not isinstance(error, StopIteration | StopAsyncIteration):
        return error
    stopped = RuntimeError(f"a function inside raised {type(error).__name__}: it asked for a row that is not there")
    stopped.__cause__ = error
    return stopped
