"""Observers: a program's function that is told of every event, after its commit (rule L10).

It is told in the thread, or on the event loop, of a saver's call that is about to return, in the order of commits, each
event once. What it does cannot undo what was committed: an error of its own goes to `on_observer_error`, and the next
event follows.
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from langgraph_ext.database import Tx
from langgraph_ext.errors import InvalidArgument, NotFound, StoreError
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.order import behind
from langgraph_ext.ledger.records import Event

__all__ = ["Observer", "OnEvent", "OnObserverError", "observer_of"]

OnEvent = Callable[[Event], object]
OnObserverError = Callable[[Event, Exception], object]

_LOGGER = logging.getLogger("langgraph_ext")

_PAGE = 256


def observer_of(on_event: OnEvent | None, on_error: OnObserverError | None) -> Observer | None:
    """An observer, if there is a function to be told.

    Raises:
        InvalidArgument: One of them is no plain function.
    """
    given: dict[str, object] = {"on_event": on_event, "on_observer_error": on_error}
    for name, fn in given.items():
        if fn is not None and (not callable(fn) or inspect.iscoroutinefunction(fn)):
            raise InvalidArgument(f"{name} is {fn!r}; it must be a plain function, which nobody awaits, or None")
    return None if on_event is None else Observer(on_event, on_error)


class Observer:
    """One function and how far it has been told. Safe to use from any thread and any event loop."""

    def __init__(self, on_event: OnEvent, on_error: OnObserverError | None) -> None:
        self._on_event = on_event
        self._on_error = on_error or _log
        self._mutex = threading.Lock()
        self._telling = False
        self._asked = False
        """Whether somebody asked while another call was telling."""
        self._cursor: int | None = None

    def begin(self, ledger: RunLedger) -> None:
        """Note, before the first write, where the log ends."""
        if self._cursor is None:
            self._begin_at(ledger.database.read(_last))

    async def abegin(self, ledger: RunLedger) -> None:
        """As `begin`."""
        if self._cursor is None:
            self._begin_at(await ledger.database.aread(_last))

    def tell(self, ledger: RunLedger) -> None:
        """Tell of what was committed since. If another call is telling, that one tells of this too."""
        assert self._cursor is not None, "begin comes first"
        with self._reading(), self._turn() as is_mine:
            while is_mine and self._is_asked():
                while events := ledger.events(after=self._cursor, limit=_PAGE):
                    self._tell_each(events)

    async def atell(self, ledger: RunLedger) -> None:
        """As `tell`."""
        assert self._cursor is not None, "begin comes first"
        with self._reading(), self._turn() as is_mine:
            while is_mine and self._is_asked():
                while events := await ledger.aevents(after=self._cursor, limit=_PAGE):
                    self._tell_each(events)

    def _begin_at(self, cursor: int) -> None:
        with self._mutex:
            if self._cursor is None:
                self._cursor = cursor

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """The events could not be read: the call that committed has succeeded, and the next one tells of them.

        Of those that were taken away before it could (horizon.py), nobody does.
        """
        try:
            yield
        except StoreError as error:
            _LOGGER.error("observer: events could not be read: %s", error.code)
        except NotFound as error:
            with self._mutex:
                self._cursor = int(str(error.details["oldest"]))
            _LOGGER.error("observer: events up to cursor %d are gone, and it is not told of them", self._cursor)

    @contextmanager
    def _turn(self) -> Iterator[bool]:
        """Ask for everything to be told; whether this call is the one that tells."""
        with self._mutex:
            self._asked = True
            is_mine, self._telling = not self._telling, True
        try:
            yield is_mine
        finally:
            if is_mine:
                with self._mutex:
                    self._telling = False  # also when reading failed: the next call goes on from the cursor

    def _is_asked(self) -> bool:
        """Whether something may have come since it was last looked; if not, the turn is over."""
        with self._mutex:
            asked, self._asked = self._asked, False
            self._telling = asked
            return asked

    def _tell_each(self, events: Sequence[Event]) -> None:
        for event in events:
            self._cursor = event.cursor
            try:
                self._on_event(event)
            except Exception as error:  # noqa: BLE001 - an observer's own
                self._report(event, error)

    def _report(self, event: Event, error: Exception) -> None:
        try:
            self._on_error(event, error)
        except Exception as failed:  # noqa: BLE001 - what was committed is the caller's, whatever they do
            _log(event, failed)


def _last(tx: Tx) -> int:
    return behind(tx.one("log_last")["seq"] or 0)


def _log(event: Event, error: Exception) -> None:
    _LOGGER.error("observer failed at event %d (%s): %s", event.cursor, event.name, type(error).__name__)
