"""docs/comparison.md is true: it has a row for each scenario, and what two of them play is what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.compare import main
from bench.scenarios.catalogue import SCENARIOS
from tests.support.pages import ROOT

PAGE = (ROOT / "docs" / "comparison.md").read_text("utf-8")
ROW = re.compile(r"^\| (?P<number>\d+) \| (?P<asked>.*) \| (?P<theirs>.*) \| (?P<ours>.*) \|$", re.M)
CHEAP = (7, 8)


def test_the_page_has_a_row_for_each_scenario() -> None:
    rows = [(int(row["number"]), row["asked"]) for row in ROW.finditer(PAGE)]
    assert [(each.number, each.asked) for each in SCENARIOS.values()] == rows
    text = " ".join(PAGE.split())
    assert [] == [each.number for each in SCENARIOS.values() if each.does not in text or each.why not in text]


def test_what_is_played_is_what_the_page_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No truncated call is run; and a crash in the middle of a model call gives none back."""
    only = ",".join(map(str, CHEAP))
    assert 0 == main(["--only", only, "--json", "--dir", str(tmp_path)])
    played = {each["number"]: each for each in json.loads(capsys.readouterr().out)["scenarios"]}
    assert list(CHEAP) == list(played)
    assert (0, 3) == (played[7]["agent_node"]["executed"], played[8]["agent_node"]["dispatches"])
    shown = {int(row["number"]): row["ours"] for row in ROW.finditer(PAGE)}
    assert {number: each["agent_node"]["told"] for number, each in played.items()} == {n: shown[n] for n in CHEAP}
