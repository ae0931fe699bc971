"""Questions of runs, found by their id when an event names one, and how their payloads are shown."""

from __future__ import annotations

from langgraph_ext.cli.story import Shown
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.records import Event, Interrupt
from langgraph_ext.render import payload

__all__ = ["Questions", "interrupts_of", "shown_by"]

_PAGE = 1000
_COLUMNS = 60
"""Of a payload, wherever it stands."""


def shown_by(*, payloads: bool, only_ascii: bool) -> Shown:
    """How payloads are shown: shortened, or not at all."""

    def shown(question: Interrupt) -> str:
        if not payloads:
            return ""
        if question.value is None and question.value_type != "json":
            return f"<{question.value_type}>"
        return payload(question.value, columns=_COLUMNS, only_ascii=only_ascii)

    return shown


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
