"""Commits: the one way in which the engine writes (rules E2 to E5).

    lease's epoch ─▶ commit key ─┬─▶ known, same digest: its first result
                                 ├─▶ known, another digest: idempotency_conflict
                                 └─▶ new: lock the rows in order ─▶ expected revisions ─▶ changes ─▶ events ─▶ result

What is pure (routing, validation, reducers, prompts) was done before; nothing in here waits for anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.engine.applying import Applying, Change, Ref
from langgraph_ext.engine.granting import regrant
from langgraph_ext.engine.row_cache import RowCache
from langgraph_ext.engine.rows import decoded
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import leases

__all__ = ["Commit", "Committed", "Held", "Look", "RuntimeCommit", "commit"]


class Held(NamedTuple):
    """The lease that a commit is made under: its thread, and its fencing epoch."""

    thread_id: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeCommit:
    """What is to be written together, under a key that finds it again."""

    root_id: str
    key: str
    changes: tuple[Change, ...]
    expected: Mapping[Ref, int] = field(default_factory=dict)
    """Revisions that rows must have."""
    digest: str = field(init=False)
    """Of what is written: neither epoch nor time, nor what was expected. Made here, outside of the transaction."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", self._digest())

    def _digest(self) -> str:
        parts = [canonical.encode(self.key, where="key")]
        for change in self.changes:
            held = [(name, getattr(change, name)) for name in _names(type(change))]
            try:
                parts.append(canonical.encode([type(change).__name__, *held]))
            except TypeError:  # each field by itself: what can be stored can be digested, however deep it is
                parts.append(canonical.encode(type(change).__name__))
                for name, value in held:
                    parts += canonical.encode(name), canonical.encode(value, where=name)
        return canonical.digest(b"\n".join(parts))

    @property
    def locks(self) -> list[Ref]:
        """The rows it locks, in their order; the root's before all others, as tickets and order are counted there."""
        touched = {ref for each in self.changes for ref in each.rows()} | self.expected.keys()
        root = Ref.agent_run(self.root_id)
        return [root, *sorted(touched - {root})]


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a change."""
    return tuple(each.name for each in fields(kind))


class Committed(NamedTuple):
    """What a commit answers."""

    result: dict[str, Any]
    again: bool
    """Whether it was committed before, by another call than this one, and this is its first result."""
    seen: Any = None
    """What was looked at behind it, in its transaction."""


Look = Callable[[Tx], Any]
"""Reads what a commit's caller wants to see behind it, in its transaction."""

Commit = Callable[[RuntimeCommit, Look | None], Awaitable[Committed]]
"""Writes a commit under the lease of the loop that it belongs to."""


def commit(
    tx: Tx,
    wanted: RuntimeCommit,
    held: Held,
    *,
    now_us: int,
    ids: Callable[[], str],
    look: Look | None = None,
    then: RuntimeCommit | None = None,
) -> Committed:
    """Write a commit.

    Args:
        tx: The open transaction.
        wanted: What to write.
        held: The lease it is written under.
        now_us: Microseconds since the epoch, UTC.
        ids: Makes ids of new rows.
        look: Reads what its caller wants to see next, as it is behind this commit.
        then: The commit that follows in the same transaction, unless its scope closes or is busy: then whoever looks
            next sees to that.

    Raises:
        LeaseError: The thread is another's by now, or the tree is driven under another one's lease (`lease_lost`).
        ConflictError: The key was used for something else (`idempotency_conflict`), a row is not as it was expected
            (`revision_conflict`), or something was to begin where nothing does any more (`scope_closed`).
    """
    if then is not None:
        committed = commit(tx, wanted, held, now_us=now_us, ids=ids)
        try:
            return committed._replace(seen=commit(tx, then, held, now_us=now_us, ids=ids, look=look).seen)
        except ConflictError as conflict:  # told before anything of it was written
            if conflict.code not in ("scope_closed", "scope_busy"):
                raise
            return committed if look is None else committed._replace(seen=look(tx))
    leases.check(tx, held.thread_id, held.epoch)
    tx = RowCache(tx)
    known = _look_up(tx, wanted, held.epoch)
    if known is not None:
        return known if look is None else known._replace(seen=look(tx))
    root = _lock(tx, wanted.locks, wanted.expected)
    if root["thread_id"] != held.thread_id:
        raise leases.lost(held.thread_id, held.epoch, f"agent run {wanted.root_id!r} is not driven under it")
    at = Applying(tx, wanted.root_id, root["run"], held.thread_id, held.epoch, now_us, ids)
    for change in wanted.changes:
        change.apply(at)
    if at.looks_again:  # now, as a scope that a request closes takes nothing back of what was committed with it
        regrant(at)
    _keep(tx, wanted, at.result, epoch=held.epoch, now_us=now_us)
    return Committed(at.result, again=False, seen=None if look is None else look(tx))


def _keep(tx: Tx, wanted: RuntimeCommit, result: dict[str, Any], *, epoch: int, now_us: int) -> None:
    """Note a commit and its result under its key."""
    data = canonical.encode_plain(result, where="result")
    columns = {"root_id": wanted.root_id, "commit_key": wanted.key, "digest": wanted.digest}
    tx.run("agent_commit_insert", **columns, result=data, epoch=epoch, now_us=now_us)


def _look_up(tx: Tx, wanted: RuntimeCommit, epoch: int) -> Committed | None:
    """What was committed under a commit's key; None if nothing was.

    In a transaction that is run again it was committed by this very call, if under its epoch: what it put on record is
    still its own to do.

    Raises:
        ConflictError: It was something else (`idempotency_conflict`).
    """
    known = tx.maybe("agent_commit_get", root_id=wanted.root_id, commit_key=wanted.key)
    if known is None:
        return None
    if known["digest"] != wanted.digest:
        raise ConflictError(
            f"commit {wanted.key!r} of agent run {wanted.root_id!r} is on record, and wrote something else; "
            "nothing was written",
            code="idempotency_conflict",
            details={"root_id": wanted.root_id, "commit_key": wanted.key},
        )
    return Committed(decoded(known["result"]), again=not (tx.repeated and known["epoch"] == epoch))


def _lock(tx: Tx, locks: Iterable[Ref], expected: Mapping[Ref, int]) -> Row:
    """Lock rows, the root's first, and see that they are as expected; returns the root's."""
    root: Row | None = None
    for ref in locks:
        row = _row(tx, ref)
        wanted = expected.get(ref)
        if row is None or (wanted is not None and row["revision"] != wanted):
            raise ConflictError(
                f"{_NOUNS[ref.level]} {ref.row_id!r} is at revision {row and row['revision']} instead of "
                f"{wanted}; nothing was written, read it again",
                code="revision_conflict",
                details={"id": ref.row_id, "revision": row and row["revision"], "expected": wanted},
            )
        root = root or row
    assert root is not None, "a commit locks its root"
    return root


_NOUNS = {1: "agent run", 2: "agent task", 3: "operation"}


def _row(tx: Tx, ref: Ref) -> Row | None:
    if ref.level == 1:
        return tx.maybe("agent_run_get", agent_run_id=ref.row_id)
    if ref.level == 2:
        return tx.maybe("agent_task_get", agent_task_id=ref.row_id)
    return tx.maybe("agent_operation_get", operation_id=ref.row_id)
