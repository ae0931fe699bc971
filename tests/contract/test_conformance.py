"""LangGraph's own conformance suite, with nothing skipped."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.conformance.report import CapabilityReport

from langgraph_ext import LedgerSaver
from tests.support.backends import SqliteBackend
from tests.support.ciphers import KEYS


@pytest.fixture(params=["file", ":memory:", "encrypted file"])
async def report(request: pytest.FixtureRequest, backend: SqliteBackend) -> CapabilityReport:
    """What the suite says of LedgerSaver; each capability gets a database of its own."""
    numbers = itertools.count()

    @checkpointer_test(name=f"LedgerSaver on {request.param}")
    async def fresh() -> AsyncIterator[LedgerSaver]:
        url = request.param if request.param == ":memory:" else backend.url(f"capability-{next(numbers)}")
        encryption = KEYS if request.param.startswith("encrypted") else None
        async with LedgerSaver(url, encryption=encryption) as saver:
            yield saver

    return await validate(fresh)


def test_s1_the_conformance_suite_passes_with_nothing_skipped(report: CapabilityReport) -> None:
    """All eight capabilities are detected, each ran some tests, and no test failed."""
    assert sorted(capability.value for capability in ALL_CAPABILITIES) == sorted(report.results)
    assert 8 == len(report.results)
    for name, result in report.results.items():
        assert (True, True, 0, 0, []) == (
            result.detected,
            result.passed,
            result.tests_failed,
            result.tests_skipped,
            result.failures,
        ), name
        assert 5 <= result.tests_passed, f"{name} ran only {result.tests_passed} tests"
    assert report.passed_all()
