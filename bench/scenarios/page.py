"""Page: what was played, for a terminal, for programs, and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from textwrap import fill, wrap
from typing import Any

from bench.scenarios.catalogue import SCENARIOS, Played
from bench.scenarios.sides import Form

__all__ = ["HEAD", "OPERATOR", "as_json", "columns", "lines_of", "markdown"]

HEAD = ("what was asked", "create_agent", "AgentNode")
"""What stands above the columns, but for the numbers."""

OPERATOR = (
    "AgentNode asks a person about a call of which nobody knows whether it acted. Here the script answers: it looks "
    "into the file of effects, and says what is true. create_agent asks nothing of the kind."
)

_WIDTHS = (3, 36, 40, 40)

_INTRODUCTION = """\
The same situations for LangChain's `create_agent` on `{saver}`, with `HumanInTheLoopMiddleware` where a person
approves, and for `AgentNode` on `LedgerSaver`. Both have the same scripted model (no network, no key), the same tool,
`durability="sync"` and an SQLite file of their own. Processes are real, and so are their kills (SIGKILL). What was done
is counted in a file beside the database, which is synced before the tool returns.

`AgentNode` does not promise that a tool acts and is recorded in one: a process can die in between. Then the call is
*in doubt*, and a person is asked what came of it (tools are `once` unless they say otherwise: [react.md](react.md)).
In these runs the script is that person: it looks into the file of effects, and answers truthfully, `respond` with the
receipt if the payment was made, `approve` if it was not. How many questions that takes is in the table.
`create_agent` asks no such question; it calls the tool again."""

_RUNNING = """\
```sh
make bench-compare                           # the table, in less than two minutes
make bench-compare ARGS="--only 3,4"         # some of it
make bench-compare ARGS="--form sync"        # with invoke and SqliteSaver instead of ainvoke and AsyncSqliteSaver
make bench-compare ARGS="--json"             # for programs
```

The exit status is 1 if `AgentNode` has broken a promise in any scenario. What each does is in
[bench/scenarios](../bench/scenarios/catalogue.py)."""

_READING = """\
- `create_agent` is used as its documentation says; `invoke(None)` goes on after a crash. Approvals are asked for in
  both modes of the middleware: `batched`, its default, and `per_call`.
- The graph of `AgentNode` is compiled with a `LedgerSaver` and nothing else; `with_ledger` is not used.
- 1, 2, 3, 5 and 6 depend on time: what `create_agent` repeats, and how many questions `AgentNode` asks, differs from
  run to run, and with the form.
- `thread_busy` is what `AgentNode` tells a worker that comes second: nothing was done, and the other one goes on.
- Not shown: tools that do not mind being called again (`repeatable`, `keyed`), for which `AgentNode` asks nobody."""


def lines_of(played: Played) -> Iterator[str]:
    """One row of the table of a terminal."""
    cells = (f"{played.scenario.number}", played.scenario.asked, played.told(ours=False), played.told(ours=True))
    yield from columns(cells)


def columns(cells: Sequence[str]) -> Iterator[str]:
    """Cells side by side."""
    wrapped = [wrap(cell.replace("`", ""), width) for cell, width in zip(cells, _WIDTHS, strict=True)]
    for parts in zip_longest(*wrapped, fillvalue=""):
        yield "  ".join(f"{part:{width}}" for part, width in zip(parts, _WIDTHS, strict=True)).rstrip()


def as_json(rows: Iterable[Played], versions: Mapping[str, str], form: Form) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "versions": dict(versions),
        "form": form,
        "scenarios": [
            {
                "number": each.scenario.number,
                "asked": each.scenario.asked,
                "kept": each.kept,
                **{side.name: {"told": found.told, **found.counts} for side, found in each.found.items()},
            }
            for each in rows
        ],
    }


def markdown(rows: Sequence[Played], versions: Mapping[str, str], form: Form, date: str) -> str:
    """The page."""
    saver = "AsyncSqliteSaver" if form == "async" else "SqliteSaver"
    table = _table(
        ["", *HEAD],
        [
            [str(each.scenario.number), each.scenario.asked, each.told(ours=False), each.told(ours=True)]
            for each in rows
        ],
    )
    blocks = ["# Comparison", f"Written by `make bench-compare` on {date}; do not edit."]
    blocks += [_INTRODUCTION.format(saver=saver), "## What happens", table, _READING, "## Run it", _RUNNING]
    blocks += ["## The scenarios"]
    for each in SCENARIOS.values():
        blocks += [
            f"**{each.number}. {_first(each.asked)}**",
            _filled(each.does),
            _filled(f"*Why it matters.* {each.why}"),
        ]
    blocks += ["## With what", _table(["", ""], [[name, value] for name, value in versions.items()])]
    return "\n\n".join(blocks) + "\n"


def _filled(text: str) -> str:
    return fill(text, 118, break_long_words=False, break_on_hyphens=False)


def _first(asked: str) -> str:
    return asked.rpartition(":")[0] + "." if ":" in asked else asked


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---" for _ in head], *([cell.replace("|", "\\|") for cell in line] for line in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
