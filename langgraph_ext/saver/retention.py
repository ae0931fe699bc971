"""Taking checkpoints away: whole threads, runs, history; and copying a thread.

A value lives in the row of the first put that carried it, and a DeltaChannel in the writes of its ancestors. So before
rows go, the survivors take in the values they still need from them (`rehome`), and ancestors that a surviving
DeltaChannel is rebuilt from stay stored, out of sight (rule S10).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langgraph_ext.database import GREATEST, Row, Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import leases
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.ledger.forgetting import forget_thread, forget_undone
from langgraph_ext.saver import strands, values
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.delta import lineage, unseeded

__all__ = ["copy_thread", "delete_for_runs", "delete_thread", "prune_thread", "rehome"]


def delete_thread(tx: Tx, thread_id: str, *, stored_us: int) -> None:
    """Delete everything of a thread, in all its namespaces. An event takes its place, behind all that goes.

    The row of its lease stays: no epoch comes again.

    Raises:
        LeaseError: An owner in another process has a live lease of it (`thread_busy`).
    """
    found = tx.maybe("thread_exists", thread_id=thread_id)
    if found is None:
        return
    leases.refuse_other_process(tx, thread_id, now_us=stored_us)
    _say(tx, "thread.deleted", thread_id, stored_us)
    tx.run("thread_delete", thread_id=thread_id, seq=tx.one("log_last")["seq"])
    if found["strand"] is not None:
        strands.delete(tx, thread_id)
    forget_thread(tx, thread_id)


def delete_for_runs(tx: Tx, run_ids: Sequence[str], *, stored_us: int) -> None:
    """Delete the checkpoints of these runs, with their writes; every other checkpoint keeps its state."""
    named = set(run_ids)
    namespaces = {
        (row["thread_id"], row["checkpoint_ns"])
        for run_id in sorted(named)
        for row in tx.all("namespaces_of_run", run_id=run_id)
    }
    stamp = 0
    for thread_id in sorted({thread_id for thread_id, _ in namespaces}):
        stamp = _say(tx, "thread.pruned", thread_id, stored_us)
    for thread_id, checkpoint_ns in sorted(namespaces):
        address = Address(thread_id, checkpoint_ns, None)
        rows = _puts(tx, address)
        _take_away(tx, address, rows, doomed={row["checkpoint_id"] for row in rows if row["run_id"] in named})
        strands.trim(tx, address.namespace, stamp=stamp)
    for thread_id in sorted({thread_id for thread_id, _ in namespaces}):
        forget_undone(tx, thread_id, named)


def prune_thread(tx: Tx, thread_id: str, *, stored_us: int) -> None:
    """Keep the newest checkpoint of each namespace, with its writes, and what its DeltaChannels are rebuilt from."""
    if tx.maybe("thread_exists", thread_id=thread_id) is None:
        return
    stamp = _say(tx, "thread.pruned", thread_id, stored_us)
    for named in tx.all("namespaces_of", thread_id=thread_id, size=GREATEST):
        address = Address(thread_id, named["checkpoint_ns"], None)
        rows = _puts(tx, address)
        listed = [row["checkpoint_id"] for row in rows if row["listed"]]
        if not listed:
            continue
        newest = max(listed)
        _take_away(tx, address, rows, doomed={row["checkpoint_id"] for row in rows} - {newest})
        where = address.namespace
        for orphan in tx.all("writes_orphans", **where, newest=newest):
            tx.run("writes_delete", **where, checkpoint_id=orphan["checkpoint_id"])
        strands.trim(tx, where, stamp=stamp)


def copy_thread(tx: Tx, source: str, target: str, *, stored_us: int) -> None:
    """Copy a thread: all namespaces, checkpoints, hidden ancestors and writes. The copy belongs to no run.

    Raises:
        InvalidArgument: The target already has rows; copying into it would mix two histories.
    """
    if tx.maybe("thread_exists", thread_id=target) is not None:
        if tx.repeated and tx.one("thread_copied", target=target, stored_us=stored_us)["others"] == 0:
            return  # an earlier try of this very call was committed
        raise InvalidArgument(
            f"copy_thread: thread {target!r} is not empty; name a new thread, or delete it first",
            details={"thread_id": target},
        )
    tx.run("thread_copy", source=source, target=target, stored_us=stored_us)
    strands.copy(tx, source, target, stamp=tx.one("log_last")["seq"])


def rehome(tx: Tx, address: Address, doomed: Collection[str]) -> None:
    """Let the puts outside `doomed` take in the values that they still need from the rows of `doomed`."""
    where = address.namespace
    homes: values.Homes = {}
    data_of: dict[str, bytes] = {}
    for row in _puts(tx, address):
        places, checkpoint_id = values.decode_places(row["places"]), row["checkpoint_id"]
        needed = [source for source in places if source in doomed]
        if checkpoint_id in doomed or not needed:
            continue
        for source in needed:
            if source not in data_of:
                data_of[source] = tx.one("put_data", **where, checkpoint_id=source)["data"]
        own = tx.one("put_data", **where, checkpoint_id=checkpoint_id)["data"]
        places, data = values.moved(places, own, data_of, homes, checkpoint_id)
        tx.run("put_rewrite", **where, checkpoint_id=checkpoint_id, places=values.encode_places(places), data=data)


def _take_away(tx: Tx, address: Address, rows: Sequence[Row], *, doomed: set[str]) -> None:
    """Delete the puts of `doomed`, and ancestors hidden before, with their writes; hide what survivors still need."""
    doomed = doomed | {row["checkpoint_id"] for row in rows if not row["listed"]}
    where = address.namespace
    needed = _needed_by(tx, address, [row for row in rows if row["checkpoint_id"] not in doomed])
    gone = doomed - needed
    rehome(tx, address, gone)
    for row in rows:
        checkpoint_id = row["checkpoint_id"]
        if checkpoint_id in gone:
            tx.run("put_delete", seq=row["seq"])
            tx.run("writes_delete", **where, checkpoint_id=checkpoint_id)
        elif checkpoint_id in doomed and row["listed"]:
            tx.run("put_hide", seq=row["seq"])


def _needed_by(tx: Tx, address: Address, survivors: Sequence[Row]) -> set[str]:
    """The ancestors from which DeltaChannels of the survivors are rebuilt."""
    lacking = {row["checkpoint_id"]: unseeded(tx, address, row) for row in survivors if row["listed"]}
    needed: set[str] = set()
    for survivor, channels in lacking.items():
        remaining = set(channels)
        for checkpoint_id, places in lineage(tx, address, survivor) if remaining else ():
            needed.add(checkpoint_id)
            remaining -= values.channels_of(places)
            if remaining <= lacking.get(checkpoint_id, set()):
                break  # found it all, or the rest is that survivor's own walk
    return needed


def _say(tx: Tx, event: str, thread_id: str, stored_us: int) -> int:
    """Append the event of a deletion before its rows go: so its number, and none of theirs, is the last one given.

    Returns:
        That number, which stamps the strands that lose bytes.
    """
    newest = tx.one("thread_newest", thread_id=thread_id)["checkpoint_id"]
    where = {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": newest}
    append_event(tx, name=event, run=None, **where, stored_us=stored_us)
    return int(tx.one("log_last")["seq"])


def _puts(tx: Tx, address: Address) -> list[Row]:
    return tx.all("puts_of_namespace", **address.namespace)
