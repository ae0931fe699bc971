"""Batches: long work that is done in many transactions, written once for both forms.

What is done is a generator. It gives one transaction after the other, is sent what each has returned, and returns what
came of it all; a form says how to run a transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

__all__ = ["Batches", "arun_batches", "run_batches"]

B = TypeVar("B")
D = TypeVar("D")
R = TypeVar("R")

Batches = Generator[B, D, R]
"""Gives batches, of which there is one at least."""


def run_batches(batches: Batches[B, D, R], run: Callable[[B], D]) -> R:
    """Run them all."""
    batch = next(batches)
    while True:
        done = run(batch)
        try:
            batch = batches.send(done)
        except StopIteration as ended:
            result: R = ended.value
            return result


async def arun_batches(batches: Batches[B, D, R], run: Callable[[B], Awaitable[D]]) -> R:
    """As `run_batches`."""
    batch = next(batches)
    while True:
        done = await run(batch)
        try:
            batch = batches.send(done)
        except StopIteration as ended:
            result: R = ended.value
            return result
