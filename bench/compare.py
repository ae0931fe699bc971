"""What happens to LangChain's `create_agent` and to `AgentNode` in the same situations: `python -m bench.compare`.

Prints a table, and progress on stderr. Processes are real and killed by SIGKILL; what tools have done is counted in a
file beside the database. Exit status: 0 AgentNode has done what it promises; 1 it has not, and stderr says where; 2
wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from time import perf_counter

from bench.machine import versions
from bench.scenarios.catalogue import SCENARIOS, Played, play
from bench.scenarios.page import HEAD, OPERATOR, as_json, columns, lines_of, markdown

__all__ = ["main"]

_PACKAGES = (
    "langgraph-ext",
    "langchain",
    "langchain-core",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "aiosqlite",
)

_say = partial(print, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 AgentNode has done what it promises; 1 it has not; 2 wrong usage."""
    options = _parse(arguments)
    found = versions(_PACKAGES)
    if not options.json:
        print(", ".join(f"{name} {version}" for name, version in found.items()))
        print(f"{OPERATOR}\n")
        print("\n".join(columns(("", *HEAD))), flush=True)
    rows = []
    for number in options.only:
        begun = perf_counter()
        rows.append(played := play(SCENARIOS[number], options.dir, options.form))
        if not options.json:
            print("\n".join(["", *lines_of(played)]), flush=True)
        _say(f"scenario {number}: {perf_counter() - begun:.1f} s")
    if options.json:
        print(json.dumps(as_json(rows, found, options.form), indent=1))
    if options.page is not None:
        options.page.write_text(markdown(rows, found, options.form, options.date), "utf-8")
        _say(f"written to {options.page}")
    return _judged(rows)


def _judged(rows: Sequence[Played]) -> int:
    broken = [each for each in rows if not each.kept]
    for each in broken:
        _say(f"AgentNode has broken its promise in scenario {each.scenario.number}: {each.told(ours=True)}")
    return 1 if broken else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", type=_numbers, default=list(SCENARIOS), metavar="3,4", help="which; default: all")
    parser.add_argument("--json", action="store_true", help="print everything for programs, and no table")
    parser.add_argument(
        "--form", choices=["async", "sync"], default="async", help="how graphs are invoked; default: %(default)s"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of the documentation there")
    parser.add_argument("--date", default=date.today().isoformat(), help="the date on the page; default: today")
    parser.add_argument(
        "--dir", type=Path, default=Path(tempfile.gettempdir()), help="where the databases are; default: %(default)s"
    )
    options = parser.parse_args(arguments)
    if options.page is not None and options.only != list(SCENARIOS):
        parser.error("--page needs all scenarios")
    return options


def _numbers(text: str) -> list[int]:
    found = [int(each) for each in text.split(",")]
    if strange := [each for each in found if each not in SCENARIOS]:
        raise argparse.ArgumentTypeError(f"there is no scenario {strange[0]}; there are 1 to {len(SCENARIOS)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
