"""Fixtures of all tests: a backend, savers on it, and the two forms of every method."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from langgraph.checkpoint.memory import InMemorySaver

import langgraph_ext
from langgraph_ext.database import open_database
from tests.support.backends import SqliteBackend
from tests.support.build import VERSIONS
from tests.support.compare import difference
from tests.support.driver import Driver, Form
from tests.support.faults import full
from tests.support.reference import Reference
from tests.support.stories import Teller

pytest.register_assert_rewrite("tests.support.witness")  # so that it shows what differs
settings.register_profile("quick", max_examples=100, deadline=None, print_blob=True)
settings.register_profile("full", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("full" if os.environ.get("LANGGRAPH_EXT_TEST_FULL") == "1" else "quick")

_BACKENDS = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.skip(reason="PostgreSQL lane does not exist yet")),
]


_MIXED = [("sync", "async"), ("async", "sync")]
"""Durability and form of a graph that few of its paths tell from the other four: `make faults` runs them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs in every form and durability of a graph does so in `make faults`; `make test` runs four of the six."""
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if (params.get("durability"), params.get("form")) in _MIXED:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that is migrated and holds nothing."""
    path = tmp_path_factory.mktemp("empty") / "runs.db"
    database = open_database(path)
    database.open()
    database.close()
    return path


@pytest.fixture
def prepared(empty: Path) -> Callable[[Path], Path]:
    """Puts a copy of it where no file is yet, which takes a fifth of the time that its migrations take.

    `make faults` does not: there, whoever opens a database first makes it.
    """

    def prepare(path: Path) -> Path:
        if not full() and not path.exists():
            shutil.copy(empty, path)
        return path

    return prepare


@pytest.fixture(params=_BACKENDS)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteBackend]:
    """A backend with no database in it yet; every saver it opened is closed when the test ends."""
    made = SqliteBackend(tmp_path)
    yield made
    made.close()


@pytest.fixture
def saver(backend: SqliteBackend, prepared: Callable[[Path], Path]) -> langgraph_ext.LedgerSaver:
    """A saver on a new database; open more on the same one with `backend.open()`."""
    prepared(Path(backend.url()))
    return backend.open()


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs only while a driver waits for an answer."""
    made = asyncio.new_event_loop()
    yield made
    made.run_until_complete(made.shutdown_asyncgens())
    made.close()


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> Form:
    """In which form the test calls a saver: `put`, or `aput` on an event loop."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def forms(form: Form, loop: asyncio.AbstractEventLoop) -> Callable[[Any], Driver]:
    """Wraps any saver in a driver; a test that uses it runs once in the sync and once in the async form."""
    return lambda saver: Driver(saver, form, loop)


@pytest.fixture
def store(saver: langgraph_ext.LedgerSaver, forms: Callable[[Any], Driver]) -> Driver:
    """The saver under test, in both forms."""
    return forms(saver)


@pytest.fixture
def reference(loop: asyncio.AbstractEventLoop) -> Driver:
    """InMemorySaver with LedgerSaver's deliberate differences, behind the same driver."""
    return Driver(Reference(), "sync", loop)


@pytest.fixture
def memory(loop: asyncio.AbstractEventLoop) -> Driver:
    """LangGraph's own InMemorySaver, behind the same driver."""
    return Driver(InMemorySaver(), "sync", loop)


@pytest.fixture(params=sorted(VERSIONS))
def version(request: pytest.FixtureRequest) -> Callable[[int], Any]:
    """How versions are spelt: `version(3)` is the third, as an int, a float or a string."""
    return VERSIONS[request.param]


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> str:
    """When LangGraph saves: before it goes on, while it goes on, or at the end."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def both(
    saver: langgraph_ext.LedgerSaver, form: Form, durability: str, loop: asyncio.AbstractEventLoop
) -> Callable[..., Teller]:
    """Tells a story over LedgerSaver and over InMemorySaver, checks that the answers agree, and returns the former.

    A story is a function of a `Teller`; it runs in both forms and with each durability.
    """

    def check(build: Callable[[Any], Any], story: Callable[[Teller], Any]) -> Teller:
        ours, theirs = (Teller(build, each, form, durability, loop) for each in (saver, InMemorySaver()))
        for teller in (ours, theirs):
            story(teller)
        assert difference(theirs.told, ours.told) is None
        return ours

    return check
