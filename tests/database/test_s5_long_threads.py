"""S5: a thread of a million checkpoints gives its head and its first page without reading the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from tests.database.long_threads import Meter, lengthen, metered, name
from tests.support.build import checkpoint, config, metadata, whole

SHORT, LONG, MILLION = 1_000, 20_000, 1_000_000

Reads = dict[str, Callable[[LedgerSaver, int], Any]]

READS: Reads = {
    "the head": lambda saver, count: [saver.get_tuple(config())],
    "one in the middle": lambda saver, count: [saver.get_tuple(config(id=name(count // 2)))],
    "the first page": lambda saver, count: saver.list(config(), limit=10),
    "the first page, by name": lambda saver, count: saver.list(whole(), limit=10),
    "a page in the middle": lambda saver, count: saver.list(config(), limit=10, before=config(id=name(count // 2))),
    "a page in the middle, by name": lambda saver, count: saver.list(
        whole(), limit=10, before=config(id=name(count // 2))
    ),
    "a listing that is left": lambda saver, count: islice(saver.list(config()), 10),
    "the second page": lambda saver, count: saver.list(
        config(), limit=10, before=list(saver.list(config(), limit=10))[-1].config
    ),
    "a filter that the newest match": lambda saver, count: saver.list(config(), limit=10, filter={"source": "loop"}),
    "what its head's channels were": lambda saver, count: [
        saver.get_delta_channel_history(config=config(), channels=["a", "b"])
    ],
}

OF_SEVERAL: Reads = {
    "the head": lambda saver, count: [saver.get_tuple(config(ns="sub:1"))],
    "the first page of one": lambda saver, count: saver.list(config(ns="sub:1"), limit=10),
    "the first page of all": lambda saver, count: saver.list(whole(), limit=10),
    "a page of all in the middle": lambda saver, count: saver.list(
        whole(), limit=10, before=config(id=name(count // 2))
    ),
}


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Files with one thread of so many checkpoints in each of these namespaces, made when first asked for."""
    return maker(tmp_path_factory.mktemp("long"))


def maker(folder: Path) -> Callable[..., Path]:
    """As the fixture, for a test that writes to its files."""

    def of(count: int, namespaces: tuple[str, ...] = ("",)) -> Path:
        path = folder / f"{count} {len(namespaces)}.db"
        if not path.exists():
            lengthen(path, count, namespaces=namespaces)
        return path

    return of


@pytest.fixture
def meter() -> Iterator[Meter]:
    with metered() as made:
        yield made


def measure(meter: Meter, path: Path, read: Callable[[LedgerSaver, int], Any], count: int) -> tuple[int, int]:
    """Instructions that a read takes, and how many checkpoints it gives."""
    with LedgerSaver(path) as saver:
        steps, found = meter.of(lambda: list(read(saver, count)))
    return steps, len(found)


def compare(
    meter: Meter, threads: Callable[..., Path], read: Any, more: int, namespaces: tuple[str, ...] = ("",)
) -> None:
    """The same read on a short and on a long thread does the same work, but for the depth of a tree."""
    short, given = measure(meter, threads(SHORT, namespaces), read, SHORT)
    long, as_many = measure(meter, threads(more, namespaces), read, more)

    assert given == as_many
    assert short > 0
    assert long <= short * 1.1 + 100


@pytest.mark.parametrize("read", READS)
def test_s5_reading_does_not_depend_on_the_length_of_a_thread(
    meter: Meter, threads: Callable[..., Path], read: str
) -> None:
    """Twenty times as many checkpoints, the same number of instructions."""
    compare(meter, threads, READS[read], LONG)


@pytest.mark.parametrize("read", OF_SEVERAL)
def test_s5_reading_does_not_depend_on_the_length_of_a_thread_with_subgraphs(
    meter: Meter, threads: Callable[..., Path], read: str
) -> None:
    """As above, where a thread has three namespaces, as every graph with subgraphs makes it."""
    compare(meter, threads, OF_SEVERAL[read], LONG, ("", "sub:1", "sub:2"))


def test_s5_the_async_form_reads_no_more(meter: Meter, threads: Callable[..., Path]) -> None:
    """`aget_tuple` and `alist(limit=10)` do the work that `get_tuple` and `list` do."""

    async def head_and_page(saver: LedgerSaver) -> list[Any]:
        return [await saver.aget_tuple(config()), *[item async for item in saver.alist(config(), limit=10)]]

    def read(saver: LedgerSaver, _count: int) -> list[Any]:
        return asyncio.run(head_and_page(saver))

    compare(meter, threads, read, LONG)


def test_s5_a_put_does_not_depend_on_the_length_of_a_thread(meter: Meter, tmp_path: Path) -> None:
    """Going on with a long thread costs what going on with a short one costs."""

    def go_on(saver: LedgerSaver, count: int) -> list[Any]:
        made = checkpoint(name(count), {"a": count, "b": "same"}, {"a": count + 1, "b": 1})
        saver.put(config(id=name(count - 1)), made, metadata(count), {"a": count + 1})
        saver.put_writes(config(id=name(count)), [("a", 1)], "task")
        return []

    compare(meter, maker(tmp_path), go_on, LONG)


def test_s5_a_whole_listing_reads_each_checkpoint_once(meter: Meter, threads: Callable[..., Path]) -> None:
    """Page after page the work grows with what is listed, not with its square."""
    short, given = measure(meter, threads(SHORT), lambda saver, count: saver.list(config()), SHORT)
    long, more = measure(meter, threads(SHORT * 4), lambda saver, count: saver.list(config()), SHORT * 4)

    assert (SHORT, SHORT * 4) == (given, more)
    assert long <= short * 4 * 1.1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_s5_a_thread_of_a_million_checkpoints_reads_no_more(meter: Meter, tmp_path: Path) -> None:
    """Every read of the list above, a thousand times as many checkpoints."""
    try:
        for read in READS.values():
            compare(meter, maker(tmp_path), read, MILLION)
    finally:
        for file in tmp_path.iterdir():  # a gigabyte that pytest would keep
            file.unlink()
