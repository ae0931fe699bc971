"""L50: who may reserve a request's name, and until when."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_ext.database import Database
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger import leases, requests
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.requests import Request

REQUEST = Request(run_key="order-7", input_digest="sha256:1", definition=None, made_by="a test")


def hold(database: Database, thread_id: str, name: str) -> int:
    return leases.take(database, thread_id=thread_id, owner=Owner.here(name), ttl_us=60_000_000).epoch


def reserve(database: Database, thread_id: str, epoch: int | None) -> None:
    now_us = database.clock_us()
    database.transact(requests.reserve, REQUEST, thread_id=thread_id, epoch=epoch, now_us=now_us)


def holder_of(database: Database) -> Any:
    row = database.read(lambda tx: tx.one("request_get", run_key="order-7"))
    return row["thread_id"], row["epoch"]


def test_l50_a_name_is_kept_for_as_long_as_its_invocation_holds_its_thread(database: Database) -> None:
    """Another thread is refused, also one that holds nothing; the invocation itself may ask again."""
    epoch = hold(database, "a", "first")
    reserve(database, "a", epoch)
    for thread_id, other in (("b", hold(database, "b", "second")), ("c", None)):
        with pytest.raises(ConflictError) as refused:
            reserve(database, thread_id, other)
        assert ("run_exists", "a") == (refused.value.code, refused.value.details["thread_id"])
    reserve(database, "a", epoch)

    assert ("a", epoch) == holder_of(database)


def test_l50_a_later_invocation_on_that_thread_does_not_keep_it(database: Database) -> None:
    """The one that reserved it is over and began no run; that somebody else holds its thread now does not matter."""
    epoch = hold(database, "a", "first")
    reserve(database, "a", epoch)
    database.transact(leases.release, "a", epoch, now_us=database.clock_us())
    assert epoch + 1 == hold(database, "a", "somebody else")
    reserve(database, "b", hold(database, "b", "second"))

    assert "b" == holder_of(database)[0]
