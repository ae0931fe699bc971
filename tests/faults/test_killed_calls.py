"""L35: the bill of a call and the answer that is kept of it are one commit, over kills on either side of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import faults
from tests.support.killed_calls import paid, pay, spent

FORMS = pytest.mark.parametrize("form", ["sync", "async"])


@FORMS
def test_l35_an_answer_whose_bill_was_committed_is_not_paid_for_again(tmp_path: Path, form: str) -> None:
    """The process dies right behind that commit; the next attempt is given the answer."""
    folder = str(tmp_path)
    assert faults.run(pay, folder, form, "after").killed
    killed = spent(folder)
    assert "answer 1" == faults.run(pay, folder, form, None).value()

    assert (["settled"], (15, False), ["answer 1"]) == (killed["calls"], killed["tokens"], killed["memos"])
    assert (1, {**killed, "findings": []}) == (paid(folder), spent(folder))


@FORMS
def test_l35_an_answer_whose_bill_was_not_committed_is_neither_billed_nor_kept(tmp_path: Path, form: str) -> None:
    """The process dies right before that commit: the call was made, so its bound stays reserved; it is made again."""
    folder = str(tmp_path)
    assert faults.run(pay, folder, form, "before").killed
    killed = spent(folder)
    assert "answer 2" == faults.run(pay, folder, form, None).value()
    end = spent(folder)

    assert (["open"], (0, True), []) == (killed["calls"], killed["tokens"], killed["memos"])
    assert (["interrupted", "settled"], (15, True), ["answer 2"]) == (end["calls"], end["tokens"], end["memos"])
    assert (2, []) == (paid(folder), end["findings"])
