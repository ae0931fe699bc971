"""S8: a forked child may not use the database its parent opened, and does it no harm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.database import children
from tests.database.notes import notes, open_notes
from tests.support.faults import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@pytest.mark.parametrize("call", ["transact", "read", "atransact", "aread"])
def test_s8_a_forked_child_is_refused(path: Path, call: str) -> None:
    """A clear error with code `forked` and a way out; the parent goes on writing and reading."""
    refused = run(children.use_after_fork, str(path), call).value()

    assert "forked" == refused["code"]
    assert "open it anew" in refused["message"]
    assert ["before", "after"] == refused["parent"] == open_notes(path).read(notes)


def test_s8_a_forked_child_may_open_its_own(path: Path) -> None:
    """What the message advises works: both write, and nothing is lost."""
    assert ["before", "child", "after"] == run(children.open_after_fork, str(path)).value()


def test_s8_a_database_that_was_only_named_may_be_used_after_a_fork(path: Path) -> None:
    """Servers make their objects first and fork then: whoever had not used it yet may, in parent and child."""
    assert ["child", "parent"] == run(children.fork_before_use, str(path)).value()


def test_s8_a_forked_child_that_ends_does_its_parent_no_harm(path: Path) -> None:
    """The child closes what it inherited, collects it as garbage and ends, while the parent goes on committing."""
    report = run(children.end_after_fork, str(path)).value()

    assert [0, 200, "ok"] == [report["child"], report["stored"], report["integrity"]]


def test_s8_a_fork_while_others_commit_hangs_nobody(path: Path) -> None:
    """A child forked in the middle of commits is refused at once: it waits for no lock that nobody will give back."""
    assert ["forked"] * 20 == run(children.fork_under_load, str(path)).value()
