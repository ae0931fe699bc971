"""L53, L29: processes that die around a settlement with an application's rows in it, and in the middle of a round."""

from __future__ import annotations

from pathlib import Path

import pytest

from langgraph_ext.ledger.effect_keys import base_key
from tests.support import faults
from tests.support.killed_inside import book, go_on, rounds, stored


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sync", "async"])
def test_l53_wherever_a_process_dies_rows_and_settlement_are_both_there_or_neither(tmp_path: Path, form: str) -> None:
    """Before each statement, before and after each commit from the body on; going on leaves the rows once."""
    (tmp_path / "dry").mkdir()
    count = faults.run(book, str(tmp_path / "dry"), form, 0).value()
    seen = set()
    for at in faults.every(count, sample=14):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert faults.run(book, str(folder), form, at).killed
        words, settled = stored(str(folder))
        seen.add(settled)
        assert (["one", "two"] if settled else []) == words
        assert [] == faults.run(go_on, str(folder), form).value()
        assert (["one", "two"], True) == stored(str(folder))

    assert {True, False} == seen


@pytest.mark.parametrize("form", ["sync", "async"])
def test_l29_a_round_that_was_killed_has_the_same_base_key_when_it_is_gone_on_with(tmp_path: Path, form: str) -> None:
    """In the second round of a plain node, in the middle of the call: it is called again with that key."""
    assert faults.run(rounds, str(tmp_path), form, 2).killed
    keys = faults.run(rounds, str(tmp_path), form, 0).value()

    assert [base_key("order-7", (each, 1), "charge", None) for each in (1, 2, 2, 3)] == keys
