"""What a call of LangGraph names: thread, namespace, checkpoint, and the metadata to keep.

Every check of input stands here, before anything is encoded or written.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS, CheckpointMetadata, get_checkpoint_metadata

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.saver import host

__all__ = ["Address", "address_of", "check_serde", "config_of", "encode_metadata", "needle_of", "text"]


class Address(NamedTuple):
    """Names a checkpoint, or a thread's newest when `checkpoint_id` is None."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str | None

    @property
    def namespace(self) -> dict[str, object]:
        """Thread and namespace, as queries name them."""
        return {"thread_id": self.thread_id, "checkpoint_ns": self.checkpoint_ns}


def address_of(config: RunnableConfig, *, method: str) -> Address:
    """What a config names.

    Raises:
        InvalidArgument: It names no thread, or a name is not text.
    """
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    thread_id = configurable.get("thread_id")
    if thread_id is None:
        raise InvalidArgument(f'{method}: the config names no thread; pass {{"configurable": {{"thread_id": "…"}}}}')
    checkpoint_id = configurable.get("checkpoint_id")
    checkpoint_ns = configurable.get("checkpoint_ns")
    if (
        type(thread_id) is type(checkpoint_ns) is type(checkpoint_id) is str
        and (thread_id + checkpoint_ns + checkpoint_id).isascii()
    ):
        return Address(thread_id, checkpoint_ns, checkpoint_id or None)
    return Address(
        text(str(thread_id), "thread_id", method),
        text(checkpoint_ns or "", "checkpoint_ns", method),
        text(str(checkpoint_id), "checkpoint_id", method) if checkpoint_id else None,
    )


def text(value: object, name: str, method: str) -> str:
    """`value`, if it is text that a database can hold.

    Raises:
        InvalidArgument: It is not text, or holds half a character (a lone surrogate).
    """
    if not isinstance(value, str):
        raise InvalidArgument(f"{method}: {name} is {value!r}; it must be text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"{method}: {name} {value!r} is not valid Unicode ({error.reason})") from error
    return value


def check_serde(serde: object) -> None:
    """A serializer is one, or None: typed, or plain as LangGraph still takes them.

    Raises:
        InvalidArgument: It has not the methods.
    """
    pairs = (("dumps_typed", "loads_typed"), ("dumps", "loads"))
    has_one = any(all(callable(getattr(serde, name, None)) for name in pair) for pair in pairs)
    if serde is not None and (isinstance(serde, type) or not has_one):
        raise InvalidArgument(f"serde is {serde!r}; it must be a serializer, with dumps_typed and loads_typed, or None")


def config_of(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    """The config that names exactly this checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}}


def encode_metadata(config: RunnableConfig, metadata: CheckpointMetadata) -> tuple[bytes, str | None]:
    """A put's metadata as JSON, and the run it belongs to.

    Keys of the config are added as in the peers (LangGraph's `get_checkpoint_metadata`), but for the server's
    credentials, which it puts into every config.

    Raises:
        InvalidArgument: Some part is not JSON; the message holds its path.
    """
    merged: Mapping[str, Any] = (
        metadata if type(metadata) is dict and _adds_nothing(config) else _merged(config, metadata)
    )
    try:
        data = canonical.encode_plain(merged, where="metadata")
        if merged is metadata and b"\\u0000" in data:  # LangGraph leaves it out of text
            merged = _merged(config, metadata)
            data = canonical.encode_plain(merged, where="metadata")
    except TypeError as error:
        raise InvalidArgument(f"put: {error}; keep metadata to what JSON can hold") from error
    run_id = merged.get("run_id")
    return data, str(run_id) if isinstance(run_id, str | int | UUID) else None


_NEVER_ADDED = frozenset((*EXCLUDED_METADATA_KEYS, *host.KEYS))
"""Keys of configs that LangGraph adds to no metadata."""

_CREDENTIALS = ("langgraph_auth_", "langgraph_request_id")


def _adds_nothing(config: RunnableConfig) -> bool:
    """Whether a config has no key to add: so it is within most graphs, and asking is cheaper than merging."""
    given: Mapping[str, Any] = config.get("metadata") or {}
    maps = given.maps if isinstance(given, ChainMap) else (given,)
    return _NEVER_ADDED.issuperset(config["configurable"]) and all(map(_NEVER_ADDED.issuperset, maps))


def _merged(config: RunnableConfig, metadata: CheckpointMetadata) -> dict[str, Any]:
    merged: dict[str, Any] = get_checkpoint_metadata(config, metadata)  # type: ignore[assignment]
    if len(merged) != len(metadata):
        return {key: value for key, value in merged.items() if key in metadata or not key.startswith(_CREDENTIALS)}
    return merged


def needle_of(filter: Mapping[str, Any]) -> bytes:
    """Bytes that stand in the metadata of every match: they let the database pass over most other rows.

    Metadata is JSON without spaces, so `"key":"text"` or `"key":7` can be looked for as they are. `1` and `true`, `7`
    and `7.0` are equal in Python and not in JSON: for those, only the key or the beginning of the number is looked for.
    """
    needles = [_needle(key, value) for key, value in filter.items()]
    return max(needles, key=len, default=b"")


_EXACT_FLOATS = 2**53


def _needle(key: str, value: Any) -> bytes:
    if value is None:
        return b""  # a missing key counts as None
    name = canonical.encode(key) + b":"
    if isinstance(value, str) or (type(value) is int and 1 < abs(value) < _EXACT_FLOATS):
        return name + canonical.encode(value)
    return name
