"""Run the benchmark: `python -m bench.run`, or `make bench`.

Prints the page, and progress on stderr. Without options it runs every case seven times and writes
docs/benchmarks.md; with options that leave something out it writes no file unless one is named.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path

from bench.bars import JUDGED_ROUNDS
from bench.cases import CASES, DEFAULT_CASES
from bench.machine import machine, versions
from bench.ratios import missed, rows
from bench.report import Run, as_json, caveats, markdown
from bench.rounds import Series, run_rounds
from bench.savers import PAIRS, pragmas_of
from bench.sizes import FULL, SMOKE

__all__ = ["main"]

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"

_say = partial(print, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done; 1 with `--check`, a bar was missed; 2 wrong usage."""
    options = _parse(arguments)
    run = _run(options)
    page = markdown(run)
    print(page)
    target = options.markdown or (PAGE if _is_complete(options) else None)
    if target is not None:
        target.write_text(page, "utf-8")
        _say(f"written to {target}")
    if options.json is not None:
        options.json.write_text(json.dumps(as_json(run), indent=1), "utf-8")
        _say(f"written to {options.json}")
    return _checked(run) if options.check else 0


def _run(options: argparse.Namespace) -> Run:
    series = [
        Series(case, durability)
        for case in (CASES[letter] for letter in options.case)
        for durability in (
            case.durabilities if case.durabilities == (None,) else options.durability or case.durabilities
        )
    ]
    contestants = [contestant for pair in PAIRS for contestant in (pair.peer, pair.ours)]
    pragmas = {each.label: pragmas_of(each, options.dir) for each in contestants}
    before = os.getloadavg()[0]
    size = SMOKE if options.smoke else FULL
    run_rounds(series, rounds=options.rounds, size=size, root=options.dir, progress=_say)
    return Run(
        date=options.date,
        rounds=options.rounds,
        smoke=options.smoke,
        machine=machine(options.dir),
        versions=versions(),
        pragmas=pragmas,
        load=(before, os.getloadavg()[0]),
        series=series,
    )


def _checked(run: Run) -> int:
    for caveat in caveats(run):
        _say(f"warning: {caveat}")
    failures = missed(rows(run.series))
    for row in failures:
        assert row.bar is not None, "only what has a bar can miss it"
        _say(f"missed: {row.title}: {row.paired.ratio:.3f}, the bar is {row.bar.sign} {row.bar.bar:g}")
    return 1 if failures else 0


def _is_complete(options: argparse.Namespace) -> bool:
    """Whether a run is one that may replace the published page."""
    everything = set(DEFAULT_CASES) <= set(options.case) and not options.durability
    return everything and not options.smoke and options.rounds >= JUDGED_ROUNDS


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--case", action="append", choices=list(CASES), help="repeatable; default: all")
    parser.add_argument("--rounds", type=int, help=f"default: {JUDGED_ROUNDS}, or 1 with --smoke")
    parser.add_argument(
        "--durability",
        action="append",
        choices=["sync", "async", "exit"],
        help="repeatable; default: sync and async for A, async for the others; E knows none",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number there")
    parser.add_argument("--date", default=date.today().isoformat(), help="the date on the page; default: today")
    parser.add_argument(
        "--dir", type=Path, default=Path(tempfile.gettempdir()), help="where the databases are; default: %(default)s"
    )
    parser.add_argument("--smoke", action="store_true", help="tiny, to see that everything runs; no numbers to use")
    parser.add_argument(
        "--check", action="store_true", help=f"exit 1 if a bar is missed; {JUDGED_ROUNDS} rounds or more"
    )
    options = parser.parse_args(arguments)
    options.case = list(dict.fromkeys(options.case or DEFAULT_CASES))
    options.durability = list(dict.fromkeys(options.durability or []))
    if options.rounds is None:
        options.rounds = 1 if options.smoke else JUDGED_ROUNDS
    if problem := _problem(options):
        parser.error(problem)
    return options


def _problem(options: argparse.Namespace) -> str | None:
    """What is wrong with the options; found before minutes are spent."""
    if options.rounds < 1:
        return "--rounds must be at least 1"
    if options.check and (options.smoke or options.rounds < JUDGED_ROUNDS):
        return f"--check needs full runs of at least {JUDGED_ROUNDS} rounds"
    targets = [target.parent for target in (options.markdown, options.json) if target is not None]
    missing = [folder for folder in (options.dir, *targets) if not folder.is_dir()]
    return f"no such folder: {missing[0]}" if missing else None


if __name__ == "__main__":
    sys.exit(main())
