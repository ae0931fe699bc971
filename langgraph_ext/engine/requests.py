"""Requests: what an agent asks a person, and how it is told (rules A2, A3 and A6).

    open ──▶ answered       the first answer counts, and only it
      └────▶ cancelled      its agent run has ended before

A request is a row with what a person is shown; whoever shows it, and however often. Its answer names it, is looked at
before it is written, and makes the task ready that waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from langgraph_ext import canonical
from langgraph_ext.database import Row, Tx
from langgraph_ext.engine import pauses, raising
from langgraph_ext.engine.applying import Applying, OfAgentRun, OfTask
from langgraph_ext.engine.asking import open_request, request_id_of
from langgraph_ext.engine.commits import RuntimeCommit
from langgraph_ext.engine.from_outside import say
from langgraph_ext.engine.moves import wake
from langgraph_ext.engine.rows import decoded, encoded
from langgraph_ext.engine.states import RequestState
from langgraph_ext.errors import ConflictError, NotFound
from langgraph_ext.ledger.owners import Owner

__all__ = ["Answer", "OpenRequest", "Request", "give_answer", "request_named", "request_of", "requests_of"]


class Request(NamedTuple):
    """A request as it is stored."""

    request_id: str
    root_id: str
    agent_run_id: str
    agent_task_id: str
    kind: str
    """`approval` or `limit`."""
    subject: str
    payload: Any
    state: RequestState
    answer: Any
    created_us: int
    closed_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest(OfTask):
    """A person is to decide something before the task goes on."""

    kind: str
    subject: str
    """With the kind, its name: the same is asked once."""
    payload: Any

    @property
    def request_id(self) -> str:
        """What answers name it by."""
        return request_id_of(self.kind, self.subject)

    def apply(self, at: Applying) -> None:
        """Put it on record."""
        open_request(at, self.agent_task_id, kind=self.kind, subject=self.subject, payload=self.payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(OfAgentRun):
    """A person has decided."""

    request_id: str
    answer: Any

    def apply(self, at: Applying) -> None:
        """Note it, once; the task that waits for it is ready."""
        at.gate(self.agent_run_id)
        data = encoded(self.answer, "answer")
        if at.tx.run("agent_request_answer", request_id=self.request_id, answer=data, now_us=at.now_us) == 0:
            raise _closed(request_named(at.tx, self.request_id))
        at.event("request.answered", request_id=self.request_id)
        request = request_named(at.tx, self.request_id)
        if request.kind == "limit":
            raising.decide(at, self.agent_run_id, request.payload, self.answer)
        pauses.go_on(at, works=True)
        wake(at, request.agent_task_id)


def give_answer(
    tx: Tx,
    root_id: str,
    request_id: str,
    value: Any,
    *,
    owner: Owner,
    ttl_us: int,
    lease_us: int,
    now_us: int,
    ids: Callable[[], str],
) -> None:
    """Answer a request, from any process. The same answer again changes nothing.

    Who drives the tree meanwhile goes on with what is said here; it is written under that worker's epoch.

    Args:
        tx: The open transaction.
        root_id: The tree.
        request_id: The request.
        value: The answer; it was looked at.
        owner: Who says so.
        ttl_us: Of the lease that it is written under if nobody drives the tree.
        lease_us: As `now_us`, by the database's clock.
        now_us: Microseconds since the epoch, UTC.
        ids: Makes ids.

    Raises:
        NotFound: The tree has no such request (`request_not_found`).
        ConflictError: It was answered otherwise (`request_answered`), or its run has ended (`run_closed`).
    """
    found = request_of(tx, root_id, request_id)
    if found.state is RequestState.ANSWERED and canonical.encode(found.answer) == canonical.encode(value):
        return
    if found.state is not RequestState.OPEN:
        raise _closed(found)
    change = Answer(agent_run_id=found.agent_run_id, request_id=request_id, answer=value)
    wanted = RuntimeCommit(root_id=root_id, key=f"answer:{request_id}", changes=(change,))
    say(tx, wanted, owner=owner, ttl_us=ttl_us, lease_us=lease_us, now_us=now_us, ids=ids)


def request_of(tx: Tx, root_id: str, request_id: str) -> Request:
    """A request of a tree.

    Raises:
        NotFound: It has none of this name (`request_not_found`).
    """
    row = tx.maybe("agent_request_get", request_id=request_id)
    if row is None or row["root_id"] != root_id:
        raise NotFound(
            f"agent run {root_id!r} has no request {request_id!r}; engine.requests(…) lists those it has",
            code="request_not_found",
            details={"agent_run_id": root_id, "request_id": request_id},
        )
    return _read(row)


def request_named(tx: Tx, request_id: str) -> Request:
    """A request that is there."""
    return _read(tx.one("agent_request_get", request_id=request_id))


def requests_of(tx: Tx, root_id: str, *, pending: bool = False) -> list[Request]:
    """The requests of a tree, the oldest first; `pending`: those that nobody has answered."""
    if pending:
        return [_read(row) for row in tx.all("agent_requests_open", root_id=root_id)]
    return [_read(row) for row in tx.all("agent_requests_of_tree", root_id=root_id)]


def _read(row: Row) -> Request:
    values = {name: row[name] for name in Request._fields}
    values |= {name: decoded(values[name]) for name in ("payload", "answer")}
    return Request(**{**values, "state": RequestState(values["state"])})


def _closed(found: Request) -> ConflictError:
    is_answered = found.state is RequestState.ANSWERED
    what = (
        "was answered before, and otherwise; the first answer counts" if is_answered else "is over: its run has ended"
    )
    return ConflictError(
        f"request {found.request_id!r} {what}",
        code="request_answered" if is_answered else "run_closed",
        details={"request_id": found.request_id, "answer": found.answer},
    )
