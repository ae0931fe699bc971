"""Channel values: each is stored once, in the row of the first put that carries it, and pointed at by the later ones.

A put's `places` say where each value of its checkpoint lies:

    {"": {channel: [version, type, start, length]},             in this row's own data
     checkpoint_id: {channel: [version, type, start, length]}}  in the data of that earlier put, same namespace

A channel whose version is the parent's inherits the parent's place; any other is written here. Places are relative to
(thread, namespace), so a thread is copied row by row as it is, and versions are only ever compared, so they may be of
any kind and two forks may reach the same one.

A large value lies in the strand of its channel and not in a row (growing.py). Its place is

    {"": {channel: [version, type, head, spans]}}

in its own put as in all that inherit it.

How values are laid out is decided here alone; others walk from source to source and hand places back.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from langgraph_ext import canonical
from langgraph_ext.saver import growing
from langgraph_ext.saver.growing import NOTHING, Growing, Spans, is_large
from langgraph_ext.saver.sealing import Seals, frame, frames_at, plain_size

__all__ = [
    "BASE",
    "MORE",
    "OWN",
    "Homes",
    "Layout",
    "Packed",
    "Places",
    "base_in",
    "base_source",
    "channels_of",
    "decode_places",
    "encode_places",
    "encoded_value",
    "grown_in",
    "head_in",
    "is_grown",
    "large_in",
    "lay_out",
    "moved",
    "pack",
    "pack_all",
    "sealed_again",
    "sources",
    "spans_of",
    "unpack",
]

Place = list[Any]
"""`[version, type, start, length]`: the channel's version, the serde's type tag, and the bytes in the source's data. Of
a large value `[version, type, head, spans]`: its head in hexadecimal digits, and where its body lies in its strand."""

Places = dict[str, dict[str, Place]]

Layout = tuple[Places, bytes]
"""The places of a put, and its own data."""

Homes = dict[tuple[str, str], tuple[str, Place]]
"""`(deleted checkpoint id, channel) -> (checkpoint id, place)`: where a moved value lies now."""

MORE = "\x00more"
"""The name under which keys of a checkpoint that have no place of their own are laid out, like a channel's value."""

BASE = "\x00base"
"""The name under which the base of a checkpoint's fields is laid out (fields.py). Its version is a digest, so that who
inherits it notices when another one lies in its place."""

OWN = ""
"""The source that stands for the row itself; no checkpoint id is empty."""


Dumps = Callable[[Any], tuple[str, bytes]]
Loads = Callable[[tuple[str, bytes]], Any]


class Packed(NamedTuple):
    """The values of one put, those that must be written already encoded."""

    encoded: list[tuple[str, str, bytes]]
    """`(channel, type, bytes)` of the channels that are new in this put."""
    others: Mapping[str, Any]
    """Values that the parent should already have; encoded only if it turns out not to."""
    versions: Mapping[str, Any]
    spare: Mapping[str, tuple[str, bytes]] | None = None
    """The others encoded as well, in case the parent has not."""
    base: bytes | None = None
    """A base that this put writes."""


def pack(values: Mapping[str, Any], versions: Mapping[str, Any], new: Container[str], dumps: Dumps) -> Packed:
    """Encode what is new, and whatever no channel's name stands for; before the transaction, in the caller's thread."""
    encoded: list[tuple[str, str, bytes]] = []
    others: dict[str, Any] = {}
    for channel, value in values.items():
        if channel in new or channel == MORE:
            encoded.append((channel, *dumps(value)))
        else:
            others[channel] = value
    return Packed(encoded, others, versions)


def pack_all(packed: Packed, dumps: Dumps) -> Packed:
    """The same values, the others encoded too."""
    return packed._replace(spare={channel: dumps(value) for channel, value in packed.others.items()})


def lay_out(
    packed: Packed,
    checkpoint_id: str,
    parent_id: str | None,
    parent: Places | None,
    *,
    inherits_base: bool = False,
    grown: Mapping[str, Growing] = NOTHING,
    seals: Seals | None = None,
) -> Layout | None:
    """Where each value goes, given the places of the parent (None when there is no parent, or it is not stored).

    Nothing is inherited from the put's own id, which a parent may point at when the put takes another's place.

    Args:
        packed: The values.
        checkpoint_id: The put's.
        parent_id: The parent's.
        parent: The parent's places.
        inherits_base: Whether the put needs the parent's base.
        grown: Of the values that are encoded, those that go to their strands.
        seals: Encrypts them; None: they stay plain.

    Returns:
        The places of this put, and its own data; None if the parent lacks a value, at its version, that is not encoded.
    """
    places: Places = {}
    encoded = packed.encoded
    if packed.base is not None:
        encoded = [*encoded, (BASE, "", packed.base)]
    if packed.others or inherits_base:
        known = _inherit(packed, checkpoint_id, parent_id, parent, places, inherits_base)
        if len(known) < len(packed.others) + inherits_base:
            if packed.spare is None:
                return None
            spare = [(channel, *value) for channel, value in packed.spare.items() if channel not in known]
            encoded = [*encoded, *spare]
    own: dict[str, Place] = {}
    parts: list[bytes] = []
    start = 0
    for channel, kind, data in encoded:
        version = packed.versions.get(channel) if channel != BASE else _digest(data)
        if grown and channel in grown:
            head, spans = grown[channel].head, grown[channel].spans
            if seals is not None:
                head = seals.seal_head(channel, version, kind, spans, head)
            own[channel] = [version, kind, head.hex(), spans]
            continue
        own[channel] = [version, kind, start, len(data)]
        parts.append(data if seals is None else seals.frame_value(channel, version, kind, data))
        start += len(data)
    if own:
        places[OWN] = {**places[OWN], **own} if OWN in places else own
    return places, b"".join(parts)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def _inherit(
    packed: Packed,
    checkpoint_id: str,
    parent_id: str | None,
    parent: Places | None,
    places: Places,
    inherits_base: bool,
) -> set[str]:
    """Take over the parent's places of the values that have not changed, and of its base; returns their channels."""
    known: set[str] = set()
    others, versions = packed.others, packed.versions
    for source, part in parent.items() if parent and parent_id else ():
        home = source or str(parent_id)
        if home == checkpoint_id:
            continue
        for channel, place in part.items():
            if channel in others:
                inherits = place[0] is not None and place[0] == versions.get(channel)
            else:
                inherits = inherits_base and channel == BASE
            if inherits:
                places.setdefault(OWN if type(place[3]) is list else home, {})[channel] = place
                known.add(channel)
    return known


encode_places = canonical.encode_exact
"""Places as a put's row keeps them."""


def decode_places(data: bytes) -> Places:
    """Places out of a put's row."""
    places: Places = canonical.decode(data)
    return places


def sources(places: Places) -> Iterator[str]:
    """The other checkpoints that hold values of this one."""
    return (source for source in places if source != OWN)


def channels_of(places: Places) -> set[str]:
    """The names that have a place: channels, and MORE and BASE."""
    return {channel for part in places.values() for channel in part}


def encoded_value(channel: str, place: Place, data: bytes, seals: Seals | None) -> tuple[str, bytes]:
    """A value as the serde reads it, out of the data of its source."""
    _, kind, start, length = place
    return kind, data[start : start + length] if seals is None else seals.open_value(channel, place, data)


def is_grown(place: Place) -> bool:
    """Whether a value lies in a strand."""
    return type(place[3]) is list


def grown_in(places: Places) -> dict[str, Place]:
    """The places of the values that lie in strands."""
    own = places.get(OWN)
    return {channel: place for channel, place in own.items() if type(place[3]) is list} if own else {}


def spans_of(places: Places, channel: str) -> Spans | None:
    """Where the body of a channel's value lies; None if it is in no strand."""
    place = places.get(OWN, {}).get(channel)
    return place[3] if place is not None and is_grown(place) else None


def large_in(packed: Packed) -> list[tuple[str, str, bytes]]:
    """The encoded values that belong in strands."""
    if not any(len(each[2]) >= growing.LARGE for each in packed.encoded):
        return []
    return [each for each in packed.encoded if is_large(each[2]) and each[0] != MORE]


def head_in(channel: str, place: Place, seals: Seals | None) -> bytes:
    """The head of a large value."""
    return bytes.fromhex(place[2]) if seals is None else seals.open_head(channel, place)


def unpack(
    places: Places, data_of: Mapping[str, bytes], large: Mapping[str, bytes], loads: Loads, seals: Seals | None
) -> dict[str, Any]:
    """Decode every value.

    Args:
        places: Of the put.
        data_of: The data of each source, the put's own under `OWN`.
        large: The values that lie in strands, by channel, still encoded.
        loads: The serde's decoder.
        seals: Opens them, if they are encrypted.

    Raises:
        EncryptionError: One does not open, before the serde has seen it.
    """
    return {
        channel: loads(
            (place[1], large[channel])
            if type(place[3]) is list
            else encoded_value(channel, place, data_of[source], seals)
        )
        for source, part in places.items()
        for channel, place in part.items()
        if channel != BASE
    }


def base_source(places: Places) -> str | None:
    """The row whose data holds the base of a put's fields, if it has one."""
    return next((source for source, part in places.items() if BASE in part), None)


def base_in(places: Places, data_of: Mapping[str, bytes], seals: Seals | None) -> bytes | None:
    """The base of a put's fields, if it has one."""
    source = base_source(places)
    return None if source is None else encoded_value(BASE, places[source][BASE], data_of[source], seals)[1]


def moved(
    places: Places, data: bytes, doomed: Mapping[str, bytes], homes: Homes, checkpoint_id: str, *, framed: bool
) -> tuple[Places, bytes]:
    """This put's layout once the rows in `doomed` are gone.

    The first survivor that still needs a value takes it in; `homes` remembers where, for the survivors after it.

    Args:
        places: Of the put.
        data: The put's own data.
        doomed: Data of each row that is about to be deleted, by checkpoint id.
        homes: Filled as survivors are visited.
        checkpoint_id: This put.
        framed: Whether values are encrypted. Where they lie is no part of their place: they are moved as they are.
    """
    kept: Places = {source: dict(part) for source, part in places.items() if source not in doomed}
    for source, part in places.items():
        if source not in doomed:
            continue
        for channel, place in part.items():
            version, kind, start, length = place
            if (source, channel) not in homes:
                end = plain_size(data) if framed else len(data)
                homes[source, channel] = (checkpoint_id, [version, kind, end, length])
                if framed:
                    data += b"".join(frame(length, each) for each in frames_at(doomed[source], start, length))
                else:
                    data += doomed[source][start : start + length]
            home, new_place = homes[source, channel]
            kept.setdefault(OWN if home == checkpoint_id else home, {})[channel] = new_place
    return kept, data


def sealed_again(places: Places, data: bytes, opens: Seals | None, seals: Seals) -> tuple[bytes, bytes]:
    """A put's own values, sealed for another place, or with another key. They lie where they did.

    Args:
        places: Of the put.
        data: Its own data.
        opens: Opens them; None if they are plain.
        seals: Seals them.

    Returns:
        Its places, encoded, in which nothing but the heads of large values is another, and its data.
    """
    own = places.get(OWN, {})
    parts: list[tuple[int, int, bytes]] = []
    for channel, place in own.items():
        version, kind, at, size = place
        if is_grown(place):
            head = bytes.fromhex(at) if opens is None else opens.open_head(channel, place)
            own[channel] = [version, kind, seals.seal_head(channel, version, kind, size, head).hex(), size]
        else:
            _, value = encoded_value(channel, place, data, opens)
            parts.append((at, size, seals.frame_value(channel, version, kind, value)))
    frames: list[bytes] = []
    end = 0
    for at, size, sealed in sorted(parts):
        if at > end:  # of a value that nobody has any more
            frames.append(frame(at - end, b""))
        frames.append(sealed)
        end = at + size
    return encode_places(places), b"".join(frames)
