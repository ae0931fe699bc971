"""Two recoveries under one epoch: a worker whose database fails takes the tree it still holds again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from langgraph_ext.database import Database, Tx, open_database
from langgraph_ext.engine.closing import thread_of
from langgraph_ext.engine.commits import Held, RuntimeCommit, commit
from langgraph_ext.engine.operation_changes import Allow, Begin, Dispatch
from langgraph_ext.engine.recovery import take_over
from langgraph_ext.engine.rows import read_tree
from langgraph_ext.engine.starting import start
from langgraph_ext.engine.states import OperationState
from langgraph_ext.engine.task_changes import Activate
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.owners import Owner
from tests.support.agents import entry_of

NOW = {"now_us": 1_700_000_000_000_000}


@pytest.fixture
def database() -> Iterator[Database]:
    made = open_database(":memory:", fsync="normal")
    yield made
    made.close()


def test_e29_a_call_is_given_up_by_each_recovery_of_an_epoch(database: Database) -> None:
    """Both write as many changes, and no ticket moves: they are told apart all the same."""
    numbers = count()

    def story(tx: Tx) -> list[OperationState]:
        ids = lambda: f"{next(numbers):03}"  # noqa: E731
        root = start(tx, entry_of(), None, key=None, ids=ids, **NOW)
        (task,) = read_tree(tx, root).tasks
        owner = Owner.here("one")
        held = Held(thread_of(root), leases.acquire(tx, thread_id=thread_of(root), owner=owner, ttl_us=9, **NOW).epoch)

        def write(key: str, *changes: object) -> None:
            commit(tx, RuntimeCommit(root_id=root, key=key, changes=changes), held, ids=ids, **NOW)

        write("begin", Begin(agent_task_id=task, purpose="tool:1", kind="tool", name="tool", request={}))
        (operation,) = read_tree(tx, root).operations
        states = []
        for number in (1, 2):
            write(f"activate:{number}", Activate(agent_task_id=task))
            first = Allow(operation_id=operation, request={}, before=[], needs_ticket=False)
            write(f"call:{number}", first if number == 1 else Dispatch(operation_id=operation, number=2))
            recovery = take_over(read_tree(tx, root), held.epoch)
            assert recovery is not None
            commit(tx, recovery, held, ids=ids, **NOW)
            states.append(read_tree(tx, root).operations[operation].state)
        return states

    assert [OperationState.READY, OperationState.READY] == database.transact(story)
