"""docs/recovering.md is true: its program, run in turn with the commands, prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from langgraph_ext import RunLedger
from tests.support.pages import ROOT, masked, python

PAGE = (ROOT / "docs" / "recovering.md").read_text("utf-8")
PROGRAM = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)
CONSOLE = re.compile(r"^```console\n\$ (?P<command>.*)\n(?P<output>(?s:.*?))^```\n", re.M)
EFFECT = re.compile(r"resolve-effect (?P<id>[0-9a-f]{32})")
CODES = re.compile(r"^\| (?P<codes>(?:`\w+`(?:, )?)+) \|", re.M)


def test_a_payment_in_doubt_is_found_resolved_and_gone_on_from_as_the_page_says(tmp_path: Path) -> None:
    """All of it on one database, in the order of the page; what differs is the ids and times."""
    (tmp_path / "order.py").write_text(PROGRAM.findall(PAGE)[0], "utf-8")
    assert "no answer from the payment service\n" == python("order.py", cwd=tmp_path)
    with RunLedger(tmp_path / "runs.db") as ledger:
        [effect] = ledger.effects()

    examples = list(CONSOLE.finditer(PAGE))
    assert len(examples) == 7
    for example in examples:
        program, *args = shlex.split(EFFECT.sub(f"resolve-effect {effect.effect_id}", example["command"]))
        printed = python(*(["-m", "langgraph_ext.cli"] if program == "langgraph-ext" else []), *args, cwd=tmp_path)
        assert masked(example["output"]) == masked(printed)
    assert [effect.key] == (tmp_path / "charged.txt").read_text("utf-8").split()


def test_every_code_of_the_page_is_one_of_an_error() -> None:
    """The errors page, which lists them all, knows it."""
    named = {code for row in CODES.findall(PAGE) for code in re.findall(r"\w+", row)}
    errors = (ROOT / "docs" / "errors.md").read_text("utf-8")
    assert {"recovery_required", "retry_exhausted", "thread_busy", "lease_lost"} < named
    assert set() == {code for code in named if f"`{code}`" not in errors}
