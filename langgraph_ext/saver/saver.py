"""LedgerSaver: LangGraph's checkpointer over this package's database.

Each method is a pair of doors over the same transactions: the caller's thread checks and encodes, the lane commits, the
caller's thread (or the reader thread, for coroutines) decodes. One object serves `invoke` and `ainvoke`, any thread and
any event loop, several at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Generator, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, Literal, Self
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from langgraph_ext.database import Closing, Database, Encryption, Fsync, on_a_loop, open_database
from langgraph_ext.database.encryption import Cipher, Locked
from langgraph_ext.errors import EncryptionError, InvalidArgument
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.holds import Holds
from langgraph_ext.ledger.renewal import Renewal
from langgraph_ext.saver import delta, host, listing, reading
from langgraph_ext.saver.attached import Attached
from langgraph_ext.saver.batches import arun_batches, run_batches
from langgraph_ext.saver.bodies import MOST_BYTES, Bodies
from langgraph_ext.saver.ciphers import refuse_pickle, taken_apart
from langgraph_ext.saver.config import Address, address_of, check_serde
from langgraph_ext.saver.early import Early
from langgraph_ext.saver.entries import Entries
from langgraph_ext.saver.failed import Failed
from langgraph_ext.saver.identity import Seen
from langgraph_ext.saver.lives import Lives
from langgraph_ext.saver.loops import Loops
from langgraph_ext.saver.observers import OnEvent, OnObserverError, observer_of
from langgraph_ext.saver.putting import Putting
from langgraph_ext.saver.recent import Recent
from langgraph_ext.saver.reencrypting import OnRows, Reencrypted, Steps, steps
from langgraph_ext.saver.removal import Removal
from langgraph_ext.saver.staging import Staging
from langgraph_ext.saver.strict import check_strict
from langgraph_ext.saver.sweeps import Sweeps
from langgraph_ext.saver.timeouts import Timeouts
from langgraph_ext.saver.unstored import Unstored
from langgraph_ext.saver.versions import Version, next_version
from langgraph_ext.saver.writing import Writing

__all__ = ["LedgerSaver"]

Concurrency = Literal["refuse", "allow"]


class LedgerSaver(Removal, Sweeps, Putting, Writing, Closing):
    """A checkpointer on a SQLite file, for sync and async graphs alike.

    A call that returned is committed, and with `fsync="full"` synced to disk. A call that failed left nothing behind.
    Savers on one file in many threads and processes are normal. Opens at its first use; close it with `close()`,
    `aclose()`, `with` or `async with`.

    Args:
        url: A path, `"sqlite:///runs.db"`, or `":memory:"`; or a `Database` to share, which `close` then closes too.
        fsync: `"full"` (default): what was acknowledged survives a power loss. `"normal"`: it survives the death of the
            process; a power loss may take the last commits, never the soundness of the file.
        serde: Encodes values; LangGraph's JsonPlusSerializer by default. Of an `EncryptedSerializer` the cipher is used
            as if it were given as `encryption`, and the serializer that it wraps.
        encryption: Encrypts what is stored, each payload for its place (docs/encryption.md): an `Encryption`, or a
            cipher of LangGraph's convention. None: all is plain, and a database that is not is refused.
        strict: Refuse to store a value of a type that LangGraph's strict msgpack mode would not read back, before
            anything of it is written, by its name and where in the state it stands.
        concurrency: Of several runs at once on one thread, `"refuse"` (default) lets one go on; the others end with
            `ConflictError`, code `thread_conflict`. `"allow"` stores them all, as a fork.
        growing_memory_bytes: What may be kept in memory, over all threads, of the last large values: it shows what of
            the next ones is new. 64 MiB by default; without it the database is read instead, and as little is stored.
        on_event: Called with each `Event` of the database, in order and once, from this saver's first write on: after
            the commit, before the `put` or `put_writes` returns that made or noticed it.
        on_observer_error: Called with the event and the error when `on_event` raises; logged by default.

    Raises:
        InvalidArgument: The URL names no database this package can open, or another argument is not what it must be.
        AdmissionError: The extra `encryption` is not installed (`extra_missing`).

    Every method may raise `StoreError` (see its codes) and, for input that can never be stored, `InvalidArgument`.
    """

    def __init__(
        self,
        url: str | PathLike[str] | Database,
        *,
        fsync: Fsync = "full",
        serde: SerializerProtocol | None = None,
        encryption: Encryption | Cipher | None = None,
        strict: bool = False,
        concurrency: Concurrency = "refuse",
        growing_memory_bytes: int = MOST_BYTES,
        on_event: OnEvent | None = None,
        on_observer_error: OnObserverError | None = None,
    ) -> None:
        check_serde(serde)
        cipher, serde = taken_apart(serde)
        if cipher is not None and encryption is not None:
            raise InvalidArgument("serde encrypts, and encryption was given; give one of the two")
        refuse_pickle(serde)
        encryption = cipher if encryption is None else encryption
        if encryption is not None and isinstance(url, Database):
            raise InvalidArgument(
                "a Database was given, and encryption; open it with that: open_database(…, encryption=…)"
            )
        if isinstance(encryption, Locked):
            raise InvalidArgument(
                "encryption is LOCKED, and a saver needs keys; RunLedger(url, encryption=LOCKED) looks"
            )
        super().__init__(serde=serde)
        if strict:
            check_strict(self.serde)
        self.strict = strict
        if concurrency not in ("refuse", "allow"):
            raise InvalidArgument(f'concurrency is {concurrency!r}; it must be "refuse" or "allow"')
        observer = observer_of(on_event, on_observer_error)
        self.concurrency = concurrency
        self.database = url if isinstance(url, Database) else open_database(url, fsync=fsync, encryption=encryption)
        self.observer = observer
        self.invocation_id = uuid4().hex
        """Stands for this saver in the leases that its durable nodes take."""
        self.attached = Attached()
        self.renewal = Renewal(self.database)
        self.holds = Holds(self.renewal)
        self.loops = Loops()
        self.lives = Lives()
        self.bodies = Bodies(growing_memory_bytes)
        self.entries = Entries()
        self.recent = Recent()
        self.staging = Staging()
        self.timeouts = Timeouts()
        self.failed = Failed()
        self.seen = Seen()
        self.early = Early()
        self.unstored = Unstored()

    @classmethod
    def from_conn_string(cls, conn_string: str) -> Self:
        """A saver for `with` or `async with`, named as in LangGraph's own savers."""
        return cls(conn_string)

    # -- life

    def setup(self) -> Awaitable[None]:
        """Open, create and migrate the file now; otherwise the first use does.

        Both `saver.setup()` and `await saver.setup()` are right, as LangGraph's savers have the one and the other: in
        sync code it is done when it returns, on an event loop when it was awaited.
        """
        if on_a_loop():
            return asyncio.ensure_future(self.database.aopen())
        self.database.open()
        return _Done()

    async def asetup(self) -> None:
        """As `setup`."""
        await self.database.aopen()

    def close(self) -> None:
        """Finish what was begun, then close; further calls are refused with code `closed`. May be called twice."""
        self.renewal.close()
        self.database.close()

    async def aclose(self) -> None:
        """As `close`, without holding the event loop."""
        self.renewal.close(wait=False)
        await self.database.aclose()

    @property
    def ledger(self) -> RunLedger:
        """What is recorded of the runs in this saver's database. It is closed with the saver."""
        return RunLedger(self.database, serde=self.serde)

    # -- writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint whose parent is the config's `checkpoint_id`.

        Args:
            config: Names thread, namespace and parent.
            checkpoint: Its values are read back as they are here, whatever `new_versions` says.
            metadata: JSON; keys of the config's metadata and configurable are added, as in LangGraph's savers.
            new_versions: The channels whose values are new since the parent.

        Returns:
            The config that names the stored checkpoint.
        """
        self.database.check()
        address = address_of(config, method="put")
        if self.attached.any:
            self.attached.goes_on(config, address, checkpoint["id"])
        if self.observer:
            self.observer.begin(self.ledger)
        try:
            stored, doubts = self._put(config, address, checkpoint, metadata, new_versions)
        except BaseException as error:
            self.unstored.note(config, address.checkpoint_ns, error)
            raise
        named = self._stored(config, address, stored, doubts)
        if self.observer:
            self.observer.tell(self.ledger)
        return named

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        self.database.check()
        address = address_of(config, method="put")
        if self.attached.any:
            self.attached.goes_on(config, address, checkpoint["id"])
        if self.observer:
            await self.observer.abegin(self.ledger)
        try:
            stored, doubts = await self._aput(config, address, checkpoint, metadata, new_versions)
        except BaseException as error:
            self.unstored.note(config, address.checkpoint_ns, error)
            raise
        named = self._stored(config, address, stored, doubts)
        if self.observer:
            await self.observer.atell(self.ledger)
        return named

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task, for the checkpoint it is executing. That checkpoint may be stored later.

        Args:
            config: Names thread, namespace and checkpoint.
            writes: `(channel, value)` in the task's order.
            task_id: The task.
            task_path: Its path, by which LangGraph orders the writes of a step.
        """
        self.database.check()
        address = address_of(config, method="put_writes")
        if self.observer:
            self.observer.begin(self.ledger)
        self._put_writes(address, config, writes, task_id, task_path)
        if self.observer:
            self.observer.tell(self.ledger)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        self.database.check()
        address = address_of(config, method="put_writes")
        if self.observer:
            await self.observer.abegin(self.ledger)
        await self._aput_writes(address, config, writes, task_id, task_path)
        if self.observer:
            await self.observer.atell(self.ledger)

    # -- reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint the config names, or the newest of its thread and namespace; None when there is none."""
        address = address_of(config, method="get_tuple")
        self.loops.loaded(address.thread_id, address.checkpoint_ns, host.around_loop(config))
        invocation = self._bind(config, address)
        found = self._loaded(config, address, self.database.read(reading.load, address))
        if invocation is not None:
            self.attached.add(invocation, _id_of(found))
        return found

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        address = address_of(config, method="get_tuple")
        self.loops.loaded(address.thread_id, address.checkpoint_ns, host.around_loop(config))
        invocation = await self._abind(config, address)
        found = await self.database.aread_then(partial(self._loaded, config, address), reading.load, address)
        if invocation is not None:
            self.attached.add(invocation, _id_of(found))
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first (by checkpoint id). A reader that pauses holds no lock.

        Args:
            config: Names a thread, and if given a namespace and a checkpoint; None lists every thread.
            filter: Metadata keys and the values they must equal (a missing key counts as None).
            before: Only checkpoints with an id below this config's.
            limit: At most so many.
        """
        rest = listing.start(config, filter=filter, before=before, limit=limit, sealed=self.database.sealer is not None)
        return self._list(rest, limit)

    def _list(self, rest: listing.Listing | None, limit: int | None) -> Iterator[CheckpointTuple]:
        left = limit
        while rest is not None and (left is None or left > 0):
            page = self.database.read(listing.page, rest, left)
            rest = page.rest
            for stored in page.found:
                yield reading.decode(stored, self.serde.loads_typed)
            left = None if left is None else left - len(page.found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        rest: listing.Listing | None = listing.start(
            config, filter=filter, before=before, limit=limit, sealed=self.database.sealer is not None
        )
        left = limit
        while rest is not None and (left is None or left > 0):
            found, rest = await self.database.aread_then(self._decode_page, listing.page, rest, left)
            for each in found:
                yield each
            left = None if left is None else left - len(found)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the ancestors of a checkpoint wrote to each channel, oldest first, back to its nearest stored value."""
        address = address_of(config, method="get_delta_channel_history")
        steps = self.database.read(delta.walk, address, channels) if channels else []
        return delta.histories(steps, channels, self.serde.loads_typed)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        address = address_of(config, method="get_delta_channel_history")
        then = partial(delta.histories, channels=channels, loads=self.serde.loads_typed)
        return await self.database.aread_then(then, delta.walk, address, channels) if channels else {}

    # -- keys

    def reencrypt(self, *, on_progress: OnRows | None = None) -> Reencrypted:
        """Seal with the current key all that older keys have sealed, in small transactions, while others write.

        Give every process that uses the database the new key first, as the current one. It may be stopped at any time;
        asked again, it goes on. When it has returned, nothing needs the older keys. (A database that is plain is
        encrypted by `encrypt_database`.)

        Args:
            on_progress: Called after each step with how many rows were looked at.

        Raises:
            EncryptionError: Something does not open, no keys were given (`not_encrypted`), or others go on sealing with
                another key (`key_in_use`; what was sealed stays).
        """
        return run_batches(self._steps(on_progress), self.database.transact)

    async def areencrypt(self, *, on_progress: OnRows | None = None) -> Reencrypted:
        """As `reencrypt`."""
        return await arun_batches(self._steps(on_progress), self.database.atransact)

    def _steps(self, on_progress: OnRows | None) -> Steps:
        if self.database.sealer is None:
            raise EncryptionError(
                "reencrypt: the database is plain, and no keys were given; see encrypt_database", code="not_encrypted"
            )
        return steps(on_progress)

    # -- versions

    def get_next_version(self, current: Version | None, channel: None) -> Version:
        """A channel's version after `current`: of its kind, greater, and not shared by two forks."""
        return next_version(current)

    # -- what both forms share

    def _loaded(
        self, config: RunnableConfig, address: Address, loaded: tuple[reading.Stored | None, int]
    ) -> CheckpointTuple | None:
        stored, life = loaded
        self.lives.loaded(config, address.thread_id, address.checkpoint_ns, life)
        return self._decode(stored, config, address) if stored else None

    def _decode(self, stored: reading.Stored, config: RunnableConfig, address: Address) -> CheckpointTuple:
        given = config if address.checkpoint_id is not None else None
        return reading.decode(stored, self.serde.loads_typed, config=given)

    def _decode_page(self, page: listing.Page) -> tuple[Sequence[CheckpointTuple], listing.Listing | None]:
        return [reading.decode(stored, self.serde.loads_typed) for stored in page.found], page.rest


def _id_of(found: CheckpointTuple | None) -> str | None:
    return None if found is None else str(found.config["configurable"]["checkpoint_id"])


class _Done:
    """Something to await that is over already."""

    def __await__(self) -> Generator[Any, Any, None]:
        return
        yield
