"""Questions and effects of runs, all of them or by id where an event names one; how payloads and receipts are shown."""

from __future__ import annotations

from collections.abc import Callable

from langgraph_ext.cli.story import Shown
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.records import Effect, Event, Interrupt
from langgraph_ext.render import payload

__all__ = ["Questions", "answer_shown_by", "effects_of", "interrupts_of", "shown_by"]

_PAGE = 1000
_COLUMNS = 60
"""Of a payload, wherever it stands."""


def shown_by(*, payloads: bool, only_ascii: bool) -> Shown:
    """How payloads and receipts are shown: shortened, or not at all."""

    def shown(told: Interrupt | Effect) -> str:
        if not payloads:
            return ""
        kind, value = (
            (told.value_type, told.value) if isinstance(told, Interrupt) else (told.receipt_type, told.receipt)
        )
        return _short(kind, value, only_ascii=only_ascii)

    return shown


def answer_shown_by(*, payloads: bool, only_ascii: bool) -> Callable[[Interrupt], str]:
    """As `shown_by`, of the answers to questions."""

    def shown(told: Interrupt) -> str:
        return _short(told.answer_type, told.answer, only_ascii=only_ascii) if payloads else ""

    return shown


def _short(kind: str | None, value: object, *, only_ascii: bool) -> str:
    if value is None and kind != "json":
        return f"<{kind}>"
    return payload(value, columns=_COLUMNS, only_ascii=only_ascii)


def interrupts_of(ledger: RunLedger, run_id: str) -> list[Interrupt]:
    """All interrupts of a run, in the order in which they were asked."""
    found: list[Interrupt] = []
    after: str | None = None
    while page := ledger.interrupts(run_id=run_id, after=after, limit=_PAGE):
        found += page
        after = page[-1].interrupt_id
        if len(page) < _PAGE:
            break
    return found


def effects_of(ledger: RunLedger, run_id: str) -> list[Effect]:
    """All effects of a run, in the order in which they began."""
    found: list[Effect] = []
    after: str | None = None
    while page := ledger.effects(run_id, after=after, limit=_PAGE):
        found += page
        after = page[-1].effect_id
        if len(page) < _PAGE:
            break
    return found


class Questions:
    """The interrupts of the runs whose events are read."""

    def __init__(self, ledger: RunLedger) -> None:
        self._ledger = ledger
        self._known: dict[tuple[str, str], Interrupt] = {}

    def asked_in(self, event: Event) -> Interrupt | None:
        """The interrupt that an `interrupt.requested` is about; None for other events, and for what was deleted."""
        interrupt_id = event.details.get("interrupt_id")
        if event.name != "interrupt.requested" or event.run_id is None or not isinstance(interrupt_id, str):
            return None
        key = event.run_id, interrupt_id
        if key not in self._known:
            every = interrupts_of(self._ledger, event.run_id)
            self._known.update({(event.run_id, each.interrupt_id): each for each in every})
        return self._known.get(key)
