"""The functional API over LedgerSaver behaves as over InMemorySaver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langgraph.func import entrypoint, task
from langgraph.types import Command, RetryPolicy, interrupt

from tests.support.stories import Teller


class Counted:
    """How often each task ran."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}

    def count(self, name: str) -> int:
        self.calls[name] = self.calls.get(name, 0) + 1
        return self.calls[name]


def report(saver: Any, fail_first: int = 0) -> Any:
    """Several tasks at once, a question, a task that may fail; remembers what it did before."""
    counted = Counted()

    @task
    def square(n: int) -> int:
        counted.count(f"square {n}")
        return n * n

    @task(retry_policy=RetryPolicy(initial_interval=0.001, max_attempts=2, jitter=False, retry_on=ValueError))
    def sign(text: str) -> str:
        if counted.count("sign") <= fail_first:
            raise ValueError(f"no ink {counted.calls['sign']}")
        return f"signed {text}"

    @entrypoint(checkpointer=saver)
    def workflow(numbers: list[int], *, previous: Any = None) -> Any:
        squares = [future.result() for future in [square(n) for n in numbers]]
        approved = interrupt({"squares": squares, "previous": previous})
        signed = sign(f"{sum(squares)} {approved}").result()
        return entrypoint.final(value=signed, save=[*(previous or []), sum(squares)])

    workflow.counted = counted  # type: ignore[attr-defined]
    return workflow


def nested(saver: Any) -> Any:
    """Tasks that call tasks, and a question inside a task."""

    @task
    def inner(n: int) -> int:
        return n + 1

    @task
    def outer(n: int) -> Any:
        return [inner(n).result(), interrupt(f"outer {n}")]

    @entrypoint(checkpointer=saver)
    def workflow(n: int) -> Any:
        return [outer(n).result(), inner(10 * n).result()]

    return workflow


def test_s1_tasks_run_once_around_a_question(both: Callable[..., Teller], durability: str) -> None:
    """Finished tasks do not run again when the workflow is resumed; what it saved is there at the next call."""

    def story(teller: Teller) -> None:
        for turn in ([1, 2, 3], [4]):
            teller.run(turn)
            assert f"signed {sum(n * n for n in turn)} yes" == teller.run(Command(resume="yes"))
        assert {"square 1": 1, "square 2": 1, "square 3": 1, "square 4": 1, "sign": 2} == teller.graph.counted.calls

    told = both(report, story)
    assert [14, 16] == told.state().values["workflow"] if "workflow" in told.state().values else told.told


def test_s1_a_failed_task_is_tried_again(both: Callable[..., Teller]) -> None:
    """Its retries, then its error; `invoke(None)` runs it again and not the tasks before it."""

    def story(teller: Teller) -> None:
        teller.run([1, 2])
        assert ("ValueError", "no ink 2") == teller.run(Command(resume="yes"))
        assert "signed 5 yes" == teller.run(None)
        assert (1, 3) == (teller.graph.counted.calls["square 1"], teller.graph.counted.calls["sign"])

    told = both(lambda saver: report(saver, fail_first=2), story)
    assert () == told.state().next


def test_s1_tasks_in_tasks_and_a_question_inside(both: Callable[..., Teller]) -> None:
    """A question inside a task pauses the workflow; the answer reaches it."""

    def story(teller: Teller) -> None:
        teller.run(1)
        assert [[2, "answer"], 11] == teller.run(Command(resume="answer"))

    told = both(nested, story)
    assert () == told.state().next


def test_s1_a_workflow_is_replayed_from_its_start(both: Callable[..., Teller], durability: str) -> None:
    """Replaying the first checkpoint asks again, in a fork."""

    def story(teller: Teller) -> None:
        teller.run([1, 2])
        first = teller.history()[-1].config
        teller.run(Command(resume="yes"))
        teller.run(None, first)
        teller.run(Command(resume="no"))

    told = both(report, story)
    assert 2 <= len(told.history())
