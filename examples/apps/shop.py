"""What the apps do to the world outside: a shop whose books say what was done, and how often."""

from __future__ import annotations

from pathlib import Path

__all__ = ["BOOKS", "charge", "refund", "stock", "weather"]

BOOKS = Path("shop.log")
"""One line for each thing that was done; a test puts it elsewhere."""


def stock(article: str) -> str:
    """How many of an article there are."""
    return f"{len(article)} of {article}"


def weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


def refund(order: str) -> str:
    """Give the money for an order back."""
    _note(f"refund {order}")
    return f"refunded {order}"


def charge(order: str, key: str = "") -> str:
    """Take the money for an order."""
    _note(f"charge {order}")
    return f"receipt of {order}"


def _note(line: str) -> None:
    with BOOKS.open("a", encoding="utf-8") as books:
        books.write(line + "\n")
