"""Verification: what should not be so, found by reading everything once, in pages.

What retention has taken away is not missed: a run says whether events of it are gone (retained.py), and what an attempt
has given back is empty once its checkpoint was pruned.

Each page is a snapshot of its own, and what is compared stands in one page; so a database that is being written to
gives no false findings, and one of any size needs no more memory than a page and what was found.

    code                      what was found
    task_identity             a task's calls stand in two namespaces, or under two task paths (rules L1, L2)
    run_missing               rows of a run that does not exist
    run_not_started           a run without its `run.started`
    run_started_twice         a run with several of them
    run_succeeded_twice       a run with several successful ends
    run_status                a run's status is not what its last event says
    run_events_gone           a run has lost events, and does not say how many, or up to where
    run_left                  a run that was kept when its thread was deleted is open
    interrupt_open            a run has ended and a question of it is pending
    interrupt_missing         a run is paused and no question of it is pending
    attempt_paused            a run has ended and an attempt of it waits for an answer
    interrupt_orphan          a question of a run that does not exist
    attempt_orphan            an attempt of a run that does not exist
    attempt_marker            an attempt's marker is not the one its digest was made of
    attempt_writes            an attempt's writes are not those its marker names by their digest
    attempt_succeeded_twice   an attempt succeeded after another of its visit had
    visit_orphan              visits of a run that does not exist
    effect_orphan             an effect of a run that does not exist
    effect_attempt            an effect whose attempt does not exist
    effect_status             an effect's status is not what its last event says
    call_orphan               a model call of a run that does not exist
    call_left                 a model call is open, and its thread was taken over since
    call_reserved             what is reserved for a model call is not what its bound and its report say
    budget_invariant          a child run has used more than it was given
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from langgraph_ext import canonical
from langgraph_ext.database import Database, Row, Tx
from langgraph_ext.ledger.effects import status_after
from langgraph_ext.ledger.node_paths import NodePaths
from langgraph_ext.ledger.records import Finding, RunStatus
from langgraph_ext.ledger.rows import run_named, text_or_none
from langgraph_ext.ledger.runs import STATUS_AFTER, is_apart
from langgraph_ext.ledger.verify_calls import calls_of_run

__all__ = ["averify", "verify"]

_RUNS = 100
_ROWS = 20_000
_BLOBS = 16
"""Attempts in a page: their writes may be long."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a page had to report, and where the next one begins (None: nowhere)."""

    findings: list[Finding]
    rest: Any = None


Sweep = Callable[[Tx, Any], Page]
"""One way through the database, page by page."""


def verify(database: Database, run_id: str | None) -> list[Finding]:
    """Everything that should not be so; an empty list when the ledger is sound.

    Raises:
        NotFound: There is no run of this name (`run_not_found`).
    """
    findings: list[Finding] = []
    for sweep, after in _sweeps(run_id):
        page = Page([], after)
        while page.rest is not None:
            page = database.read(sweep, page.rest)
            findings += page.findings
    return _once(findings)


async def averify(database: Database, run_id: str | None) -> list[Finding]:
    """As `verify`."""
    findings: list[Finding] = []
    for sweep, after in _sweeps(run_id):
        page = Page([], after)
        while page.rest is not None:
            page = await database.aread(sweep, page.rest)
            findings += page.findings
    return _once(findings)


def _once(findings: list[Finding]) -> list[Finding]:
    """Rows of one missing run may stand in several pages."""
    return list({(each.code, each.run_id, each.message): each for each in findings}.values())


def _sweeps(run_id: str | None) -> list[tuple[Sweep, Any]]:
    named = text_or_none(run_id, "run_id")
    if named is None:
        by_run = [(_runs, 0), (_rows, 0), (_visits, 0)]
        return [*by_run, (_tasks, ""), (_interrupts, ("", "")), (_attempts, ""), (_effects, ""), (_calls, "")]
    return [
        (partial(_one_run, run_id=named), 0),
        (partial(_tasks_of_run, run_id=named), 0),
        (partial(_attempts_of_run, run_id=named), ""),
    ]


# -- runs


def _runs(tx: Tx, after: int, /) -> Page:
    runs = tx.all("verify_runs", after=after, size=_RUNS)
    findings = [finding for run in runs for finding in _of_run(tx, run)]
    return Page(findings, runs[-1]["run"] if len(runs) == _RUNS else None)


def _one_run(tx: Tx, after: int, /, *, run_id: str) -> Page:
    return Page(list(_of_run(tx, run_named(tx, run_id))))


def _of_run(tx: Tx, run: Row) -> Iterator[Finding]:
    run_id, status = run["run_id"], RunStatus(run["status"])
    events = {row["event"]: row for row in tx.all("verify_run_events", run=run["run"])}
    counts = {event: row["number"] for event, row in events.items()}
    if counts.get("run.started", 0) != 1 and ("run.started" in counts or not run["gone_upto"]):
        code = "run_started_twice" if "run.started" in counts else "run_not_started"
        yield Finding(
            code=code, run_id=run_id, message=f"run {run_id!r} has {counts.get('run.started', 0)} run.started"
        )
    if counts.get("run.succeeded", 0) > 1:
        message = f"run {run_id!r} has {counts['run.succeeded']} run.succeeded"
        yield Finding(code="run_succeeded_twice", run_id=run_id, message=message)
    telling = [row for event, row in events.items() if event in STATUS_AFTER]
    last = max(telling, key=lambda row: row["last"])["event"] if telling else None
    if last is not None and STATUS_AFTER[last] is not status:
        message = f"run {run_id!r} is {status}, and the last event that changed it is {last}"
        yield Finding(code="run_status", run_id=run_id, message=message)
    pending = tx.one("verify_pending", run=run["run"])["number"]
    if status.ended and pending:
        message = f"run {run_id!r} is {status}, and {pending} of its questions are pending"
        yield Finding(code="interrupt_open", run_id=run_id, message=message)
    if status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED) and (waiting := tx.all("attempts_paused", run=run["run"])):
        message = f"run {run_id!r} is {status}, and attempt {waiting[0]['attempt_id']!r} waits for an answer"
        yield Finding(code="attempt_paused", run_id=run_id, message=message)
    if status is RunStatus.PAUSED and not pending and not is_apart(run):  # what an agent asks is the engine's
        message = f"run {run_id!r} is paused, and none of its questions is pending"
        yield Finding(code="interrupt_missing", run_id=run_id, message=message)
    if (run["gone_upto"] > 0) != (run["events_gone"] > 0):
        message = f"run {run_id!r} has lost {run['events_gone']} events, up to the cursor {run['gone_upto']}"
        yield Finding(code="run_events_gone", run_id=run_id, message=message)
    if run["deleted_thread"] is not None and not status.ended:
        message = f"run {run_id!r} is {status}, and its thread {run['deleted_thread']!r} was deleted"
        yield Finding(code="run_left", run_id=run_id, message=message)
    for code, message in (*_of_effects(tx, run), *calls_of_run(tx, run["run"])):
        yield Finding(code=code, run_id=run_id, message=message)


def _of_effects(tx: Tx, run: Row) -> Iterator[tuple[str, str]]:
    """The effects of a run, beside what its events tell of them, as far as those are there."""
    effects = tx.all("verify_effects_of_run", run=run["run"])
    last: dict[str, str | None] = {}
    for row in tx.all("verify_effect_events", run=run["run"]) if effects else ():
        details = canonical.decode((row["details"] or "{}").encode())
        last[details.get("effect_id")] = status_after(row["event"], details)
    for effect in effects:
        named, told = f"effect {effect['effect_id']!r}", last.get(effect["effect_id"])
        if not effect["has_attempt"]:
            yield "effect_attempt", f"{named} belongs to attempt {effect['attempt_id']!r}, which is not there"
        if told != effect["status"] and (told is not None or not run["gone_upto"]):
            yield "effect_status", f"{named} is {effect['status']}, and by its last event it is {told or 'not begun'}"


# -- rows of the log


def _rows(tx: Tx, after: int, /) -> Page:
    last = tx.one("log_last")["seq"] or 0
    findings = [
        Finding(
            code="run_missing",
            run_id=None,
            message=f"rows of the log belong to run number {row['run']}, which is not there",
        )
        for row in tx.all("verify_rows", after=after, upto=after + _ROWS)
    ]
    return Page(findings, after + _ROWS if after + _ROWS < last else None)


def _visits(tx: Tx, after: int, /) -> Page:
    run = tx.one("verify_visits", after=after)["run"]
    if run is None:
        return Page([])
    message = f"visits belong to run number {run}, which is not there"
    return Page([Finding(code="visit_orphan", run_id=None, message=message)], run)


def _tasks(tx: Tx, after: str, /) -> Page:
    thread_id = tx.one("verify_thread_after", after=after)["thread_id"]
    if thread_id is None:
        return Page([])
    return Page(list(_of_thread(tx, thread_id)), thread_id)


def _tasks_of_run(tx: Tx, after: int, /, *, run_id: str) -> Page:
    found = _of_thread(tx, run_named(tx, run_id)["thread_id"])
    return Page([finding for finding in found if finding.run_id == run_id])


def _of_thread(tx: Tx, thread_id: str) -> Iterator[Finding]:
    paths = NodePaths(tx)
    for row in tx.all("verify_tasks", thread_id=thread_id):
        places = (paths.placed(thread_id, ns, row["checkpoint_id"]) for ns in (row["checkpoint_ns"], row["other_ns"]))
        runs = [placed.run for placed in places if placed is not None]
        task = f"task {row['task_id']!r} of checkpoint {row['checkpoint_id']!r} in thread {thread_id!r}"
        first, second = (row["checkpoint_ns"], row["task_path"]), (row["other_ns"], row["other_path"])
        message = f"{task} has calls as {first!r} and as {second!r}"
        yield Finding(code="task_identity", run_id=paths.run_id(runs[0] if runs else None), message=message)


# -- questions, effects and attempts


def _interrupts(tx: Tx, after: tuple[str, str], /) -> Page:
    rows = tx.all("verify_interrupts", thread_id=after[0], interrupt_id=after[1], size=_RUNS)
    findings = [
        Finding(
            code="interrupt_orphan",
            run_id=None,
            message=f"interrupt {row['interrupt_id']!r} of thread {row['thread_id']!r} belongs to a missing run",
        )
        for row in rows
    ]
    return Page(findings, (rows[-1]["thread_id"], rows[-1]["interrupt_id"]) if len(rows) == _RUNS else None)


def _effects(tx: Tx, after: str, /) -> Page:
    rows = tx.all("verify_effects", after=after, size=_RUNS)
    findings = [
        Finding(code="effect_orphan", run_id=None, message=f"effect {row['effect_id']!r} belongs to a missing run")
        for row in rows
    ]
    return Page(findings, rows[-1]["effect_id"] if len(rows) == _RUNS else None)


def _calls(tx: Tx, after: str, /) -> Page:
    rows = tx.all("verify_model_calls", after=after, size=_RUNS)
    findings = [
        Finding(code="call_orphan", run_id=None, message=f"call {row['call_id']!r} belongs to a missing run")
        for row in rows
    ]
    return Page(findings, rows[-1]["call_id"] if len(rows) == _RUNS else None)


def _attempts(tx: Tx, after: str, /) -> Page:
    return _page_of_attempts(tx.all("verify_attempts", after=after, size=_BLOBS))


def _attempts_of_run(tx: Tx, after: str, /, *, run_id: str) -> Page:
    run = run_named(tx, run_id)["run"]
    return _page_of_attempts(tx.all("verify_attempts_of_run", run=run, after=after, size=_BLOBS))


def _page_of_attempts(rows: list[Row]) -> Page:
    findings = [
        Finding(code=code, run_id=row["run_id"], message=f"attempt {row['attempt_id']!r} {what}")
        for row in rows
        for code, what in _of_attempt(row)
    ]
    return Page(findings, rows[-1]["attempt_id"] if len(rows) == _BLOBS else None)


def _of_attempt(row: Row) -> Iterator[tuple[str, str]]:
    if row["run_id"] is None:
        yield "attempt_orphan", "belongs to a run that is not there"
    if row["status"] == "succeeded" and row["follows_success"]:
        yield "attempt_succeeded_twice", "succeeded after another attempt of its visit had"
    marker = row["marker"]
    if marker is None:
        return
    if canonical.digest(marker) != row["digest"]:
        yield "attempt_marker", "has a marker that its digest was not made of"
    elif row["writes"] and _named_writes(marker) != canonical.digest(row["writes"]):
        yield "attempt_writes", "has writes that its marker does not name"


def _named_writes(marker: bytes) -> object:
    """The digest of the writes, as a marker has it under `writes`."""
    content = canonical.decode(marker)
    return content.get("writes") if isinstance(content, dict) else None
