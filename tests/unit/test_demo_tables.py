"""The demo's table of charges says what the bank's ledger says, of a run that went wrong as well."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.table import Table

from examples.orders import tables
from examples.orders.charges import Fates

SOUND: dict[str, Any] = {
    "due": frozenset("ABCD"),
    "recorded": frozenset("A"),
    "unrecorded": frozenset("B"),
    "begun": frozenset("C"),
    "times": Counter("ABCD"),
}


def rows(table: Table) -> list[tuple[str, ...]]:
    return list(zip(*[[str(cell) for cell in column.cells] for column in table.columns], strict=True))


def test_each_order_of_a_sound_run_stands_in_the_line_of_its_fate() -> None:
    assert [
        ("charged, receipt on record", "not charged again", "1", "A"),
        ("charged, no receipt on record", "not charged again", "1", "B"),
        ("begun, not charged: in doubt", "charged then", "1", "C"),
        ("not begun", "charged then", "1", "D"),
    ] == rows(tables.charges(Fates(**SOUND)))


def test_an_order_that_was_charged_twice_or_never_is_in_no_line_that_says_otherwise() -> None:
    """One that was not to be charged has a line as well."""
    fates = Fates(**{**SOUND, "times": Counter("ABBDX")})

    assert [
        ("charged, receipt on record", "not charged again", "1", "A"),
        ("charged, no receipt on record", "not charged again", "0", ""),
        ("charged, no receipt on record", "CHARGED MORE THAN ONCE", "1", "B"),
        ("begun, not charged: in doubt", "charged then", "0", ""),
        ("begun, not charged: in doubt", "NOT CHARGED", "1", "C"),
        ("not begun", "charged then", "1", "D"),
        ("not to be charged", "CHARGED", "1", "X"),
    ] == rows(tables.charges(fates))
