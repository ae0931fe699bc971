"""S6: who follows the ledger of an encrypted database is told what he is told of a plain one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver, with_ledger
from tests.support.apps import CONFIG, asks, fails, line, says, tried
from tests.support.ciphers import CONVENTIONS
from tests.support.driver import Form
from tests.support.sealed import MARK

STORIES: dict[str, Callable[[LedgerSaver], Any]] = {
    "that has ended": lambda saver: line(saver, a=says(MARK), b=says(MARK)),
    "that has failed": lambda saver: line(saver, a=says(MARK), fails=fails(9, MARK)),
    "that asks": lambda saver: line(saver, a=says(MARK), asks=asks({"kind": MARK, "x": MARK})),
}


def followed(path: Path, story: str, form: Form, loop: asyncio.AbstractEventLoop, **options: Any) -> list[Any]:
    """What was told of the run, and of everything; times, ids and cursors are left out, which are others each time."""

    async def all_of(ledger: Any, *run_id: str) -> list[Any]:
        return [event async for event in ledger.afollow(*run_id, idle_seconds=0)]

    with LedgerSaver(path, **options) as saver:
        app = with_ledger(STORIES[story](saver))
        tried(app, (MARK,), durability="sync")
        if story == "that asks":
            (question,) = saver.ledger.interrupts(pending=True)
            saver.ledger.answer({question.interrupt_id: MARK}, by=MARK)
            app.invoke(saver.ledger.resume_command("t"), CONFIG, durability="sync")
        [run] = saver.ledger.runs()
        told: list[Any] = []
        for which in ([run.run_id], []):
            if form == "sync":
                found = list(saver.ledger.follow(*which, idle_seconds=0))
            else:
                found = loop.run_until_complete(all_of(saver.ledger, *which))
            assert found == saver.ledger.events(*which, limit=500)
            told += found
        return [(event.name, event.node, event.run_seq, _worded(event.details)) for event in told]


def _worded(details: Any) -> Any:
    return {key: value if MARK in repr(value) else type(value) for key, value in dict(details).items()}


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("story", STORIES)
def test_s6_a_follower_is_told_what_he_is_told_of_a_plain_database(
    tmp_path: Path, story: str, convention: str, form: Form, loop: asyncio.AbstractEventLoop
) -> None:
    """Of a run until it has ended, and of all runs."""
    plain = followed(tmp_path / "plain.db", story, form, loop)
    assert plain == followed(tmp_path / "sealed.db", story, form, loop, **CONVENTIONS[convention])
    assert (MARK in repr(plain)) == (story != "that has ended")
