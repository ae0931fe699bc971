"""Forgetting: what the ledger's own tables lose with a thread, or with a run that is rolled back."""

from __future__ import annotations

from collections.abc import Collection

from langgraph_ext.database import Tx
from langgraph_ext.ledger.agent_threads import beginning_of_keys, thread_of

__all__ = ["forget_thread", "forget_undone"]


def forget_thread(tx: Tx, thread_id: str) -> None:
    """Delete what the ledger's own tables hold of a thread, and all that is stored of its agent nodes' agent runs."""
    beginning, end = beginning_of_keys(thread_id)
    for root in tx.all("agent_roots_of_thread", thread_id=thread_id, beginning=beginning, end=end):
        _forget_agent(tx, root["agent_run_id"])
    tx.run("inbox_delete", thread_id=thread_id)
    tx.run("requests_delete", thread_id=thread_id)
    tx.run("memos_delete", thread_id=thread_id)
    tx.run("model_calls_delete", thread_id=thread_id)
    tx.run("budget_delete", thread_id=thread_id)
    tx.run("slices_delete", thread_id=thread_id)
    if tx.run("runs_delete", thread_id=thread_id):  # the others belong to runs
        tx.run("interrupts_delete", thread_id=thread_id)
        tx.run("effect_uses_delete", thread_id=thread_id)
        tx.run("effect_forks_delete", thread_id=thread_id)
        tx.run("effects_delete", thread_id=thread_id)
        tx.run("attempts_delete", thread_id=thread_id)
        tx.run("visits_delete", thread_id=thread_id)


def _forget_agent(tx: Tx, root_id: str) -> None:
    """Delete a tree of agent runs. The engine's queries are there whether it was imported or not."""
    tx.run("agent_request_forget", root_id=root_id)
    tx.run("agent_member_forget", root_id=root_id)  # found by its batch
    tx.run("agent_batch_forget", root_id=root_id)
    tx.run("agent_message_forget", root_id=root_id)  # found by its task
    tx.run("agent_call_forget", root_id=root_id)  # found by its operation
    tx.run("agent_ticket_forget", root_id=root_id)
    tx.run("agent_operation_forget", root_id=root_id)
    tx.run("agent_task_forget", root_id=root_id)
    tx.run("agent_commit_forget", root_id=root_id)
    tx.run("agent_run_forget", root_id=root_id)
    own_thread = thread_of(root_id)
    tx.run("events_delete", thread_id=own_thread)
    forget_thread(tx, own_thread)


def forget_undone(tx: Tx, thread_id: str, run_ids: Collection[str]) -> None:
    """Delete the runs of these names that have no checkpoint left, with all that the ledger holds of them."""
    for run_id in sorted(run_ids):
        run = tx.maybe("run_named", run_id=run_id)
        if run is not None and run["thread_id"] == thread_id and tx.maybe("run_place", run=run["run"]) is None:
            tx.run("interrupts_of_run_delete", run=run["run"])
            tx.run("effect_uses_of_run_delete", run=run["run"])
            tx.run("effect_forks_of_run_delete", run=run["run"])
            tx.run("effects_of_run_delete", run=run["run"])
            tx.run("attempts_of_run_delete", run=run["run"])
            tx.run("visits_of_run_delete", run=run["run"])
            tx.run("inbox_of_run_delete", run=run["run"])
            tx.run("requests_of_run_delete", run=run["run"])
            tx.run("memos_of_run_delete", run=run["run"])
            tx.run("model_calls_of_run_delete", run=run["run"])
            tx.run("budget_of_run_delete", run=run["run"])
            tx.run("slices_of_run_delete", run=run["run"])
            tx.run("run_events_delete", run=run["run"])
            tx.run("run_delete", run=run["run"])
