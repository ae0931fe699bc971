"""A run as a tree: what stands where, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from langgraph_ext.cli.story import run_node
from langgraph_ext.ledger.records import Interrupt, InterruptStatus, Run, RunStatus, Visit, VisitKind, VisitStatus
from langgraph_ext.render import draw, payload

BEGAN = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def a_run(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "run_id": "r7",
        "thread_id": "order-7",
        "status": RunStatus.SUCCEEDED,
        "fork_of": None,
        "first_checkpoint_id": "c1",
        "last_checkpoint_id": "c9",
        "error_type": None,
        "error_message": None,
        "started_at": BEGAN,
        "changed_at": after(2.5),
        "ended_at": after(2.5),
        "active_seconds": None,
        "run_key": None,
        "graph": None,
        "definition_digest": None,
        "input_digest": None,
        "made_by": None,
    }
    return Run(**fields | changes)


def a_visit(transition: int, path: str, **changes: Any) -> Visit:
    fields: dict[str, Any] = {
        "run_id": "r7",
        "thread_id": "order-7",
        "checkpoint_ns": "",
        "checkpoint_id": f"c{transition}",
        "task_id": f"t{transition}",
        "kind": VisitKind.NODE,
        "node": path.rpartition("/")[2],
        "node_path": path,
        "scope": None,
        "place": None,
        "ordinal": 1,
        "transition": transition,
        "status": VisitStatus.SUCCEEDED,
        "attempts": 1,
        "error_type": None,
        "error_message": None,
        "started_at": None,
        "first_at": after(transition),
        "last_at": after(transition),
        "inherited": False,
    }
    return Visit(**fields | changes)


def a_question(transition: int, **changes: Any) -> Interrupt:
    fields: dict[str, Any] = {
        "interrupt_id": "i1",
        "run_id": "r7",
        "thread_id": "order-7",
        "checkpoint_ns": "",
        "checkpoint_id": f"c{transition}",
        "task_id": f"t{transition}",
        "node": "ask",
        "ordinal": 0,
        "kind": None,
        "value": "Ship?",
        "value_type": "json",
        "status": InterruptStatus.PENDING,
        "requested_at": after(transition),
        "closed_at": None,
    }
    return Interrupt(**fields | changes)


def told(run: Run, *visits: Visit, questions: tuple[Interrupt, ...] = (), now: datetime = BEGAN) -> list[str]:
    node = run_node(run, visits, questions, now=now, shown=lambda question: payload(question.value))
    return [str(line) for line in draw(node)]


HEAD = "run r7  succeeded  2.5 s  thread order-7  started 2026-11-29T10:00:00Z"


def test_visits_stand_in_the_order_of_their_transitions() -> None:
    assert [HEAD, "├─ a  succeeded  +1.0 s", "└─ b  failed  +2.0 s  ValueError: no …"] == told(
        a_run(),
        a_visit(1, "a"),
        a_visit(2, "b", status=VisitStatus.FAILED, error_type="ValueError", error_message="no\nprice"),
    )


def test_a_subgraphs_visits_stand_inside_the_visit_that_ran_it() -> None:
    """That one ends after them, and still stands where they began."""
    assert [
        HEAD,
        "├─ outer  succeeded  +3.0 s",
        "│  ├─ deep  succeeded  +2.0 s",
        "│  │  └─ leaf  succeeded  +1.0 s",
        "│  └─ last  succeeded  +4.0 s",
        "└─ z  succeeded  +5.0 s",
    ] == told(
        a_run(),
        a_visit(1, "outer/deep/leaf", scope="t2"),
        a_visit(2, "outer/deep", scope="t3"),
        a_visit(3, "outer"),
        a_visit(4, "outer/last", scope="t3"),
        a_visit(5, "z"),
    )


def test_what_encloses_a_visit_and_has_not_ended_is_shown_as_such() -> None:
    assert [HEAD, "├─ ?  not ended", "│  ├─ a  succeeded  +1.0 s", "│  └─ b  succeeded  +3.0 s"] == told(
        a_run(), a_visit(1, "?/a", scope="x"), a_visit(2, "z"), a_visit(3, "?/b", scope="x")
    )[:4]


def test_places_ordinals_attempts_and_kinds_are_named() -> None:
    assert [
        HEAD,
        "├─ loop #1  succeeded  +1.0 s",
        "├─ loop #2  succeeded  +2.0 s  3 attempts  after KeyError",
        "├─ price [0]  succeeded  +3.0 s",
        "├─ price [1]  timed_out  +4.0 s  NodeTimeoutError: 5 s",
        "├─ price (error handler)  succeeded  +5.0 s",
        "└─ @task  cancelled  +6.0 s",
    ] == told(
        a_run(),
        a_visit(1, "loop"),
        a_visit(2, "loop", ordinal=2, attempts=3, error_type="KeyError", error_message=""),
        a_visit(3, "price", place=0),
        a_visit(4, "price", place=1, status="timed_out", error_type="NodeTimeoutError", error_message="5 s"),
        a_visit(5, "price", kind=VisitKind.ERROR_HANDLER),
        a_visit(6, "?", kind=VisitKind.TASK, node=None, status=VisitStatus.CANCELLED),
    )


def test_a_question_stands_under_the_visit_that_asked_it() -> None:
    """One whose visit is not there stands at the end of the run."""
    answered = a_question(1, status=InterruptStatus.ANSWERED, kind="approve", value={"a": 1}, closed_at=BEGAN)
    assert [
        "├─ ask  paused  +1.0 s",
        '│  ├─ question approve  answered  id i1  {"a":1}',
        '│  └─ question  pending  id i2  "Ship?"',
        '└─ question  pending  id i3  "Ship?"',
    ] == told(
        a_run(),
        a_visit(1, "ask", status=VisitStatus.PAUSED),
        questions=(answered, a_question(1, interrupt_id="i2"), a_question(9, interrupt_id="i3")),
    )[1:]


def test_inherited_visits_are_marked_and_come_first() -> None:
    run = a_run(fork_of="r6")
    old = a_visit(0, "a", run_id="r6", inherited=True, checkpoint_id="c0")
    assert [f"{HEAD}  fork of r6", "├─ a  succeeded  inherited", "└─ a  succeeded  +2.0 s"] == told(
        run, old, a_visit(2, "a")
    )


@pytest.mark.parametrize(
    ("changes", "head"),
    [
        ({"status": RunStatus.PAUSED, "ended_at": None}, "run r7  paused  2.5 s  thread order-7"),
        ({"status": RunStatus.RUNNING, "ended_at": None}, "run r7  running  1 min 30 s  thread order-7"),
        ({"status": RunStatus.FAILED, "ended_at": None, "error_type": "E"}, "run r7  failed  2.5 s  thread order-7"),
    ],
)
def test_a_run_that_has_not_ended_took_as_long_as_to_where_it_stands(changes: dict[str, Any], head: str) -> None:
    [line] = told(a_run(**changes), now=after(90))
    assert line.startswith(head)


def test_a_runs_error_is_over_when_it_went_on() -> None:
    error = {"error_type": "ValueError", "error_message": "no price\n  in list"}
    assert told(a_run(**error)) == [f"{HEAD}  after ValueError: no price …"]


def test_names_cannot_move_the_cursor() -> None:
    lines = told(a_run(thread_id="a\x1b[2J\n"), a_visit(1, "b\r\x9b"), questions=(a_question(1, kind="\x07"),))
    assert all(line.isprintable() for line in lines)
