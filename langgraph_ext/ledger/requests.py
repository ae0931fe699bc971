"""Requests: what a run was begun with, and the name that a caller may give it (rules L50, L51).

    reserve ──▶ reserved ──▶ begun      the run's first checkpoint is stored
                   └─ its invocation is over without one: the next may reserve it

An attached invocation reserves its name when it takes its thread, before anything is read or run; of a graph that is
not attached the name is looked at when the run's first checkpoint is stored, and nodes may have run by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from langgraph_ext.database import Row, Tx
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import definitions, leases
from langgraph_ext.ledger.definitions import Definition

__all__ = ["Request", "begin", "reserve"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a run begins with."""

    run_key: str | None
    """The caller's name for it, unique over the ledger."""
    input_digest: str
    definition: Definition | None
    """The graph's; None if it is not attached."""
    made_by: str
    """Versions of this package and of LangGraph."""


def reserve(tx: Tx, request: Request, *, thread_id: str, epoch: int | None, now_us: int) -> None:
    """Keep a request's name for the run that is about to begin.

    Raises:
        ConflictError: A run was begun by it, or is about to be (`run_exists`), or it came with another input
            (`run_key_conflict`); nothing is written.
    """
    if request.run_key is None:
        return
    where = {"run_key": request.run_key, "thread_id": thread_id, "epoch": epoch, "now_us": now_us}
    known = tx.maybe("request_get", run_key=request.run_key)
    if known is None:
        tx.run("request_add", **where, input_digest=request.input_digest)
        return
    if known["input_digest"] != request.input_digest:
        raise ConflictError(
            f"request {request.run_key!r} came before with another input, on thread {known['thread_id']!r}; give this "
            "one a run_key of its own",
            code="run_key_conflict",
            details=_details(known),
        )
    if known["run_id"] is not None:
        _refuse(known, f"began run {known['run_id']!r}, which is {known['status']}")
    lease = leases.holder(tx, known["thread_id"], now_us=now_us)
    if lease is not None and lease.epoch == known["epoch"] and (known["thread_id"], epoch) != (thread_id, lease.epoch):
        _refuse(known, f"is about to begin a run on thread {known['thread_id']!r}")
    tx.run("request_take", **where)


def begin(tx: Tx, run: int, request: Request, *, thread_id: str, epoch: int | None, now_us: int) -> None:
    """A run has begun: record with what. Who has not reserved its name does so now.

    The name is that of the first run that an invocation begins. It may begin another, if it goes on behind an end.

    Raises:
        ConflictError: As `reserve`.
    """
    if _has_begun(tx, request, thread_id, epoch):
        request = replace(request, run_key=None)
    reserve(tx, request, thread_id=thread_id, epoch=epoch, now_us=now_us)
    if request.run_key is not None:
        tx.run("request_begun", run_key=request.run_key, run=run)
    if request.definition is not None:
        definitions.keep(tx, request.definition)
    tx.run(
        "run_begun_with",
        run=run,
        run_key=request.run_key,
        graph=None if request.definition is None else request.definition.graph,
        definition_digest=None if request.definition is None else request.definition.digest,
        input_digest=request.input_digest,
        made_by=request.made_by,
    )


def _has_begun(tx: Tx, request: Request, thread_id: str, epoch: int | None) -> bool:
    """Whether this very invocation has begun a run by its name."""
    known = None if request.run_key is None else tx.maybe("request_get", run_key=request.run_key)
    if known is None or epoch is None or known["run_id"] is None:
        return False
    return (known["thread_id"], known["epoch"]) == (thread_id, epoch)


def _refuse(known: Row, what: str) -> NoReturn:
    raise ConflictError(
        f"request {known['run_key']!r} came before and {what}; it is not run again. Go on with that run by invoking "
        "its thread without new input",
        code="run_exists",
        details=_details(known),
    )


def _details(known: Row) -> dict[str, object]:
    return {key: known[key] for key in ("run_key", "thread_id", "run_id", "status")}
