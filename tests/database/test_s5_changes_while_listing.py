"""S5: a listing that is read slowly never gives what was not asked for, whatever is deleted and put meanwhile."""

from __future__ import annotations

from itertools import islice

import pytest

from langgraph_ext import LedgerSaver
from tests.database.long_threads import name
from tests.support.build import checkpoint, config, metadata, whole


@pytest.fixture
def saver(tmp_path: object) -> LedgerSaver:
    return LedgerSaver(f"{tmp_path}/runs.db")


def fill(saver: LedgerSaver, thread: str, namespaces: int, each: int) -> None:
    """Checkpoints 0, 1, 2 … of a thread, one after another in every namespace."""
    for number in range(each):
        for ns in range(namespaces):
            made = checkpoint(name(number * namespaces + ns), {"of": thread})
            saver.put(config(thread, f"sub:{ns}"), made, metadata(number), {"of": 1})


@pytest.mark.parametrize("namespaces", [1, 3, 80])
def test_s5_a_listing_of_a_deleted_thread_gives_no_other_threads_checkpoints(
    saver: LedgerSaver, namespaces: int
) -> None:
    """The reader pauses, the thread is deleted, another one is written in its room: the listing ends, or goes on with
    what it had seen; it never shows the other thread."""
    fill(saver, "t", namespaces, 240 // namespaces)
    listing = saver.list(whole("t"))
    first = list(islice(listing, 40))
    saver.delete_thread("t")
    fill(saver, "other", namespaces, 240 // namespaces)
    rest = list(listing)
    saver.close()

    assert {"t"} == {item.config["configurable"]["thread_id"] for item in [*first, *rest]}


def test_s5_a_listing_of_all_threads_gives_none_twice(saver: LedgerSaver) -> None:
    """As above, over every thread: what is put while the reader pauses is not shown in another one's place."""
    fill(saver, "t", 1, 240)
    listing = saver.list(None)
    first = list(islice(listing, 40))
    saver.delete_thread("t")
    fill(saver, "other", 1, 240)
    ids = [item.checkpoint["id"] for item in [*first, *listing]]
    saver.close()

    assert sorted(set(ids), reverse=True) == ids
