"""docs/guarantees.md is true of crashes: at each moment that it names, killed, and gone on from by another process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from langgraph_ext.testing import EffectLog
from tests.support import faults
from tests.support.killed_moments import MOMENTS, go, record

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guarantees.md").read_text("utf-8")
ROWS = [tuple(cell.strip() for cell in row.strip("|").split("|")) for row in re.findall(r"^\|.*\|$", PAGE, re.M)]
TABLE = {row[0]: row[1:3] for row in ROWS if len(row) == 4 and row[0] in MOMENTS}
IN_DOUBT = MOMENTS[2:5]
DONE = MOMENTS[3:]


def acted(folder: Path) -> int:
    return sum(EffectLog(folder / "effects").counts().values())


def killed(folder: Path, moment: str, options: object, attached: bool = True) -> None:
    assert faults.run(go, str(folder), options, moment, attached).killed


def goes_on(folder: Path, options: object, attached: bool = True) -> str:
    return str(faults.run(go, str(folder), options, None, attached).value())


def test_the_page_has_a_row_for_each_moment() -> None:
    assert list(MOMENTS) == list(TABLE)


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_is_on_record_after_a_kill_and_what_comes_then(tmp_path: Path, moment: str, attached: bool) -> None:
    """As the table says; an effect in doubt stops the run, and nothing else does. Nothing is done twice."""
    options = {"effect": "write"}
    killed(tmp_path, moment, options, attached)
    attempts, effects = record(str(tmp_path))
    assert TABLE[moment] == tuple(", ".join(each) or "–" for each in (attempts, effects))

    in_doubt = moment in IN_DOUBT
    assert ("recovery_required" if in_doubt else "r1") == goes_on(tmp_path, options, attached)
    ended = ["interrupted"] if in_doubt else [*(["interrupted"] * attempts.count("running")), "succeeded"]
    assert (ended, ["unknown" if in_doubt else "committed"]) == record(str(tmp_path))
    assert (0 if moment == MOMENTS[2] else 1) == acted(tmp_path)


@pytest.mark.parametrize("moment", IN_DOUBT)
def test_a_probe_finds_out_and_the_run_goes_on(tmp_path: Path, moment: str) -> None:
    options = {"effect": "write", "on_unknown": "probe"}
    killed(tmp_path, moment, options)

    assert ("r1", 1) == (goes_on(tmp_path, options), acted(tmp_path))
    assert ["committed"] == record(str(tmp_path))[1][-1:]


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if moment != MOMENTS[4]])
def test_without_effects_or_opaque(tmp_path: Path, moment: str) -> None:
    """The one runs again, whatever it did; of the other nobody knows, from its admission to its stored end."""
    plain, opaque = tmp_path / "none", tmp_path / "opaque"
    for folder in (plain, opaque):
        folder.mkdir()
        killed(folder, moment, {"effect": folder.name})

    again = moment in DONE and moment != MOMENTS[7]
    assert ("r1", 2 if again else 1) == (goes_on(plain, {"effect": "none"}), acted(plain))
    is_known = moment in (MOMENTS[0], MOMENTS[7])
    assert ("r1" if is_known else "recovery_required") == goes_on(opaque, {"effect": "opaque"})
