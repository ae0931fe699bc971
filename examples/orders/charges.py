"""Charges: what the bank's own ledger says of a killed run, beside what the shop's ledger had on record at the kill.

An order's charge meets one of four fates:

    receipt on record        before the kill   not called again
    charged, no receipt      before the kill   in doubt: the bank is asked, and nothing is charged again
    begun, not charged       at the kill       in doubt: the bank is asked, knows nothing, and charges
    not begun                                  charged

What counts in the end is the bank's ledger alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from examples.orders.worker import THREAD
from langgraph_ext import RunLedger
from langgraph_ext.demo.charges import read_charges

_MOST = 1000
"""Effects of a batch; more are not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The two ledgers, by key, while no process of the run is alive."""

    charged: frozenset[str]
    """By the bank."""
    recorded: frozenset[str]
    """With a receipt, by the shop."""
    open: frozenset[str]
    """On record as begun, by the shop, without a receipt: in doubt, as nobody runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """The fates of the charges; every set holds order ids."""

    due: frozenset[str]
    """Orders that are to be charged."""
    recorded: frozenset[str]
    unrecorded: frozenset[str]
    """Charged, and no receipt on record."""
    begun: frozenset[str]
    """Not charged, and in doubt."""
    times: Counter[str]
    """How often the bank has charged each, in the end."""

    @property
    def untouched(self) -> frozenset[str]:
        """Neither begun nor charged before the kill."""
        return self.due - self.recorded - self.unrecorded - self.begun

    @property
    def hit(self) -> bool:
        """Whether the kill fell between a charge and its record, and not before all others."""
        return bool(self.unrecorded and self.recorded)

    @property
    def repeated(self) -> frozenset[str]:
        """Charged more often than once; the promise is that this stays empty."""
        return frozenset(order for order, times in self.times.items() if times > 1)

    @property
    def missed(self) -> frozenset[str]:
        """Due, and never charged."""
        return frozenset(order for order in self.due if not self.times[order])

    @property
    def not_due(self) -> frozenset[str]:
        """Charged, and not to be."""
        return frozenset(self.times) - self.due

    @property
    def once(self) -> bool:
        """Whether every order that is due was charged once, and no other order was."""
        return self.times == Counter(self.due)


def read_books(db: Path, charges: Path) -> Books:
    """Both ledgers, as they stand."""
    with RunLedger(db) as ledger:
        effects = ledger.effects(thread_id=THREAD, limit=_MOST)
    return Books(
        charged=frozenset(charge.key for charge in read_charges(charges)),
        recorded=frozenset(effect.key for effect in effects if effect.receipt_type is not None),
        open=frozenset(effect.key for effect in effects if effect.receipt_type is None),
    )


def fates(at_kill: Books, charges: Path, due: frozenset[str]) -> Fates:
    """Compare the books after the kill with what the bank holds in the end."""
    made = read_charges(charges)

    def orders(keys: frozenset[str]) -> frozenset[str]:
        return frozenset(charge.order for charge in made if charge.key in keys)

    return Fates(
        due=due,
        recorded=orders(at_kill.recorded),
        unrecorded=orders(at_kill.charged - at_kill.recorded),
        begun=orders(at_kill.open - at_kill.charged),
        times=Counter(charge.order for charge in made),
    )
