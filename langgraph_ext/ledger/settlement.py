"""Settlement: an attempt's end becomes part of the transaction that stores what its task wrote.

A body that has returned, or asks a question, stages its end: a marker, which is canonical JSON with a digest, and the
serialized writes that the marker names by theirs. Who stores the task's writes, or the checkpoint that supersedes them,
settles the end in the same transaction: all of it or none is stored (rule L4). There is no other way to the statuses
paused and succeeded.

    marker = {"format": 1, "thread_id", "checkpoint_id", "task_id", "ordinal", "attempt_id", "epoch",
              "outcome": "succeeded" | "paused", "writes": "sha256:…", "error", "notes"}

A settled attempt is immutable: the same digest again changes nothing, so a transaction that is run again, or two that
have seen the same end, do no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NoReturn

from langgraph_ext import canonical
from langgraph_ext.database import AppTx, Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import leases, runs, tombstones
from langgraph_ext.ledger.attempts import Attempt, AttemptStatus, append_attempt_event, cancel_paused, find, may_move
from langgraph_ext.ledger.inside import NOTHING, Inside
from langgraph_ext.ledger.task_paths import is_run_by
from langgraph_ext.ledger.texts import cut

__all__ = ["FORMAT", "End", "PartKey", "Staged", "check", "mark", "write"]

FORMAT = 1
"""Version of the marker's format. Another one is refused: what it promises is not known here."""


Outcome = Literal["succeeded", "paused"]

_OUTCOMES: Mapping[str, AttemptStatus] = {
    "succeeded": AttemptStatus.SUCCEEDED,
    "paused": AttemptStatus.PAUSED,
}


class PartKey(NamedTuple):
    """Names one part of a task: one of its durable calls, whose executions are attempts."""

    thread_id: str
    checkpoint_id: str
    """The checkpoint that the task is executing."""
    task_id: str
    ordinal: int
    """Which part, from 0: the task's own function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """An attempt's end on its way into the database. Made by `mark`; `check` believes nothing of it."""

    key: PartKey
    attempt_id: str
    epoch: int
    anchors: tuple[tuple[str, str], ...]
    """`(checkpoint_ns, checkpoint_id)` of every checkpoint being executed around it, its own among them."""
    marker: bytes
    digest: str
    """The marker's: `sha256:<64 hex>`."""
    writes: bytes
    """The serialized result, of any length."""
    gives_back: bool = False
    """Whether its attempt holds the thread's lease by itself (rule L14): the lease is checked, and given back."""
    inside: Inside = field(default=NOTHING, compare=False)
    """What the application does in the same transaction."""

    @property
    def has_returned(self) -> bool:
        """Whether it is the end of a body that returned, and not of one that asks."""
        return bool(canonical.decode(self.marker)["outcome"] == "succeeded")

    def is_of(self, task_id: str) -> bool:
        """Whether it is the end of a part of this task, or of one in a subgraph that this task runs."""
        return self.key.task_id == task_id or any(is_run_by(anchor[0], task_id) for anchor in self.anchors)


class End(NamedTuple):
    """A staged end that was checked, and the attempt that it is to end, as the transaction read it."""

    staged: Staged
    attempt: Attempt
    target: AttemptStatus


def mark(
    outcome: Outcome,
    *,
    key: PartKey,
    attempt_id: str,
    epoch: int,
    anchors: Sequence[tuple[str, str]],
    writes: bytes,
    error: str | None = None,
    notes: str | None = None,
    gives_back: bool = False,
    inside: Sequence[Callable[[AppTx], Any]] = (),
) -> Staged:
    """Say how an attempt ended.

    Args:
        outcome: Whether its body returned, or asks a question.
        key: The part of its task.
        attempt_id: The attempt.
        epoch: The fencing epoch of the lease it ran under.
        anchors: `(checkpoint_ns, checkpoint_id)` of every checkpoint being executed around it, its own among them.
        writes: The serialized result, of any length.
        error: An error that came with it; cut at 64 KiB of UTF-8, and says so.
        notes: What else there is to say; cut likewise.
        gives_back: Whether its attempt holds the thread's lease by itself.
        inside: What the application does to its own tables in the same transaction, in this order.
    """
    content = {
        "format": FORMAT,
        **_ids(key, attempt_id, epoch),
        "outcome": outcome,
        "writes": canonical.digest(writes),
        "error": None if error is None else cut(error),
        "notes": None if notes is None else cut(notes),
    }
    marker = canonical.encode(content, where="marker")
    return Staged(
        key=key,
        attempt_id=attempt_id,
        epoch=epoch,
        anchors=tuple(anchors),
        marker=marker,
        digest=canonical.digest(marker),
        writes=writes,
        gives_back=gives_back,
        inside=Inside(inside) if inside else NOTHING,
    )


def check(tx: Tx, staged: Iterable[Staged]) -> list[End]:
    """What is still to be settled, checked; writes nothing.

    Raises:
        ConflictError: One of them can never be settled; `details` names its attempt. `terminal_mismatch`: it is not
            what it says, or not this task's; `terminal_conflict`: its attempt has ended otherwise.
        InsideFailed: A function of the application's has raised in another transaction.
    """
    ends = [_checked(tx, each) for each in dict.fromkeys(staged)]
    return [end for end in ends if end is not None]


def write(tx: Tx, ends: Iterable[End], *, now_us: int) -> None:
    """Settle what `check` of the same transaction returned: rows and events.

    Args:
        tx: The open transaction.
        ends: What to settle.
        now_us: When they ended: microseconds since the epoch, UTC.

    Raises:
        ConflictError: One has moved since, which a database with several writers allows (`terminal_conflict`).
        InsideFailed: A function of the application's raised; the transaction must not be committed.
    """
    for staged, attempt, target in ends:
        staged.inside.run(tx, staged.attempt_id)
        moved = tx.run(
            "attempt_settle",
            attempt_id=attempt.attempt_id,
            expected=attempt.status,
            epoch=staged.epoch,
            target=target,
            marker=staged.marker,
            digest=staged.digest,
            writes=staged.writes,
            ended_us=now_us if target.ended else None,
        )
        if moved != 1:
            _conflict(staged, target, f"is {attempt.status} no longer")
        append_attempt_event(tx, attempt, target, now_us=now_us)
        if target is AttemptStatus.PAUSED and runs.is_over(tx, attempt.run):
            cancel_paused(tx, attempt.run, now_us=now_us)  # it asks when its run was cancelled: no answer will come
        if staged.gives_back:
            leases.give_back(tx, attempt.thread_id, staged.epoch, now_us=now_us)


def _checked(tx: Tx, staged: Staged) -> End | None:
    """One end and its attempt; None if it is settled."""
    staged.inside.refuse_failed(staged.attempt_id)
    target = _outcome_of(staged)
    attempt = find(tx, staged.attempt_id)
    if attempt is None:
        tombstones.refuse_missing(tx, staged.key.thread_id, staged.key.checkpoint_id)
        _mismatch(staged, "nobody began this attempt")
    if staged.key != (attempt.thread_id, attempt.checkpoint_id, attempt.task_id, attempt.ordinal):
        _mismatch(staged, f"the attempt is one of task {attempt.task_id!r} at {attempt.checkpoint_id!r}")
    if attempt.digest == staged.digest and not _pauses_again(attempt, staged):
        return None
    if not may_move(attempt.status, target):
        _conflict(staged, target, f"is {attempt.status}" + (f" with {attempt.digest}" if attempt.digest else ""))
    if attempt.epoch != staged.epoch:
        _mismatch(staged, f"the attempt runs under epoch {attempt.epoch}, the marker is of epoch {staged.epoch}")
    if staged.gives_back:
        leases.check(tx, attempt.thread_id, staged.epoch)
    return End(staged, attempt, target)


def _pauses_again(attempt: Attempt, staged: Staged) -> bool:
    """One that went on under the same epoch, and asks again, does so with the marker it has."""
    return attempt.status is AttemptStatus.RUNNING and attempt.epoch == staged.epoch


def _outcome_of(staged: Staged) -> AttemptStatus:
    """What the marker says, after looking whether it and the writes are what they say."""
    if canonical.digest(staged.marker) != staged.digest:
        _mismatch(staged, "the marker's digest is not that of its content")
    try:
        content = canonical.decode(staged.marker)
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else None
        _mismatch(staged, f"the marker is of format {found!r}, this code knows {FORMAT}")
    ids = _ids(staged.key, staged.attempt_id, staged.epoch)
    if wrong := [name for name, value in ids.items() if content.get(name) != value]:
        _mismatch(staged, f"the marker is of another task or attempt (it differs in {', '.join(wrong)})")
    if content.get("writes") != canonical.digest(staged.writes):
        _mismatch(staged, "the writes beside the marker are not those it names")
    target = _OUTCOMES.get(str(content.get("outcome")))
    if target is None:
        _mismatch(staged, "the marker has an outcome that no marker can have")
    return target


def _ids(key: PartKey, attempt_id: str, epoch: int) -> dict[str, Any]:
    return {**key._asdict(), "attempt_id": attempt_id, "epoch": epoch}


def _conflict(staged: Staged, target: AttemptStatus, found: str) -> NoReturn:
    raise ConflictError(
        f"attempt {staged.attempt_id!r} of task {staged.key.task_id!r}: it was to end as {target} and {found}; an end "
        "is never changed, so nothing was stored. Another process has taken the thread over, or ended the attempt: see "
        "how it ended, and invoke again to go on",
        code="terminal_conflict",
        details=_details(staged),
    )


def _mismatch(staged: Staged, why: str) -> NoReturn:
    raise ConflictError(
        f"attempt {staged.attempt_id!r} of task {staged.key.task_id!r}: {why}; nothing was stored. Invoke again: the "
        "attempt counts as interrupted then",
        code="terminal_mismatch",
        details=_details(staged),
    )


def _details(staged: Staged) -> dict[str, object]:
    return _ids(staged.key, staged.attempt_id, staged.epoch) | {"digest": staged.digest}
