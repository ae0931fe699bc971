"""Intake: rows of an order file become orders, or rejections that say why not."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from examples.orders.pricing import VAT_PERCENT, Line, Order, cents

Row = dict[str, str]


class Rejection(TypedDict):
    """An order that goes no further."""

    order_id: str
    reason: str


def read_rows(source: Path) -> list[Row]:
    """Every row of the order file, as text."""
    with source.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sort_out(rows: Iterable[Row]) -> tuple[list[Order], list[Rejection]]:
    """Split rows into orders that can be priced and rejections; of two rows with one id the first counts."""
    orders: list[Order] = []
    rejections: list[Rejection] = []
    seen: set[str] = set()
    for row in rows:
        result = "duplicate order id" if row["order_id"] in seen else _read(row)
        seen.add(row["order_id"])
        if isinstance(result, str):
            rejections.append(Rejection(order_id=row["order_id"], reason=result))
        else:
            orders.append(result)
    return orders, rejections


def _read(row: Row) -> Order | str:
    """The order in a row, or the reason why there is none."""
    if row["country"] not in VAT_PERCENT:
        return "country not served"
    lines = [_line(item) for item in row["items"].split(";")]
    good = [line for line in lines if line is not None]
    if len(good) < len(lines):
        return "bad quantity"
    try:
        net = cents(row["net_total_eur"])
    except ArithmeticError:
        return "bad amount"
    return Order(order_id=row["order_id"], customer=row["customer"], country=row["country"], lines=good, net_cents=net)


def _line(item: str) -> Line | None:
    """`"LAMP-OAK x2"` as a line; None unless its quantity is a positive whole number."""
    sku, _, quantity = item.strip().partition(" x")
    if not quantity.isdecimal() or int(quantity) == 0:
        return None
    return Line(sku=sku, quantity=int(quantity))
