"""L47: what was chosen of an effect of a fork counts over a kill right behind the choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import faults
from tests.support.killed_forks import fork, go_on, told


@pytest.mark.parametrize(("answer", "charges"), [("act", 2), ("reuse", 1)])
def test_l47_what_was_chosen_counts_behind_a_kill(tmp_path: Path, answer: str, charges: int) -> None:
    """The next process is not asked again: it does what was chosen, once."""
    folder = str(tmp_path)
    faults.run(fork, folder).value()
    assert faults.run(go_on, folder, answer, True).killed
    killed = told(folder)
    assert 0 == faults.run(go_on, folder, None, False).value()
    end = told(folder)

    chosen = [{"act": "effect.repeated", "reuse": "effect.reused"}[answer]]
    assert (1, chosen) == (killed["charges"], killed["events"])
    assert (charges, chosen, "succeeded", []) == (end["charges"], end["events"], end["status"], end["findings"])
