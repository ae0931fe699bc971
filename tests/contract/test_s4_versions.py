"""S4: versions are ints, floats or strings, and the next one is always greater."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import InvalidArgument
from tests.support.backends import SqliteBackend
from tests.support.build import VERSIONS, cid, config
from tests.support.compare import typed
from tests.support.driver import Driver

EXAMPLES = [1, 7, 2**31, 2**40 + 5, 1.0, 7.25, 123456.5, *(VERSIONS["str"](n) for n in (1, 9, 10, 99_999))]


def test_s4_a_thread_begins_in_the_kind_the_server_goes_on_with(saver: LedgerSaver) -> None:
    """Our own versions are text, as the API server's and the peers' are: LangGraph cannot compare text with numbers."""
    first = saver.get_next_version(None, None)

    assert (str, 1) == (type(first), int(first.split(".")[0]))
    assert VERSIONS["str"](2) > first > VERSIONS["str"](0)


@pytest.mark.parametrize("current", EXAMPLES)
def test_s4_the_next_version_is_greater_and_of_the_same_kind(saver: LedgerSaver, current: Any) -> None:
    """A thread begun elsewhere goes on in its own kind of version, a thousand steps long."""
    for _ in range(1000):
        following = saver.get_next_version(current, None)
        assert type(current) is type(following)
        assert following > current
        current = following


@pytest.mark.parametrize("current", [None, *EXAMPLES])
def test_s4_two_forks_never_reach_the_same_version(saver: LedgerSaver, backend: SqliteBackend, current: Any) -> None:
    """From one version, two savers and many forks go on to versions that all differ."""
    other = backend.open()
    reached = [each.get_next_version(current, None) for _ in range(50) for each in (saver, other)]

    assert len(reached) == len(set(reached))


@pytest.mark.parametrize("current", ["", "abc", "-1.5", "x1.0"])
def test_s4_a_version_that_cannot_be_counted_is_refused(saver: LedgerSaver, current: str) -> None:
    """Text that does not begin with a number has no next version; the error says what to do about it."""
    with pytest.raises(InvalidArgument, match="get_next_version"):
        saver.get_next_version(current, None)


@pytest.mark.parametrize("at", ["get_tuple", "list"])
def test_s4_one_thread_may_hold_every_kind(store: Driver, at: str) -> None:
    """A thread may be continued by a server with its own versions: old and new values are found, types intact."""
    kinds = [1, 2.5, VERSIONS["str"](3), 1 << 40, VERSIONS["str"](4)]
    for n, version in enumerate(kinds):
        parent = cid(n - 1) if n else None
        store.save(cid(n), {"a": n, "b": 0}, {"a": version, "b": kinds[0]}, parent=parent, new={"a": version})
    found = [store.read(cid(n)) for n in range(5)] if at == "get_tuple" else store.list(config())[::-1]

    assert [{"a": n, "b": 0} for n in range(5)] == [item.checkpoint["channel_values"] for item in found]
    assert typed(kinds) == typed([item.checkpoint["channel_versions"]["a"] for item in found])


def test_s4_versions_seen_keep_their_types(store: Driver, version: Callable[[int], Any]) -> None:
    """LangGraph compares versions with those a node has seen: a changed type would run nodes again or never."""
    seen = {"node": {"a": version(2), "branch:to:x": version(1)}, "__interrupt__": {"a": version(3)}, "idle": {}}
    store.save(cid(1), {"a": 1}, {"a": version(3)}, versions_seen=seen)

    assert typed(seen) == typed(store.read().checkpoint["versions_seen"])
    assert typed({"a": version(3)}) == typed(store.read().checkpoint["channel_versions"])


def test_s4_a_subclass_may_bring_its_own_versions(backend: SqliteBackend) -> None:
    """LangGraph's API server replaces `get_next_version`; nothing of ours may depend on the built-in one."""

    class Server(LedgerSaver):
        def get_next_version(self, current: Any, channel: None) -> Any:
            return VERSIONS["str"](1 if current is None else int(current.split(".")[0]) + 1)

    with Server(backend.url()) as saver:
        assert VERSIONS["str"](2) == saver.get_next_version(VERSIONS["str"](1), None)
        assert VERSIONS["str"](1) == saver.get_next_version(None, None)
