"""Fixtures of the tests of agent nodes."""

from __future__ import annotations

import asyncio

import pytest

from langgraph_ext import LedgerSaver
from tests.support.acted import Acts
from tests.support.driver import Form


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, durability: str, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under every durability."""
    return Acts(saver, form, durability, loop)


@pytest.fixture
def lasting(acts: Acts) -> Acts:
    """Where attempts are on record."""
    if acts.durability == "exit":
        pytest.skip("under exit no attempt is on record")
    return acts
