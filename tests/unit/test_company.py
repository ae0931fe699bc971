"""When the lane waits for calls whose commit can be shared."""

from __future__ import annotations

from langgraph_ext.database.appends import Append
from langgraph_ext.database.company import Crowd


def puts(count: int) -> list[Append | None]:
    """Appends of so many runs."""
    return [Append("put", {}, key=f"thread {each}") for each in range(count)]


def test_many_runs_are_a_crowd_that_is_waited_for() -> None:
    """After a group of eight puts, a leader that finds two calls waits; one that finds eight does not."""
    crowd = Crowd()
    crowd.came(puts(8))

    assert [True, False] == [crowd.is_late(2), crowd.is_late(8)]


def test_a_fan_out_of_one_run_is_no_crowd() -> None:
    """The calls of a hundred tasks have no key, however many share a commit; nor are three runs waited for."""
    crowd = Crowd()
    crowd.came([Append("call", {})] * 100)
    crowd.came([*puts(3), None])

    assert not crowd.is_late(1)


def test_a_crowd_is_forgotten() -> None:
    """When the others are gone, a run waits for them a few times and no more."""
    crowd = Crowd()
    crowd.came(puts(32))
    waited = 0
    while crowd.is_late(1):
        crowd.came(puts(1))
        waited += 1

    assert 10 == waited
