"""Puts: the transaction that stores a checkpoint.

What a row holds depends on its parent, from which it inherits places. Those of the last put of each namespace are
remembered, so that a put is usually laid out by its caller (`Below`); one that is not, or whose parent is no longer
what was remembered, is encoded whole and laid out in its transaction (`Whole`). Large values go to the strands of their
channels besides (growth.py); if what they depend on is not remembered, a put `Below` is laid out in its transaction,
too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

from langgraph_ext.database import Append, Row, Sealer, Tx
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import calls, control, runs, tombstones
from langgraph_ext.ledger.records import RunStatus
from langgraph_ext.ledger.requests import Request
from langgraph_ext.saver import fields, growth, host, values
from langgraph_ext.saver.bodies import Bodies
from langgraph_ext.saver.config import Address, encode_metadata, text
from langgraph_ext.saver.early import Early
from langgraph_ext.saver.fences import fence
from langgraph_ext.saver.growing import NOTHING
from langgraph_ext.saver.heads import is_guarded, refuse_a_second_child, refuse_an_orphan
from langgraph_ext.saver.reading import Sources
from langgraph_ext.saver.recent import NO_RUN, RecentPut
from langgraph_ext.saver.retention import rehome
from langgraph_ext.saver.sealing import Seals, seals_at
from langgraph_ext.saver.steps import attribute, step_of

__all__ = ["Below", "Put", "Whole", "again", "prepare", "store"]

Columns = dict[str, Any]
"""A row's columns by name."""


class Put(NamedTuple):
    """A checkpoint on its way into the log: checked, and what is new in it encoded."""

    step: runs.Step | None
    """What it says to the ledger, if it has to be told."""

    epoch: int | None
    """Under which epoch it is made (fences.py)."""
    life: int | None
    """In which life of its thread its invocation began (lives.py); None if that is not known."""
    columns: Columns
    """Those that do not depend on the parent."""
    config: RunnableConfig
    metadata: CheckpointMetadata
    refuses: bool
    """Whether a second child of its parent is refused, if these two say that it may be (heads.py)."""
    rouses: bool
    """Whether it may be the last of its run: who shares its commit is answered with it."""
    fields: dict[str, Any]
    packed: values.Packed
    seals: Seals | None
    """What encrypts it."""


class Below(NamedTuple):
    """A put laid out below a remembered parent: to be stored if that is still the newest, and as it was."""

    append: Append | None
    """The whole of it, if no more than its row has to be written."""
    row: Columns
    stored: RecentPut
    put: Put
    base: fields.Base | None
    """The maps that its body is a difference from."""
    packed: values.Packed
    parent: RecentPut
    inherits_base: bool
    large: Sequence[growth.Encoded]
    """Its large values."""
    grown: Mapping[str, growth.Grown] | None
    """Where they go; None if that has to be found out in the transaction."""

    @property
    def rouses(self) -> bool:
        """As the put's."""
        return self.put.rouses


class Whole(NamedTuple):
    """A put with everything encoded, for a parent that may have nothing of it."""

    columns: Columns
    packed: values.Packed
    base: fields.Base | None
    guarded: bool
    step: runs.Step | None
    rouses: bool
    epoch: int | None
    life: int | None
    seals: Seals | None
    append: None = None


def prepare(
    address: Address,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: Mapping[str, Any],
    *,
    parent: RecentPut | None,
    refuses: bool,
    from_graph: bool,
    epoch: int | None,
    bodies: Bodies,
    dumps: values.Dumps,
    sealer: Sealer | None,
    stored_us: int,
    request: Request | None = None,
    life: int | None = None,
) -> Below | Whole:
    """Check and encode a checkpoint, in the caller's thread.

    Args:
        address: Thread, namespace and parent.
        config: Gives keys to the metadata.
        checkpoint: What to store.
        metadata: Must be JSON.
        new_versions: The channels to encode; the parent should have the others.
        parent: If it is remembered.
        refuses: Whether a running graph's second child of its parent is refused.
        from_graph: Whether a running graph puts it.
        epoch: Under which epoch it is made (fences.py).
        bodies: What is remembered of large values.
        dumps: The serde's encoder.
        sealer: Encrypts it; None if the database is plain.
        stored_us: When: microseconds since the epoch, UTC.
        request: What a run begins with that it begins.
        life: In which life of its thread its invocation began (lives.py); None if that is not known.

    Raises:
        InvalidArgument: Metadata, versions or names cannot be stored.
    """
    thread_id, checkpoint_ns, parent_id = address
    encoded_metadata, run_id = encode_metadata(config, metadata)
    held = checkpoint.get("channel_values", {})
    own_fields, more = fields.split(checkpoint)
    packed = values.pack(
        {**held, values.MORE: more} if more else held,
        checkpoint.get("channel_versions", {}),
        held if parent_id is None else new_versions,
        dumps,
    )
    checkpoint_id = _id_of(checkpoint)
    seals = None if sealer is None else Seals(sealer, thread_id, checkpoint_ns, checkpoint_id)
    if seals is not None:
        encoded_metadata = seals.seal_metadata(encoded_metadata)
    columns = {
        "listed": 1,
        "thread_id": thread_id,
        "checkpoint_ns": checkpoint_ns,
        "checkpoint_id": checkpoint_id,
        "parent_id": parent_id,
        "run_id": run_id,
        "run": None,
        "root_id": None,
        "inside": None,
        "sends": None,
        "stored_us": stored_us,
        "metadata": encoded_metadata,
    }
    goes_on = host.may_go_on(held)
    step = attribute(
        columns,
        config,
        checkpoint,
        metadata,
        parent,
        from_graph=from_graph,
        goes_on=goes_on,
        request=request,
        epoch=epoch,
    )
    put = Put(step, epoch, life, columns, config, metadata, refuses, not goes_on, own_fields, packed, seals)
    planned = None if parent is None else _below(put, parent, bodies)
    return planned or whole(put, dumps)


def _id_of(checkpoint: Checkpoint) -> str:
    checkpoint_id = checkpoint.get("id")
    if type(checkpoint_id) is not str or not checkpoint_id.isascii():
        checkpoint_id = text(checkpoint_id, "checkpoint id", "put")
    if not checkpoint_id:
        raise InvalidArgument("put: the checkpoint's id is empty; LangGraph gives each checkpoint a time-ordered UUID")
    return checkpoint_id


def _below(put: Put, parent: RecentPut, bodies: Bodies) -> Below | None:
    """Lay a put out below its parent; None if that has not what is not encoded here."""
    columns, held, packed = put.columns, put.fields, put.packed
    base = parent.base
    apart = None if base is None else fields.difference(held, base)
    inherits_base = apart is not None
    if apart is None and (base := fields.base_of(held)) is not None:
        packed, apart = packed._replace(base=fields.encode_base(base)), fields.NOTHING
    body = fields.encode_fields(held, apart)
    large = values.large_in(packed)
    key = columns["thread_id"], columns["checkpoint_ns"]
    grown = growth.ahead(large, *key, parent.places, bodies, whole=put.seals is not None) if large else NOTHING
    layout = _laid_below(columns, packed, parent, inherits_base, grown or NOTHING, put.seals)
    if layout is None:
        return None
    stored, row = _laid_out(columns, layout, base)
    row["body"], row["parent_places"] = body, parent.encoded
    row["epoch"], row["life"] = put.epoch, put.life
    # The key: the second of two has to see the first.
    append = Append("put_append", row, stored, key) if put.step is None and not large else None
    return Below(append, row, stored, put, base, packed, parent, inherits_base, large, grown)


def _laid_below(
    columns: Columns,
    packed: values.Packed,
    parent: RecentPut,
    inherits_base: bool,
    grown: Mapping[str, growth.Grown],
    seals: Seals | None,
) -> values.Layout | None:
    return values.lay_out(
        packed,
        columns["checkpoint_id"],
        columns["parent_id"],
        parent.places,
        inherits_base=inherits_base,
        grown=grown,
        seals=seals,
    )


def whole(put: Put, dumps: values.Dumps) -> Whole:
    """Encode every value and all fields, before anybody can change them."""
    columns, held, packed = put.columns, put.fields, put.packed
    packed = values.pack_all(packed, dumps)
    base = fields.base_of(held)
    if base is not None:
        packed = packed._replace(base=fields.encode_base(base))
    body = fields.encode_fields(held, None if base is None else fields.NOTHING)
    step = put.step or step_of(columns)  # what was remembered of its run may be over
    guarded = _is_guarded(put)
    return Whole({**columns, "body": body}, packed, base, guarded, step, put.rouses, put.epoch, put.life, put.seals)


def again(planned: Below | Whole, dumps: values.Dumps) -> Whole:
    """A put that nobody can say was stored below its parent: encoded whole, as it was when it was called."""
    assert isinstance(planned, Below), "a whole put is always stored"
    put, base = planned.put, planned.base
    as_called = fields.decode_fields(planned.row["body"], None if base is None else fields.encode_base(base))
    return whole(put._replace(fields=as_called), dumps)


def _is_guarded(put: Put) -> bool:
    return put.refuses and is_guarded(put.config, put.metadata, put.columns["checkpoint_ns"])


def store(tx: Tx, planned: Below | Whole, early: Early | None = None) -> RecentPut | None:
    """Store a checkpoint. Storing the same one again changes nothing; another under its id takes its place.

    Returns:
        What was stored; None, and nothing is, if the parent is no longer the newest of its namespace, or not as it was
        remembered: store it `again`.
    """
    return _store_below(tx, planned, early) if isinstance(planned, Below) else _store_whole(tx, planned, early)


def _store_below(tx: Tx, planned: Below, early: Early | None) -> RecentPut | None:
    row, stored, step = planned.row, planned.stored, planned.put.step
    fence(tx, row["thread_id"], planned.put.epoch, now_us=row["stored_us"])
    where, grown = _where(row), planned.grown
    tails = None if grown is None else growth.tails_of(tx, where, grown)
    if grown is None or tails is None:
        if _places_of(tx, where, row["parent_id"]) != row["parent_places"]:
            return None
        grown, tails = growth.within(tx, where, planned.large, planned.parent.places)
        layout = _laid_below(row, planned.packed, planned.parent, planned.inherits_base, grown, planned.put.seals)
        assert layout is not None, "its parent has what it had when it was planned"
        stored, row = _laid_out(row, layout, planned.base)
    run = None if step is None else runs.plan(tx, step)
    if tx.run("put_append", **(row if run is None else {**row, "run": run.run})) == 0:
        return None
    if grown:
        stored = stored._replace(known=growth.write(tx, where, grown, tails))
    return _recorded(tx, stored, run, step, _waiting(early, row))


def _store_whole(tx: Tx, planned: Whole, early: Early | None) -> RecentPut:
    columns, packed, base, guarded, step, _, epoch, life, seals, _ = planned
    checkpoint_id, parent_id = columns["checkpoint_id"], columns["parent_id"]
    fence(tx, columns["thread_id"], epoch, now_us=columns["stored_us"])
    at = columns["thread_id"], columns["checkpoint_ns"], checkpoint_id
    tombstones.refuse_put(tx, *at, parent_id, columns["root_id"], life=life)
    where = _where(columns)
    found = None if parent_id is None else _places_of(tx, where, parent_id)
    if guarded:
        refuse_a_second_child(tx, columns["thread_id"], checkpoint_id, parent_id)
        if parent_id is not None and found is None:
            refuse_an_orphan(tx, columns["thread_id"], checkpoint_id, parent_id)
    parent = values.decode_places(found) if found else None
    grown, tails = growth.within(tx, where, values.large_in(packed), parent)
    layout = values.lay_out(packed, checkpoint_id, parent_id, parent, grown=grown, seals=seals)
    assert layout is not None, "a put whose values are all encoded lacks none"
    stored, row = _laid_out(columns, layout, base)
    run = None if step is None else runs.plan(tx, step)
    row["run"] = None if run is None else run.run
    if tx.run("put_insert", **row) == 1 or _replace(tx, row, grown):
        stored = stored._replace(known=growth.write(tx, where, grown, tails))
    recorded = _recorded(tx, stored._replace(run=NO_RUN), run, step, _waiting(early, columns))
    return recorded._replace(drains=_drains(tx, row)) if epoch else recorded


def _where(columns: Columns) -> dict[str, object]:
    return Address(columns["thread_id"], columns["checkpoint_ns"], None).namespace


def _places_of(tx: Tx, where: Mapping[str, object], checkpoint_id: str) -> bytes | None:
    found = tx.maybe("put_places", **where, checkpoint_id=checkpoint_id)
    return found["places"] if found else None


def _drains(tx: Tx, row: Columns) -> str | None:
    """Why the run that a checkpoint of an attached graph belongs to is to stop, if somebody has asked for that."""
    asked = control.waiting(tx, row["thread_id"], row["run"], root_id=row["root_id"])
    return None if asked is None else asked["reason"] or "cancelled"


def _waiting(early: Early | None, columns: Columns) -> Collection[calls.Call]:
    return (
        () if early is None or columns["checkpoint_ns"] else early.take(columns["thread_id"], columns["checkpoint_id"])
    )


def _recorded(
    tx: Tx, stored: RecentPut, run: runs.Plan | None, step: runs.Step | None, early: Collection[calls.Call]
) -> RecentPut:
    """Record what a root checkpoint changes, and what came before it; remember whether the next one has to."""
    if run is not None and step is not None:
        status = runs.apply(tx, run, step)
        stored = stored._replace(run=run.run if status is RunStatus.RUNNING else None)
    elif step is not None and step.source == "update":
        stored = stored._replace(run=None)  # a run may begin behind it
    if early:
        calls.record_early(tx, early)
        stored = stored._replace(run=None)
    return stored


def _laid_out(columns: Columns, layout: values.Layout, base: fields.Base | None) -> tuple[RecentPut, Columns]:
    places, data = layout
    encoded = values.encode_places(places)
    stored = RecentPut(columns["checkpoint_id"], places, encoded, base, columns["run"] or NO_RUN)
    return stored, {**columns, "places": encoded, "data": data}


def _replace(tx: Tx, row: Columns, grown: Mapping[str, growth.Grown]) -> bool:
    """The id is taken: by this very checkpoint (a repeated call), or by one that this one replaces; whether it did."""
    checkpoint_id = row["checkpoint_id"]
    address = Address(row["thread_id"], row["checkpoint_ns"], None)
    old = tx.one("put_get", **address.namespace, checkpoint_id=checkpoint_id)
    seals = seals_at(tx, row)
    metadata = row["metadata"] if seals is None else seals.open_metadata(row["metadata"])
    same = old["parent_id"] == row["parent_id"] and old["metadata"] == metadata
    if same and old["listed"] and _content(tx, old, {}) == _content(tx, row, grown):
        return False
    rehome(tx, address, {checkpoint_id})
    tx.run("put_delete", seq=old["seq"])
    tx.run("put_insert", **row)
    return True


def _content(
    tx: Tx, row: Row | Columns, grown: Mapping[str, growth.Grown]
) -> tuple[dict[str, Any], dict[str, tuple[Any, ...]]]:
    """Fields and encoded values of a put's row, wherever they lie, or will lie."""
    places, sources = values.decode_places(row["places"]), Sources(tx)
    data_of = sources.data_behind(row, places)
    stored = {channel: place for channel, place in values.grown_in(places).items() if channel not in grown}
    seals = seals_at(tx, row)
    large = {channel: each.head + each.body for channel, each in grown.items()} | sources.large(row, stored)
    held = {
        channel: (place[0], place[1], large[channel])
        if values.is_grown(place)
        else (place[0], *values.encoded_value(channel, place, data_of[source], seals))
        for source, part in places.items()
        for channel, place in part.items()
        if channel != values.BASE
    }
    return fields.decode_fields(row["body"], values.base_in(places, data_of, seals)), held
