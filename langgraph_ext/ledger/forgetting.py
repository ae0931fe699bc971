"""Forgetting: what the ledger's own tables lose with a thread, or with a run that is rolled back."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langgraph_ext.database import Tx
from langgraph_ext.ledger.agent_threads import beginning_of_keys, thread_of

__all__ = ["agent_roots_of", "forget_agent_rows", "forget_payloads", "forget_thread", "forget_undone", "newest_known"]


def forget_thread(tx: Tx, thread_id: str, roots: Sequence[str] | None = None) -> None:
    """Delete what the ledger's own tables hold of a thread, and all that is stored of its agent nodes' agent runs.

    Args:
        tx: The open transaction.
        thread_id: The thread.
        roots: These agent runs, if they are known (`agent_roots_of`).
    """
    for root_id in agent_roots_of(tx, thread_id) if roots is None else roots:
        _forget_agent(tx, root_id)
    tx.run("requests_delete", thread_id=thread_id)
    tx.run("model_calls_delete", thread_id=thread_id)
    if tx.maybe("run_of_thread", thread_id=thread_id) is None:
        return  # the others belong to runs
    tx.run("inbox_delete", thread_id=thread_id)
    tx.run("memos_delete", thread_id=thread_id)
    tx.run("budget_delete", thread_id=thread_id)
    tx.run("slices_delete", thread_id=thread_id)
    _forget_done(tx, thread_id)
    tx.run("visits_delete", thread_id=thread_id)
    tx.run("runs_delete", thread_id=thread_id)


def forget_payloads(tx: Tx, thread_id: str) -> None:
    """Delete, of a thread's runs, what holds payloads, and what no run needs that has ended for good."""
    tx.run("inbox_delete", thread_id=thread_id)
    tx.run("requests_delete", thread_id=thread_id)
    tx.run("memos_delete", thread_id=thread_id)
    _forget_done(tx, thread_id)


def _forget_done(tx: Tx, thread_id: str) -> None:
    tx.run("interrupts_delete", thread_id=thread_id)
    tx.run("effect_uses_delete", thread_id=thread_id)
    tx.run("effect_forks_delete", thread_id=thread_id)
    tx.run("effects_delete", thread_id=thread_id)
    tx.run("attempts_delete", thread_id=thread_id)


def agent_roots_of(tx: Tx, thread_id: str) -> list[str]:
    """The agent runs that the agent nodes of a thread have started; not the one whose own thread this is.

    The engine's queries are there in any case.
    """
    beginning, end = beginning_of_keys(thread_id)
    roots = tx.all("agent_roots_of_thread", thread_id=thread_id, beginning=beginning, end=end)
    return [root["agent_run_id"] for root in roots if thread_of(root["agent_run_id"]) != thread_id]


def newest_known(tx: Tx, thread_id: str, roots: Sequence[str]) -> str | None:
    """The last checkpoint that the ledger knows of a thread, stored or not; None if it holds nothing of the thread.

    Of a thread that had agent runs before anything was stored (`roots`) there is none: "".
    """
    last_id: str | None = tx.one("run_newest", thread_id=thread_id)["last_id"]
    return "" if last_id is None and roots else last_id


def _forget_agent(tx: Tx, root_id: str) -> None:
    forget_agent_rows(tx, root_id)
    tx.run("events_delete", thread_id=thread_of(root_id))
    forget_thread(tx, thread_of(root_id))


def forget_agent_rows(tx: Tx, root_id: str) -> None:
    """Delete a tree of agent runs; not the run that it is in the ledger."""
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


def forget_undone(tx: Tx, thread_id: str, run_ids: Collection[str]) -> None:
    """Delete the runs of these names that have no checkpoint left, with all that the ledger holds of them.

    The agent runs that their attempts have started go with the last of the runs that share their history.
    """
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
            for child in tx.all("run_children", run_id=run_id):
                _forget_history(tx, child["run_id"])


def _forget_history(tx: Tx, root_id: str) -> None:
    """Delete an agent run, and those that share its history, if the runs that have started them are all gone."""
    sharing = {each["root_id"]: each for each in tx.all("agent_roots_with_history", root_id=root_id)}
    if any(each["is_needed"] for each in sharing.values()):
        return
    for each in sharing.values():
        tx.run("run_events_delete", run=each["run"])  # in this thread, if a visit drove it
        _forget_agent(tx, each["root_id"])
