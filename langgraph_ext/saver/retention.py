"""Taking checkpoints away, and what those that stay still need of them.

A value lives in the row of the first put that carried it, a DeltaChannel in the writes of its ancestors, and that an
answer was taken in what a task wrote afterwards. So before rows go, those that stay take in what they still need of
them: values (`rehome`), and the answers that are not to be shown again; and ancestors that a DeltaChannel is rebuilt
from stay stored, out of sight (rule S10).

Who decides what goes: pruning.py and deletion.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from langgraph_ext.database import Row, Tx
from langgraph_ext.ledger import retained
from langgraph_ext.ledger.event_rows import append_event
from langgraph_ext.saver import strands, values
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.delta import lineage, unseeded
from langgraph_ext.saver.host import DELTA_COUNTERS, NULL_TASK
from langgraph_ext.saver.sealing import seals_at
from langgraph_ext.saver.writes import taken_answers, without_answers

__all__ = ["Pruned", "Space", "newest_stored", "puts_of", "rehome", "say", "space_of", "take_away"]

_COUNTERS = DELTA_COUNTERS.encode()

_NO_DATA = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was taken away of a thread, or would be."""

    checkpoints: int = 0
    """That are listed no more; so many."""
    hidden: int = 0
    """Of these, how many stay stored because a DeltaChannel is rebuilt from them."""
    events: int = 0
    """Events that went with them: of tasks that had run there."""
    more: bool = False
    """Whether there is more to take away."""

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            checkpoints=self.checkpoints + other.checkpoints,
            hidden=self.hidden + other.hidden,
            events=self.events + other.events,
            more=other.more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A namespace, and what of it goes."""

    address: Address
    rows: Sequence[Row]
    """Its puts."""
    doomed: frozenset[str]
    """Checkpoints that are listed no more, and ancestors hidden before."""
    needed: frozenset[str]
    """Of these, those that stay, out of sight."""
    lost: Sequence[str] = ()
    """Checkpoints that were never stored, and are not waited for any more: what tasks wrote for them."""

    @property
    def gone(self) -> frozenset[str]:
        """Those whose rows go."""
        return self.doomed - self.needed

    @property
    def unlisted(self) -> int:
        """How many are listed no more."""
        return sum(row["listed"] == 1 and row["checkpoint_id"] in self.doomed for row in self.rows)

    @property
    def hidden(self) -> int:
        """How many of those stay."""
        return sum(row["listed"] == 1 and row["checkpoint_id"] in self.needed for row in self.rows)

    @property
    def has_work(self) -> bool:
        """Whether anything of it goes."""
        return bool(self.gone or self.unlisted or self.lost)


def space_of(tx: Tx, address: Address, rows: Sequence[Row], doomed: Collection[str]) -> Space:
    """A namespace of which these checkpoints go, and what was hidden before, if nobody needs it any more."""
    going = frozenset(doomed) | {row["checkpoint_id"] for row in rows if not row["listed"]}
    needed = _needed_by(tx, address, [row for row in rows if row["checkpoint_id"] not in going])
    return Space(address=address, rows=rows, doomed=going, needed=going & needed)


def take_away(tx: Tx, spaces: Sequence[Space], *, stamp: int) -> Pruned:
    """Take away what goes of these namespaces; an event that says so stands before it, whose number is the `stamp`."""
    counted = retained.count(tx, _runs_of(tx, spaces))
    _settle_answers(tx, spaces)
    for space in spaces:
        _remove(tx, space)
        strands.trim(tx, space.address.namespace, stamp=stamp)
    return Pruned(
        checkpoints=sum(space.unlisted for space in spaces),
        hidden=sum(space.hidden for space in spaces),
        events=retained.note_gone(tx, counted),
    )


def rehome(tx: Tx, address: Address, doomed: Collection[str]) -> None:
    """Let the puts outside `doomed` take in the values that they still need from the rows of `doomed`."""
    where = address.namespace
    homes: values.Homes = {}
    data_of: dict[str, bytes] = {}
    for row in puts_of(tx, address):
        places, checkpoint_id = values.decode_places(row["places"]), row["checkpoint_id"]
        needed = [source for source in places if source in doomed]
        if checkpoint_id in doomed or not needed:
            continue
        for source in needed:
            if source not in data_of:
                data_of[source] = tx.one("put_data", **where, checkpoint_id=source)["data"]
        own = tx.one("put_data", **where, checkpoint_id=checkpoint_id)["data"]
        places, data = values.moved(places, own, data_of, homes, checkpoint_id, framed=bool(tx.sealer))
        tx.run("put_rewrite", **where, checkpoint_id=checkpoint_id, places=values.encode_places(places), data=data)


def newest_stored(tx: Tx, thread_id: str) -> str:
    """The greatest checkpoint id that the log has of a thread; "" of one that the ledger alone knows."""
    return tx.one("thread_newest", thread_id=thread_id)["checkpoint_id"] or ""


def say(tx: Tx, event: str, thread_id: str, newest_id: str, stored_us: int) -> int:
    """Append the event of a deletion before its rows go: so its number, and none of theirs, is the last one given.

    Args:
        tx: The open transaction.
        event: Its name.
        thread_id: The thread.
        newest_id: Its `newest_stored`.
        stored_us: Microseconds since the epoch, UTC.

    Returns:
        That number, which stamps the strands that lose bytes.
    """
    append_event(
        tx, name=event, run=None, thread_id=thread_id, checkpoint_ns="", checkpoint_id=newest_id, stored_us=stored_us
    )
    return int(tx.one("log_last")["seq"])


def _remove(tx: Tx, space: Space) -> None:
    """Delete the puts that go, with their writes, and hide those that are needed still."""
    address, gone = space.address, space.gone
    where = address.namespace
    rehome(tx, address, gone)
    for row in space.rows:
        checkpoint_id = row["checkpoint_id"]
        if checkpoint_id in gone:
            tx.run("put_delete", seq=row["seq"])
            tx.run("writes_delete", **where, checkpoint_id=checkpoint_id)
            at = {"thread_id": address.thread_id, "checkpoint_id": checkpoint_id}
            for attempt in tx.all("attempts_succeeded_at", **at):
                # What it has given back, which nobody will ask for again. Its marker stays.
                tx.run("attempt_result_forget", attempt_id=attempt["attempt_id"], writes=_NO_DATA)
        elif checkpoint_id in space.doomed and row["listed"]:
            tx.run("put_hide", seq=row["seq"])
    for checkpoint_id in space.lost:
        tx.run("writes_delete", **where, checkpoint_id=checkpoint_id)


def _runs_of(tx: Tx, spaces: Sequence[Space]) -> Iterator[int]:
    """The runs that checkpoints which go, or are hidden, belong to."""
    for space in spaces:
        for row in space.rows:
            if row["checkpoint_id"] not in space.doomed:
                continue
            run = row["run"] if not space.address.checkpoint_ns else _run_of_root(tx, space.address, row["root_id"])
            if run is not None:
                yield run


def _run_of_root(tx: Tx, address: Address, root_id: str | None) -> int | None:
    if root_id is None:
        return None
    place = tx.maybe("place_get", thread_id=address.thread_id, checkpoint_ns="", checkpoint_id=root_id)
    return None if place is None else place["run"]


def _settle_answers(tx: Tx, spaces: Sequence[Space]) -> None:
    """Take answers that were taken out of the writes of checkpoints that stay.

    That one was is seen by what a task of a subgraph stored afterwards (writes.py). Where that goes, and the root
    checkpoint that holds the answer stays, LangGraph would be given it again, for another question.
    """
    roots = {
        (space.address.thread_id, row["root_id"])
        for space in spaces
        for row in space.rows
        if space.address.checkpoint_ns and row["root_id"] is not None and row["checkpoint_id"] in space.gone
    }
    for thread_id, root_id in sorted(roots):
        calls = tx.all("writes_of", thread_id=thread_id, checkpoint_ns="", checkpoint_id=root_id)
        given = [call for call in calls if call["task_id"] == NULL_TASK]
        taken = taken_answers(tx, thread_id, given)
        for call in given:
            if call["seq"] in taken:
                body, data = without_answers(call, seals_at(tx, {"thread_id": thread_id, "checkpoint_ns": ""}, root_id))
                tx.run("call_rewrite", seq=call["seq"], body=body, data=data)


def _needed_by(tx: Tx, address: Address, survivors: Sequence[Row]) -> set[str]:
    """The ancestors from which DeltaChannels of the survivors are rebuilt."""
    lacking = {
        row["checkpoint_id"]: unseeded(tx, address, row)
        for row in survivors
        if row["listed"] and _COUNTERS in row["metadata"]
    }
    needed: set[str] = set()
    for survivor, channels in lacking.items():
        remaining = set(channels)
        for checkpoint_id, places in lineage(tx, address, survivor) if remaining else ():
            needed.add(checkpoint_id)
            remaining -= values.channels_of(places)
            if remaining <= lacking.get(checkpoint_id, set()):
                break  # found it all, or the rest is that survivor's own walk
    return needed


def puts_of(tx: Tx, address: Address) -> list[Row]:
    """The puts of a namespace, hidden ones too, by their ids."""
    return tx.all("puts_of_namespace", **address.namespace)
