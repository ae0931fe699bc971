#!/usr/bin/env python
"""What encryption costs: case A, a superstep, with it and without, in rounds that take turns.

    python -m bench.encryption [--rounds 9]

For each form and durability: the median of a superstep in microseconds, without and with, and the median of the rounds'
ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from langgraph.types import Durability

from bench.cases import superstep
from bench.driver import AsyncDriver, Driver, Form, SyncDriver
from bench.savers import Contestant
from bench.sizes import FULL, SMOKE, Size
from langgraph_ext import Encryption, LedgerSaver

_KEYS = Encryption({"bench": os.urandom(32)})

_FORMS: tuple[Form, ...] = ("sync", "async")

_DURABILITIES: tuple[Durability, ...] = ("sync", "async")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--smoke", action="store_true", help="only show that it runs")
    options = parser.parse_args(arguments)
    size, rounds = (SMOKE, 1) if options.smoke else (FULL, options.rounds)
    sys.stdout.write("| form | durability | plain, µs | encrypted, µs | ratio |\n| --- | --- | --- | --- | --- |\n")
    for form in _FORMS:
        for durability in _DURABILITIES:
            plain, sealed = _measure(form, durability, size, rounds)
            ratio = median(b / a for a, b in zip(plain, sealed, strict=True))
            sys.stdout.write(f"| {form} | {durability} | {median(plain):.0f} | {median(sealed):.0f} | {ratio:.2f} |\n")
            sys.stdout.flush()
    return 0


def _measure(form: Form, durability: Durability, size: Size, rounds: int) -> tuple[list[float], list[float]]:
    plain: list[float] = []
    sealed: list[float] = []
    for number in range(rounds):
        sides = [(plain, _contestant(form, None)), (sealed, _contestant(form, _KEYS))]
        for found, contestant in sides if number % 2 else reversed(sides):
            with TemporaryDirectory() as folder:
                found.append(superstep(contestant, Path(folder), durability, size)["superstep"])
    return plain, sealed


def _contestant(form: Form, encryption: Encryption | None) -> Contestant:
    @contextmanager
    def opened(folder: Path) -> Iterator[Driver]:
        with asyncio.Runner() as runner, LedgerSaver(folder / "runs.db", encryption=encryption) as saver:
            yield AsyncDriver(saver, str, runner) if form == "async" else SyncDriver(saver, str)

    return Contestant("encrypted" if encryption else "plain", form, opened)


if __name__ == "__main__":
    raise SystemExit(main())
