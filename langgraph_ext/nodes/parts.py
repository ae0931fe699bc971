"""Parts: the durable calls of one try of a task, and which part of the task on record each of them is.

    the task's own function    part 0, whatever it is called with: a resume may have changed the state
    a call by that             the part that was called with the same; else a new one
    the same call again        of a call that has raised, or was refused: the same part, its next attempt
                               of one that has returned: another part

Order says nothing where calls run side by side: each try may see another. So a call that is known by what it is called
with is never taken for another, and one that is not known waits while a part of the same function is on record that
holds something and was not called again yet: that may still come. If it does not, nobody can tell whether this is that
call with other arguments, whose effects must not be repeated, or another one, which must not be given its receipts.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from langgraph_ext.errors import AdmissionError
from langgraph_ext.ledger.attempts import Part
from langgraph_ext.nodes.called import Called
from langgraph_ext.nodes.turns import Turns

__all__ = ["Try", "try_of"]

OWN = 0
"""The part that a task's own function is."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A call that was taken for a part."""

    called: Called
    body: Callable[..., object]
    strand: object


class Try:
    """The durable calls of one try of a task. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._claims: dict[int, _Claim] = {}
        """By part."""
        self._open: set[int] = set()
        """Parts of which the last call in this try came to nothing; an equal one is their next attempt."""
        self._called_itself = False
        self.recorded: Sequence[Part] | None = None
        """The parts that were on record when it began; None until somebody has looked."""
        self.turns = Turns()
        """What it asks about effects of a fork."""

    def is_first_of_its_own(self) -> bool:
        """Whether the task's own function is called now for the first time; later it calls itself."""
        with self._mutex:
            first, self._called_itself = not self._called_itself, True
        return first

    def claim(
        self, called: Called, body: Callable[..., object], recorded: Sequence[Part], *, acts: bool = True
    ) -> int | Part:
        """The number of the part that a call is; or a part on record that has to be called first.

        Args:
            called: The call.
            body: The function, to tell it from another one of its name.
            recorded: The parts of the task that are on record.
            acts: Whether it has effects.

        Raises:
            AdmissionError: Nothing tells it from another one that was made elsewhere, or from one that has come to
                nothing (`part_ambiguous`).
        """
        strand = _strand()
        with self._mutex:
            self._refuse_twin(called, body, strand)
            left = [part for part in recorded if part.ordinal not in self._claims]
            known = min(
                [*(part.ordinal for part in left if _is(part, called)), *self._opened(called, body, acts)], default=None
            )
            if known is None:
                namesake = next((part for part in left if part.function == called.function and part.holds), None)
                if namesake is not None:
                    return namesake
                known = OWN if called.is_own else self._new(recorded)
            self._claims[known] = _Claim(called, body, strand)
            self._open.discard(known)
            return known

    def came_to_nothing(self, part: int) -> None:
        """Its call has raised, asks, or was refused: who makes that call again means this part."""
        with self._mutex:
            if part in self._claims:
                self._open.add(part)

    def disclaim(self, part: int) -> None:
        """It is another call's, as is on record by now."""
        with self._mutex:
            self._claims.pop(part, None)
            self._open.discard(part)

    def _opened(self, called: Called, body: Callable[..., object], acts: bool) -> Iterator[int]:
        """The parts that a call may be the next attempt of."""
        for part in self._open:
            claim = self._claims[part]
            if (claim.called.function, claim.called.arguments) != (called.function, called.arguments):
                continue
            if claim.body is body and called.exact:
                yield part
            elif acts:
                raise _ambiguous(called, "again behind one that came to nothing", claim.body is not body)

    def _new(self, recorded: Sequence[Part]) -> int:
        return max([OWN, *self._claims, *(part.ordinal for part in recorded)]) + 1

    def _refuse_twin(self, called: Called, body: Callable[..., object], strand: object) -> None:
        """One strand makes its calls in order; of two, each may be first the next time."""
        for claim in self._claims.values():
            alike = (claim.called.function, claim.called.arguments) == (called.function, called.arguments)
            if alike and claim.strand != strand and (claim.body is not body or not called.exact):
                raise _ambiguous(called, "twice side by side", claim.body is not body)


def _ambiguous(called: Called, how: str, is_another: bool) -> AdmissionError:
    why = "another function of that name" if is_another else "what JSON cannot hold in full"
    return AdmissionError(
        f"{called.function} is called {how} in one task, and nothing would tell one call from the other after a crash: "
        f"the arguments look the same, and it is {why}. Give each an argument of its own that JSON can hold, or "
        "declare another kind=, or let one return before the other is called",
        code="part_ambiguous",
        details={"function": called.function},
    )


def _strand() -> object:
    """What makes calls one after the other: the asyncio task that runs, or else the thread."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident() if task is None else weakref.ref(task)


def _is(part: Part, called: Called) -> bool:
    """The task's own function may have another name since."""
    if called.is_own:
        return part.ordinal == OWN
    return (part.function, part.arguments) == (called.function, called.arguments)


class _Tries:
    """The tries of each task, as long as LangGraph holds it. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._known: weakref.WeakKeyDictionary[object, dict[int, Try]] = weakref.WeakKeyDictionary()

    def find(self, task: object, number: int) -> Try:
        with self._mutex:
            tries = self._known.setdefault(task, {})
            return tries.setdefault(number, Try())


_TRIES = _Tries()


def try_of(task: object, number: int) -> Try:
    """The try of this number of a task."""
    return _TRIES.find(task, number)
