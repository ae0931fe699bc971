"""What operators read in the log `langgraph_ext`: takeovers, recovery and doubts; nothing per step."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import RecoveryRequired
from langgraph_ext.nodes import Frame
from tests.support import faults
from tests.support.acted import Acts
from tests.support.apps import Boom, line
from tests.support.driver import Form
from tests.support.killed_durable import CONFIG, build, run

SECRET = "sesame"


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, "sync", loop)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="langgraph_ext")
    return caplog


def told(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Level and first words of what was logged."""
    ours = [each for each in log.records if each.name == "langgraph_ext"]
    return [(each.levelname, each.getMessage().partition(":")[0]) for each in ours]


def _boom(key: str) -> Any:
    raise Boom(SECRET)


def test_logging_a_run_that_goes_well_says_nothing(acts: Acts, log: pytest.LogCaptureFixture) -> None:
    """Neither does one that fails and goes on."""
    left = iter([True])

    def body(frame: Frame) -> Any:
        frame.once("act", {}, lambda key: "done")
        for _ in left:
            raise Boom("once")
        return {"log": []}

    app = line(acts.saver, a=acts.node("a", body, effect="write"))
    acts.run(app)
    acts.run(app, None)

    assert [] == told(log)
    assert any(isinstance(each, logging.NullHandler) for each in logging.getLogger("langgraph_ext").handlers)


def test_logging_a_doubt_is_a_warning_and_its_end_is_told(acts: Acts, log: pytest.LogCaptureFixture) -> None:
    """By ids; what was sent, and what went wrong, is not in the log."""
    app = line(acts.saver, a=acts.node("a", lambda frame: frame.once("act", {"word": SECRET}, _boom), effect="write"))
    acts.run(app)
    with pytest.raises(RecoveryRequired):
        acts.run(app, None)
    (effect,) = acts.saver.ledger.effects()
    acts.saver.ledger.resolve_effect(effect.effect_id, receipt=SECRET)

    assert [("WARNING", "in doubt"), ("INFO", "effect resolved")] == told(log)
    assert effect.effect_id in log.records[0].getMessage()
    assert SECRET not in log.text


def test_logging_a_takeover_and_a_recovery_are_told(tmp_path: Path, form: Form, log: pytest.LogCaptureFixture) -> None:
    """Of a process that died in an opaque body: here, when they are committed."""
    assert faults.run(run, str(tmp_path), form, "sync", "opaque", False).killed

    def go_on(saver: LedgerSaver) -> Any:
        app = build(str(tmp_path), form, "opaque").compile(checkpointer=saver)
        if form == "sync":
            return app.invoke(None, CONFIG, durability="sync")
        return asyncio.run(app.ainvoke(None, CONFIG, durability="sync"))

    with LedgerSaver(tmp_path / "runs.db") as saver:
        with pytest.raises(RecoveryRequired) as refusal:
            go_on(saver)
        for _ in range(2):
            saver.ledger.authorize_recovery(str(refusal.value.details["attempt_id"]))
        go_on(saver)

    refused = [("INFO", "lease taken over"), ("INFO", "attempt interrupted"), ("WARNING", "in doubt")]
    assert [*refused, ("INFO", "recovery authorized")] == told(log)
