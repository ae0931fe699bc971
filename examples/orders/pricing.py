"""Prices: what an order costs, asked of a price service that is slow and takes few callers.

The service is the example's only workload: it reads `prices.csv` and sleeps before every answer.  Money is whole
cents everywhere, so that two runs over the same file cannot differ by a rounding.
"""

from __future__ import annotations

import csv
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import TypedDict

VAT_PERCENT = {"AT": 20, "BE": 21, "DE": 19, "ES": 21, "FR": 20, "IT": 22, "NL": 21, "PL": 23, "SE": 25}
"""Value added tax by country; a country that is missing here is not served."""

_CALLERS = threading.BoundedSemaphore(3)


class Line(TypedDict):
    """One article of an order."""

    sku: str
    quantity: int


class Order(TypedDict):
    """An order whose every field could be read; nothing is known about its prices yet."""

    order_id: str
    customer: str
    country: str
    lines: list[Line]
    net_cents: int
    """What the customer was told the order costs, without tax."""


class Priced(TypedDict):
    """An order beside what the price service says about it."""

    order_id: str
    customer: str
    country: str
    net_cents: int
    tax_cents: int
    gross_cents: int
    problem: str | None
    """Why the order cannot be shipped as it is, or None."""


def cents(euros: str) -> int:
    """An amount such as `"419.90"` in cents; raises `ArithmeticError` when it is none."""
    return int((Decimal(euros) * 100).to_integral_exact())


def price_order(order: Order, prices: Path, *, lookup_seconds: float) -> Priced:
    """Price one order, add its country's tax and compare with what the customer was told.

    Args:
        order: The order; its country must be in `VAT_PERCENT`.
        prices: Path of the price list.
        lookup_seconds: How long the service takes for one article.
    """
    units = _look_up([line["sku"] for line in order["lines"]], prices, lookup_seconds)
    net = sum(line["quantity"] * (units[line["sku"]] or 0) for line in order["lines"])
    tax = (net * VAT_PERCENT[order["country"]] + 50) // 100
    return Priced(
        order_id=order["order_id"],
        customer=order["customer"],
        country=order["country"],
        net_cents=net,
        tax_cents=tax,
        gross_cents=net + tax,
        problem=_problem(order, units, net),
    )


def _look_up(skus: list[str], prices: Path, lookup_seconds: float) -> dict[str, int | None]:
    with _CALLERS:
        time.sleep(lookup_seconds * len(skus))
        with prices.open(encoding="utf-8", newline="") as file:
            known = {row["sku"]: cents(row["unit_price_eur"]) for row in csv.DictReader(file)}
    return {sku: known.get(sku) for sku in skus}


def _problem(order: Order, units: dict[str, int | None], net: int) -> str | None:
    if any(price is None for price in units.values()):
        return "unknown article"
    if net != order["net_cents"]:
        return "total differs from the price list"
    return None
