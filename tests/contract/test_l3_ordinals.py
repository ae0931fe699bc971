"""L3: a visit's ordinal counts within its node path and scope, its transition within the run; neither ever changes."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.ledger import VisitKind, VisitStatus
from tests.support.build import NULL_TASK, cid
from tests.support.reader import Reader
from tests.support.rows import PULL, PUSH, Rows


def counted(reader: Reader, run_id: str = "run 1", **options: Any) -> list[tuple[Any, ...]]:
    """Node path, ordinal and transition of each visit."""
    return [(each.node_path, each.ordinal, each.transition) for each in reader.visits(run_id, **options)]


def loop_of(rows: Rows, count: int) -> None:
    """A run that alternates between two nodes."""
    rows.begun()
    for number in range(1, count + 1):
        rows.call(number, f"task {number}", "think" if number % 2 else "act")
        rows.put(number + 1, parent=number, run=1)


def test_l3_a_loop_counts_its_rounds(rows: Rows, reader: Reader) -> None:
    loop_of(rows, 5)

    assert [("think", 1, 1), ("act", 1, 2), ("think", 2, 3), ("act", 2, 4), ("think", 3, 5)] == counted(reader)


def test_l3_two_runs_of_a_thread_count_apart(rows: Rows, reader: Reader) -> None:
    """Also where the other's checkpoints lie between those of the run."""
    rows.begun(1, first=1)
    rows.begun(2, first=2)
    for number, run in ((3, 1), (4, 2), (5, 1)):
        rows.put(number, run=run)
        rows.call(number, f"task {number}", "node")
    rows.call(1, "task 1", "node")

    assert [("node", 1, 1), ("node", 2, 2), ("node", 3, 3)] == counted(reader, "run 1")
    assert [("node", 1, 1)] == counted(reader, "run 2")


def test_l3_each_place_of_a_fan_out_counts_its_own_rounds(rows: Rows, reader: Reader) -> None:
    """Send to one node three times, twice: each place has a first and a second visit."""
    rows.begun()
    for id, order in ((2, (2, 0, 1)), (3, (0, 1, 2))):
        rows.put(id, run=1, sends=["work", "work", "check"])
        for place in order:
            rows.call(id, f"{id} {place}", f"{PUSH}{place:010}, 0000000000")
    found = reader.visits("run 1")

    assert [2, 0, 1, 0, 1, 2] == [each.place for each in found]
    assert ["check", "work", "work", "work", "work", "check"] == [each.node for each in found]
    assert [1, 1, 1, 2, 2, 2] == [each.ordinal for each in found]
    assert [1, 2, 3, 4, 5, 6] == [each.transition for each in found]


def nested_run(rows: Rows) -> None:
    """outer at the root runs a graph whose inner runs a graph of one leaf; outer is visited twice."""
    rows.begun()
    for root, task in ((2, "o1"), (5, "o2")):
        rows.put(root, run=1)
        middle, leaf = root + 1, root + 2
        rows.nested(middle, ns=f"outer:{task}", root=root, inside=task, above=("", root))
        deep = f"outer:{task}|inner:i{task}"
        rows.nested(leaf, ns=deep, root=root, inside=f"i{task}", above=(f"outer:{task}", middle))
        rows.call(leaf, f"l{task}", "leaf", ns=deep)
        rows.call(middle, f"i{task}", "inner", ns=f"outer:{task}")
        rows.call(root, task, "outer")


def test_l3_a_node_path_comes_from_the_enclosing_visits(rows: Rows, reader: Reader) -> None:
    """At any depth; each enclosing visit is a scope in which counting begins anew."""
    nested_run(rows)
    found = reader.visits("run 1")

    assert ["outer/inner/leaf", "outer/inner", "outer"] * 2 == [each.node_path for each in found]
    assert ["io1", "o1", None, "io2", "o2", None] == [each.scope for each in found]
    assert [1, 1, 1, 1, 1, 2] == [each.ordinal for each in found]
    assert [1, 2, 3, 4, 5, 6] == [each.transition for each in found]


def test_l3_a_namespace_is_never_taken_apart(rows: Rows, reader: Reader) -> None:
    """What encloses a graph is what its checkpoint says, whatever its namespace looks like."""
    rows.begun()
    rows.call(1, "real", "outer")
    rows.nested(2, ns="other:thing|x:y", root=1, inside="real", above=("", 1))
    rows.call(2, "leaf", ns="other:thing|x:y")

    assert ["outer", "outer/leaf"] == [each.node_path for each in reader.visits("run 1")]


def test_l3_a_name_that_is_not_known_yet_is_a_question_mark(rows: Rows, reader: Reader) -> None:
    """The enclosing node is still running: it has made no call that would name it. Its scope is known."""
    rows.begun()
    rows.nested(2, ns="outer:o", root=1, inside="o", above=("", 1))
    rows.call(2, "leaf", ns="outer:o")
    [before] = reader.visits("run 1")
    rows.call(1, "o", "outer")
    after = reader.visits("run 1")[0]

    assert ("?/leaf", "outer/leaf") == (before.node_path, after.node_path)
    assert ("o", 1, 1) == (before.scope, before.ordinal, before.transition)
    assert ("o", 1, 1) == (after.scope, after.ordinal, after.transition)


def test_l3_a_visit_keeps_its_number_when_an_earlier_call_finds_its_run(rows: Rows, reader: Reader) -> None:
    """Under durability `async` a call may come before its checkpoint: it is counted when that is stored."""
    rows.begun()
    rows.call(3, "early", "early")
    rows.call(1, "first", "first")
    before = counted(reader)
    rows.put(3, run=1)

    assert [("first", 1, 1)] == before
    assert [("first", 1, 1), ("early", 1, 2)] == counted(reader)


def test_l3_an_error_handler_counts_apart_from_its_node(rows: Rows, reader: Reader) -> None:
    rows.begun()
    rows.call(1, "task", "work", "failed", error=("ValueError", "no"))
    rows.call(1, "handler", f"{PULL}work, node_error_handler, 0000000000")
    failed, handler = reader.visits("run 1")

    assert (VisitKind.NODE, VisitKind.ERROR_HANDLER) == (failed.kind, handler.kind)
    assert ("work", "work", 1, 1) == (failed.node, handler.node, failed.ordinal, handler.ordinal)


def test_l3_a_task_of_the_functional_api_has_no_name(rows: Rows, reader: Reader) -> None:
    rows.begun()
    for number in (0, 1):
        rows.call(1, f"task {number}", f"{PUSH}{PULL}main, {number:010}, 0000000001")
    rows.call(1, "main", "main")

    assert [(VisitKind.TASK, None, 1), (VisitKind.TASK, None, 2), (VisitKind.NODE, "main", 1)] == [
        (each.kind, each.node, each.ordinal) for each in reader.visits("run 1")
    ]


def test_l3_what_no_task_wrote_is_no_visit(rows: Rows, reader: Reader) -> None:
    """An input and an answer are calls without an event."""
    rows.begun()
    rows.call(1, "start", "__start__", None)
    rows.call(1, NULL_TASK, "", None)
    rows.call(1, "task", "node")

    assert [("node", 1, 1)] == counted(reader)


def test_l3_the_calls_of_a_task_are_one_visit(rows: Rows, reader: Reader) -> None:
    """It has succeeded if one of them did; otherwise the newest says how it stands. Its last error is kept."""
    rows.begun()
    rows.call(1, "again", "again", "failed", error=("ValueError", "first"))
    rows.call(1, "again", "again", "failed", error=("KeyError", "second"), stored_us=1_000_000)
    rows.call(1, "again", "again", "succeeded", stored_us=2_500_000)
    rows.call(1, "asks", "asks", "failed", error=("OSError", "x"))
    rows.call(1, "asks", "asks", "paused")
    again, asks = reader.visits("run 1")

    assert (VisitStatus.SUCCEEDED, 3, "KeyError", "second") == (
        again.status,
        again.attempts,
        again.error_type,
        again.error_message,
    )
    assert (VisitStatus.PAUSED, 2, "OSError") == (asks.status, asks.attempts, asks.error_type)
    assert 2.5 == again.last_at.timestamp()


def test_l3_visits_are_narrowed_down_without_counting_anew(rows: Rows, reader: Reader) -> None:
    loop_of(rows, 6)
    rows.call(7, "last", "act", "failed", error=("E", "m"))

    assert [("act", 1, 2), ("act", 2, 4), ("act", 3, 6), ("act", 4, 7)] == counted(reader, node_path="act")
    assert [("act", 4, 7)] == counted(reader, status="failed")
    assert [("act", 3, 6), ("act", 4, 7)] == counted(reader, node_path="act", after=4)
    assert [("think", 2, 3), ("act", 2, 4)] == counted(reader, after=2, limit=2)
    assert [] == counted(reader, after=7)


def forked(rows: Rows) -> None:
    """run 1: 1 - 2 - 3 - 4; run 2 branches off at 3, run 3 off run 2 at 6."""
    rows.begun(1)
    rows.call(1, "a1", "a")
    for id in (2, 3, 4):
        rows.put(id, parent=id - 1, run=1)
        rows.call(id, f"a{id}", "a")
    rows.run(2, first=5, fork_of="run 1")
    rows.put(5, parent=3, run=2)
    rows.call(5, "b5", "b")
    rows.put(6, parent=5, run=2)
    rows.call(6, "b6", "b")
    rows.run(3, first=7, fork_of="run 2")
    rows.put(7, parent=6, run=3)
    rows.call(7, "c7", "c")


def test_l47_a_fork_shows_what_it_inherited_when_asked(rows: Rows, reader: Reader) -> None:
    """What led to where it branched off, of every run above, marked, and outside its own count."""
    forked(rows)
    found = reader.visits("run 3", inherited=True)

    assert ["a1", "a2", "b5", "c7"] == [each.task_id for each in found]
    assert ["run 1", "run 1", "run 2", "run 3"] == [each.run_id for each in found]
    assert [True, True, True, False] == [each.inherited for each in found]
    assert [0, 0, 0, 1] == [each.transition for each in found]
    assert [1, 2, 1, 1] == [each.ordinal for each in found]


def test_l47_without_being_asked_a_fork_shows_its_own_visits(rows: Rows, reader: Reader) -> None:
    forked(rows)

    assert ["c7"] == [each.task_id for each in reader.visits("run 3")]
    assert ["b5", "b6"] == [each.task_id for each in reader.visits("run 2")]
    assert ["c7"] == [each.task_id for each in reader.visits("run 3", inherited=True)][3:]


def test_l47_a_second_turn_of_a_thread_inherits_nothing(rows: Rows, reader: Reader) -> None:
    """It goes on from the run before, and is no fork of it."""
    rows.begun(1)
    rows.call(1, "first", "a")
    rows.run(2, first=2)
    rows.put(2, parent=1, run=2)
    rows.call(2, "second", "a")

    assert ["second"] == [each.task_id for each in reader.visits("run 2", inherited=True)]


def test_l47_inherited_visits_stand_before_the_first_page(rows: Rows, reader: Reader) -> None:
    forked(rows)

    assert ["a1", "a2", "b5"] == [each.task_id for each in reader.visits("run 2", inherited=True, limit=1)]
    assert ["b6"] == [each.task_id for each in reader.visits("run 2", inherited=True, after=1, limit=1)]


def test_a_visit_carries_where_and_when_it_was(rows: Rows, reader: Reader) -> None:
    rows.begun()
    rows.call(1, "task", "node", stored_us=1_700_000_000_123_456)
    [visit] = reader.visits("run 1")

    assert ("run 1", "t", "", cid(1), "task") == (
        visit.run_id,
        visit.thread_id,
        visit.checkpoint_ns,
        visit.checkpoint_id,
        visit.task_id,
    )
    assert "2023-11-14T22:13:20.123456+00:00" == visit.first_at.isoformat()


BAD: dict[str, dict[str, Any]] = {
    "a status that is none": {"status": "asleep"},
    "a negative after": {"after": -1},
    "no limit at all": {"limit": 0},
    "a limit that is no number": {"limit": "3"},
    "a limit that is a truth": {"limit": True},
    "a path that is no text": {"node_path": 3},
    "half a character": {"node_path": "\ud800"},
}


@pytest.mark.parametrize("case", BAD)
def test_what_can_never_be_asked_is_refused(reader: Reader, case: str) -> None:
    with pytest.raises(InvalidArgument):
        reader.visits("run 1", **BAD[case])


def test_a_run_that_is_not_there_is_said_so(reader: Reader) -> None:
    with pytest.raises(NotFound, match="'nobody'") as caught:
        reader.visits("nobody")

    assert ("run_not_found", {"run_id": "nobody"}) == (caught.value.code, caught.value.details)
