"""Listings of runs and of questions: keyset pages, a query of its own for each way to narrow them down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.ledger.encoded import Serde, value_of
from langgraph_ext.ledger.node_paths import NodePaths
from langgraph_ext.ledger.order import TOP_ID
from langgraph_ext.ledger.records import Interrupt, InterruptStatus, Run, RunStatus
from langgraph_ext.ledger.rows import at_least, moment, one_of, run_named, run_record, text_or_none

__all__ = [
    "Asked",
    "ask_children",
    "ask_interrupts",
    "ask_run",
    "ask_runs",
    "given_out",
    "pending_of",
    "run_ids",
    "runs_by_status",
    "with_nodes",
]

_START: dict[str, object] = {"requested_us": -1, "interrupt_id": "", "last_thread": ""}
"""Before every question."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question's row, and the name of the node that asked."""

    row: Row
    node: str | None


def ask_run(run_id: str) -> Callable[[Tx], Run]:
    """One run, ready to be read."""
    named = text_or_none(run_id, "run_id") or ""
    return lambda tx: run_record(run_named(tx, named))


def ask_children(run_id: str) -> Callable[[Tx], list[Run]]:
    """The runs that a run has started, ready to be read.

    Raises:
        NotFound: There is no such run (`run_not_found`).
    """
    named = text_or_none(run_id, "run_id") or ""
    return lambda tx: [run_record(row) for row in tx.all("run_children", run_id=run_named(tx, named)["run_id"])]


def ask_runs(
    *, thread_id: str | None, status: RunStatus | str | None, before: str | None, limit: int
) -> Callable[[Tx], list[Run]]:
    """A page of runs, newest first, ready to be read.

    Raises:
        InvalidArgument: There is no such status, or `limit` is below 1.
    """
    return partial(
        _runs,
        thread_id=text_or_none(thread_id, "thread_id"),
        status=one_of(RunStatus, status, "status"),
        before=text_or_none(before, "before"),
        size=at_least(1, limit, "limit"),
    )


def _runs(tx: Tx, *, thread_id: str | None, status: RunStatus | None, before: str | None, size: int) -> list[Run]:
    below = GREATEST if before is None else run_named(tx, before)["run"]
    if thread_id is not None:
        rows = _runs_of_thread(tx, thread_id, status, below, size)
    elif status is not None:
        rows = tx.all("runs_page_with_status", status=status, before=below, size=size)
    else:
        rows = tx.all("runs_page", before=below, size=size)
    return [run_record(row) for row in rows]


def _runs_of_thread(tx: Tx, thread_id: str, status: RunStatus | None, below: int, size: int) -> list[Row]:
    """A page of them; those that are left of deleted threads of that name come behind, as they are older."""
    where = {"thread_id": thread_id, "before": below, "size": size}
    if status is None:
        rows = tx.all("runs_page_of_thread", **where)
    else:
        rows = tx.all("runs_page_of_thread_with_status", **where, status=status)
    if len(rows) < size:
        rows += tx.all("runs_page_of_deleted", **{**where, "size": size - len(rows)}, status=status)
    return rows


def ask_interrupts(
    *,
    thread_id: str | None,
    run_id: str | None,
    pending: bool | None,
    kind: str | None,
    limit: int,
    after: str | None,
) -> Callable[[Tx], list[Asked]]:
    """A page of questions, oldest first, ready to be read.

    Raises:
        InvalidArgument: `limit` is below 1, `pending` is neither True, False nor None.
    """
    if pending not in (True, False, None):
        raise InvalidArgument(f"pending is {pending!r}; it must be True, False or None")
    return partial(
        _interrupts,
        thread_id=text_or_none(thread_id, "thread_id"),
        run_id=text_or_none(run_id, "run_id"),
        wanted={"pending": None if pending is None else int(pending), "kind": text_or_none(kind, "kind")},
        size=at_least(1, limit, "limit"),
        after=text_or_none(after, "after"),
    )


def _interrupts(
    tx: Tx, *, thread_id: str | None, run_id: str | None, wanted: Mapping[str, object], size: int, after: str | None
) -> list[Asked]:
    run = None if run_id is None else run_named(tx, run_id)
    if run is not None and thread_id not in (None, run["thread_id"]):
        return []
    start = _start(tx, thread_id if run is None else run["thread_id"], after)
    asked = {**wanted, "kind": None} if tx.sealer else wanted  # the database cannot compare what is encrypted
    found: list[Row] = []
    while True:
        rows = _page(tx, run, thread_id, asked, size, start)
        found += rows if asked is wanted else [row for row in rows if wanted["kind"] in (None, row["kind"])]
        if len(rows) < size or len(found) >= size:
            return with_nodes(tx, found[:size])
        start = _behind(rows[-1])


def _page(
    tx: Tx,
    run: Row | None,
    thread_id: str | None,
    wanted: Mapping[str, object],
    size: int,
    start: Mapping[str, object],
) -> list[Row]:
    if run is not None:
        return tx.all("interrupts_page_of_run", run=run["run"], size=size, **wanted, **_in_one_run(start))
    if thread_id is not None:
        return tx.all("interrupts_page_of_thread", thread_id=thread_id, size=size, **start, **wanted)
    if wanted["pending"]:
        return tx.all("interrupts_page_pending", kind=wanted["kind"], size=size, **start)
    return tx.all("interrupts_page", size=size, **start, **wanted)


def _in_one_run(start: Mapping[str, object]) -> dict[str, object]:
    """A run has one thread."""
    return {name: value for name, value in start.items() if name != "last_thread"}


def pending_of(tx: Tx, run: Row) -> list[Asked]:
    """Every question of a run that waits for its answer."""
    start = _in_one_run(_START)
    return with_nodes(
        tx, tx.all("interrupts_page_of_run", run=run["run"], size=GREATEST, pending=1, kind=None, **start)
    )


def _start(tx: Tx, thread_id: str | None, after: str | None) -> Mapping[str, object]:
    """Where a page begins: behind the question of this id."""
    if after is None:
        return _START
    row = tx.maybe("interrupt_named", thread_id=thread_id, interrupt_id=after)
    if row is None:
        raise NotFound(
            f"interrupt {after!r} is not in this ledger; interrupts() lists those that are",
            code="interrupt_not_found",
            details={"interrupt_id": after},
        )
    return _behind(row)


def _behind(row: Row) -> dict[str, object]:
    return {
        "requested_us": row["requested_us"],
        "interrupt_id": row["interrupt_id"],
        "last_thread": row["thread_id"],
    }


def with_nodes(tx: Tx, rows: list[Row]) -> list[Asked]:
    """Questions, with the nodes that asked them."""
    paths = NodePaths(tx)
    asked = []
    for row in rows:
        placed = paths.placed(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])
        asked.append(Asked(row, paths.stood(placed, row["task_path"]).node))
    return asked


def given_out(asked: list[Asked], serde: Serde | None) -> list[Interrupt]:
    """The questions as they are given out; done when the snapshot is over, as decoding may take its time."""
    return [_record(each.row, each.node, serde) for each in asked]


def _record(row: Row, node: str | None, serde: Serde | None) -> Interrupt:
    return Interrupt(
        interrupt_id=row["interrupt_id"],
        run_id=row["run_id"],
        thread_id=row["thread_id"],
        checkpoint_ns=row["checkpoint_ns"],
        checkpoint_id=row["checkpoint_id"],
        task_id=row["task_id"],
        node=node,
        ordinal=row["ordinal"],
        kind=row["kind"],
        value=value_of(row["value_type"], row["value"], serde),
        value_type=row["value_type"],
        status=_status_of(row),
        requested_at=moment(row["requested_us"]),
        closed_at=None if row["closed_us"] is None else moment(row["closed_us"]),
        answer=None if row["answer"] is None else value_of(row["answer_type"], row["answer"], serde),
        answer_type=row["answer_type"],
        answered_at=None if row["answered_us"] is None else moment(row["answered_us"]),
        answered_by=row["answered_by"],
    )


def _status_of(row: Row) -> InterruptStatus:
    """As everybody means it: in its table, a question is pending until its task has taken an answer."""
    status = InterruptStatus(row["status"])
    is_answered = status is InterruptStatus.PENDING and row["answered_us"] is not None
    return InterruptStatus.ANSWERED if is_answered else status


def run_ids(tx: Tx, beginning: str, *, limit: int) -> list[str]:
    """The first run ids that begin so, in their order: for people, who do not type 36 characters."""
    rows = tx.all("run_ids_beginning", beginning=beginning, end=beginning + TOP_ID, limit=limit)
    return [row["run_id"] for row in rows]


def runs_by_status(tx: Tx) -> dict[str, int]:
    """The number of runs of every status."""
    return {status.value: tx.one("runs_with_status", status=status.value)["runs"] for status in RunStatus}
