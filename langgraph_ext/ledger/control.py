"""Control: a run is asked to end, from any process, and who sees to it (rules L18, L45, L46).

A run that nobody runs is cancelled on the spot. One that may be running is asked: it sees to it at its next durable
node (admission.py), or when its invocation, drained by its next checkpoint, is over (invocations.py).

The runs that it has started, such as those of agents, are asked with it; those that belong to a step that may be
finished, when it ends. Each is ended by the engine alone: by whoever drives it, or comes to it next.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger import abandoned, inbox, leases, runs
from langgraph_ext.ledger.interrupts import close_of_run
from langgraph_ext.ledger.records import CancelMode, InboxKind, InterruptStatus, Run, RunStatus
from langgraph_ext.ledger.rows import one_of, run_named, run_record, text_or_none
from langgraph_ext.ledger.runs import At
from langgraph_ext.ledger.texts import cut

__all__ = ["ask_to_cancel", "ask_whether_to_end", "may_finish", "see_to", "waiting"]


def ask_to_cancel(run_id: str, mode: CancelMode | str, reason: str | None, now_us: int) -> Callable[[Tx], Run]:
    """Cancel a run, or ask it to end, ready to be committed; returns it as it stands then.

    Raises:
        InvalidArgument: The id or the reason is no text, or there is no such mode.
    """
    words = text_or_none(reason, "reason")
    return partial(
        _cancel,
        run_id=text_or_none(run_id, "run_id") or "",
        mode=one_of(CancelMode, mode, "mode") or CancelMode.NOW,
        reason=None if words is None else cut(words),
        now_us=now_us,
    )


def _cancel(tx: Tx, *, run_id: str, mode: CancelMode, reason: str | None, now_us: int) -> Run:
    """Ask once: the same again changes nothing.

    Raises:
        ConflictError: The run has ended otherwise (`run_closed`).
    """
    run = run_named(tx, run_id)
    number, at = run["run"], At(run["thread_id"], run["last_id"], now_us)
    if runs.is_cancelled(tx, number):
        return run_record(run)
    inbox.refuse_closed(run)
    if waiting(tx, at.thread_id, number) is None:
        inbox.add(tx, run, InboxKind.CANCEL, mode=mode, reason=reason, now_us=now_us)
        if mode is not CancelMode.AFTER_BATCH:
            _ask_children(tx, run["run_id"], mode, reason, now_us=now_us)
    if not _may_run(tx, run, now_us):
        see_to(tx, number, at)
    return run_record(tx.one("run_get", run=number))


def _ask_children(tx: Tx, run_id: str, mode: CancelMode, reason: str | None, *, now_us: int) -> None:
    """Ask the runs that a run has started to end, but for those that have ended, or were asked."""
    for child in tx.all("run_children", run_id=run_id):
        is_over = RunStatus(child["status"]).ended or child["status"] == RunStatus.FAILED
        if not is_over and waiting(tx, child["thread_id"], child["run"]) is None:
            inbox.add(tx, child, InboxKind.CANCEL, mode=mode, reason=reason, now_us=now_us)


def _may_run(tx: Tx, run: Row, now_us: int) -> bool:
    """Whether somebody may be running a run: not an owner who is gone, and nobody runs one that is not the head's.

    What such an owner left running comes to an end here, as it would at the next admission. A run apart is ended by the
    engine alone, whoever drives it: its own rows say how, and those here the same.
    """
    if runs.is_apart(run):
        return True
    head = tx.maybe("run_at_head", thread_id=run["thread_id"])
    if head is None or head["run"] != run["run"]:
        return False
    if leases.holder(tx, run["thread_id"], now_us=now_us) is not None:
        return True
    if abandoned.give_up(tx, run["thread_id"], now_us=now_us):
        return False
    return bool(run["status"] == RunStatus.RUNNING)  # its graph may be unattached


def waiting(tx: Tx, thread_id: str, run: int | None, *, root_id: str | None = None) -> Row | None:
    """What was asked of a run, or of the run of a root checkpoint, and nobody has seen to; None if nothing was."""
    return tx.maybe("inbox_waiting", thread_id=thread_id, run=run, root_id=root_id)


def may_finish(asked: Row, checkpoint_id: str) -> bool:
    """Whether a run that was asked to end may finish the step that it was asked in, and this is that step.

    Args:
        asked: What was asked.
        checkpoint_id: The checkpoint that the step executes: that of the innermost graph.
    """
    return bool(asked["mode"] == CancelMode.AFTER_BATCH and checkpoint_id <= asked["at_id"])


def see_to(tx: Tx, run: int, at: At) -> bool:
    """End a run that was asked to, with its questions and the attempts that wait for their answers.

    Returns:
        Whether it was asked, and was open: the first end wins (rule L46).
    """
    asked = waiting(tx, at.thread_id, run)
    if asked is None or RunStatus(tx.one("run_get", run=run)["status"]).ended:
        return False
    close_of_run(tx, at.thread_id, run, InterruptStatus.SUPERSEDED, now_us=at.now_us)
    runs.move(tx, run, RunStatus.CANCELLED, at, details={"reason": "requested", "words": asked["reason"]})
    tx.run("inbox_consume", run=run, kind=InboxKind.CANCEL, now_us=at.now_us)
    run_id = tx.one("run_get", run=run)["run_id"]
    _ask_children(tx, run_id, CancelMode.NOW, asked["reason"], now_us=at.now_us)
    return True


def ask_whether_to_end(run_id: str) -> Callable[[Tx], bool]:
    """Whether somebody has cancelled a run, and nothing more of its present step begins either, ready to be read."""
    return partial(_is_to_end, run_id=run_id)


def _is_to_end(tx: Tx, *, run_id: str) -> bool:
    run = run_named(tx, run_id)
    asked = waiting(tx, run["thread_id"], run["run"])
    return runs.is_cancelled(tx, run["run"]) or (asked is not None and asked["mode"] != CancelMode.AFTER_BATCH)
