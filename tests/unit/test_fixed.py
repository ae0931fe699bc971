"""FixedClock and fixed_ids: the same times and ids each time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from langgraph_ext.testing import FixedClock, fixed_ids


def test_a_clock_stands_still_until_it_is_told_to_go_on() -> None:
    clock = FixedClock(1_000_000)
    assert (1_000_000, 1_000_000) == (clock(), clock())
    assert 2_500_000 == clock.advance(1.5) == clock()
    assert 2_500_003 == clock.advance(us=3) == clock()
    assert 2_000_003 == clock.advance(-0.5) == clock()


def test_no_advance_is_lost_among_threads() -> None:
    clock = FixedClock(0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: clock.advance(us=1), range(1000)))
    assert 1000 == clock()


def test_ids_count_and_sort() -> None:
    ids, others = fixed_ids(), fixed_ids("run", first=9)
    assert ["id-000001", "id-000002"] == [ids(), ids()]
    assert ["run-000009", "run-000010"] == [others(), others()]
