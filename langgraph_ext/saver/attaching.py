"""Attaching: what the saver does for attached graphs: each invocation's lease, its renewal and end, and the fences."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.types import Command

from langgraph_ext.database import Database, on_a_loop
from langgraph_ext.errors import BudgetExhausted, LangGraphExtError, LeaseError
from langgraph_ext.ledger import invocations, leases, notices, resuming
from langgraph_ext.ledger.holds import Holds
from langgraph_ext.ledger.renewal import Renewal
from langgraph_ext.ledger.requests import Request
from langgraph_ext.saver import host
from langgraph_ext.saver.attached import Attached, Invocation, take_begun
from langgraph_ext.saver.commands import empty, resume_with, says
from langgraph_ext.saver.config import Address
from langgraph_ext.saver.fences import UNATTACHED
from langgraph_ext.saver.recent import Recent
from langgraph_ext.saver.requests import request_of, run_key_in

__all__ = ["Attaching", "epoch_of", "epoch_of_put"]

_LOGGER = logging.getLogger("langgraph_ext")

_LOOK_AGAIN_SECONDS = 0.05
"""How often a waiting invocation asks whether the thread is free."""


class Attaching:
    """The part of the saver that knows of leases."""

    database: Database
    attached: Attached
    recent: Recent
    serde: SerializerProtocol
    holds: Holds
    renewal: Renewal

    def _bind(self, config: RunnableConfig, address: Address) -> Invocation | None:
        """Take the lease of the invocation whose first `get_tuple` this is, if it is one of an attached graph.

        Raises:
            LangGraphExtError: It may not go on, or not so; see `invocations.begin`.
        """
        invocation = None if address.checkpoint_ns else take_begun()
        if invocation is None:
            return None
        deadline = _deadline(invocation)
        seen = self.database.read(resuming.ask_open(address.thread_id)) if _may_wait_to_answer(invocation) else None
        asked = self._asked(invocation, config, address, seen)
        while True:
            try:
                return self._hold(invocation, _not_refused(leases.take_by(self.database, **asked)))
            except LeaseError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(_LOOK_AGAIN_SECONDS)

    async def _abind(self, config: RunnableConfig, address: Address) -> Invocation | None:
        """As `_bind`."""
        invocation = None if address.checkpoint_ns else take_begun()
        if invocation is None:
            return None
        deadline, seen = _deadline(invocation), None
        if _may_wait_to_answer(invocation):
            seen = await self.database.aread(resuming.ask_open(address.thread_id))
        asked = self._asked(invocation, config, address, seen)
        while True:
            try:
                return self._hold(invocation, await self._atake(invocation, asked))
            except LeaseError:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def _atake(self, invocation: Invocation, asked: dict[str, Any]) -> invocations.Begun:
        """Take the lease. Whoever is cancelled meanwhile gives it back when it comes: the commit goes on."""

        async def take() -> invocations.Begun:
            return _not_refused(await leases.atake_by(self.database, **asked))

        taking = asyncio.ensure_future(take())
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(partial(self._untake, invocation))
            raise

    def _untake(self, invocation: Invocation, taking: asyncio.Future[invocations.Begun]) -> None:
        if not taking.cancelled() and taking.exception() is None:
            self._hold(invocation, taking.result())
            self._give_back(invocation, False, None)

    def _asked(
        self, invocation: Invocation, config: RunnableConfig, address: Address, seen: frozenset[str] | None
    ) -> dict[str, Any]:
        """What an invocation takes its thread with, and for; `seen` are the questions that it found open."""
        given, serde = invocation.given, self.serde
        invocation.control = host.control_in(config)
        goes_on = given is None or isinstance(given, Command)
        invocation.goes_on = goes_on and address.checkpoint_id is None
        run_key = None if goes_on else run_key_in(config)
        invocation.request = request_of(None if goes_on else given, run_key, invocation.definition, serde)
        invocation.given = given if goes_on else None
        arrival = invocations.Arrival(
            checkpoint_id=address.checkpoint_id,
            run_id=host.run_id_in(config),
            request=None if goes_on else invocation.request,
            definition=invocation.definition,
            refuses_changes=invocation.refuses_changes,
            said=resuming.given(given.resume, serde) if isinstance(given, Command) and says(given) else None,
            supersedes=invocation.supersedes,
            seen=seen,
        )
        return {
            "begin": partial(invocations.begin, arrival=arrival, serde=serde),
            "thread_id": address.thread_id,
            "owner": invocation.owner,
            "ttl_us": invocation.ttl_us,
        }

    def _request_of_put(
        self,
        invocation: Invocation | None,
        config: RunnableConfig,
        address: Address,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
    ) -> Request | None:
        """What a run begins with that a running graph's root checkpoint may begin; None if nothing is known of that."""
        if address.checkpoint_ns:
            return None
        if invocation is not None and invocation.request is not None:
            # its own, whatever the source: one that goes on has no key, and under "exit" no input is ever stored
            return invocation.request
        if metadata.get("source") != "input" or (run_key := run_key_in(config)) is None:
            return None
        return request_of(host.input_in(checkpoint["channel_values"]), run_key, None, self.serde)

    def _hold(self, invocation: Invocation, begun: invocations.Begun) -> Invocation:
        lease, command, invocation.given = begun.lease, invocation.given, None
        notices.taken_over(lease.thread_id, lease.epoch, lease.taken_over)
        invocation.lease, invocation.database = lease, self.database
        invocation.goes_on = invocation.goes_on or begun.goes_on
        invocation.give_back = partial(self._give_back, invocation)
        self.renewal.add(lease, _log_loss)
        if command is not None:
            self._resume(command, begun)
        return invocation

    def _resume(self, command: Command[Any], begun: invocations.Begun) -> None:
        """Give LangGraph the answers on record; it reads the command next."""
        if begun.is_empty:
            empty(command)
        if begun.stored is not None:
            self.recent.doubt_run(begun.lease.thread_id)  # it may run again
            resume_with(command, begun.stored, resuming.values_of(begun.stored, self.serde))

    def _give_back(self, invocation: Invocation, finished: bool, error: BaseException | None) -> None:
        """The invocation is over; its lease is given back as soon as none of its bodies and calls runs any more."""
        lease, invocation.give_back = invocation.lease, None
        assert lease is not None, "it was given out with the lease"
        self.holds.when_idle(lease.thread_id, lease.epoch, partial(self._release, invocation, lease, finished, error))

    def _release(
        self, invocation: Invocation, lease: leases.Lease, finished: bool, error: BaseException | None
    ) -> None:
        """Give it back. On an event loop nothing waits for the commit: what comes next queues behind it."""
        self.renewal.remove(lease.thread_id, lease.epoch)
        self.attached.remove(invocation)
        self.recent.doubt_run(lease.thread_id)  # it may be idle or cancelled from here on
        spent = error.details if isinstance(error, BudgetExhausted) else None
        now_us = self.database.clock_us()
        end = partial(
            invocations.end,
            lease=lease,
            finished=finished,
            now_us=now_us,
            limits=invocation.limits,
            exhausted=spent,
        )
        if on_a_loop():
            self.database.queue(end).add_done_callback(_log_failure)
        else:
            self.database.transact(end)

    def _invocation_of(self, config: RunnableConfig, address: Address) -> Invocation | None:
        """The attached invocation that a call belongs to; None if to none. Where none is, nobody has to ask."""
        root_id = host.root_of(config) if address.checkpoint_ns else address.checkpoint_id
        return self.attached.of(config, address.thread_id, root_id)


def epoch_of(invocation: Invocation | None) -> int | None:
    """The epoch under which an invocation writes; None if there is none, or if it holds no lease."""
    return None if invocation is None or invocation.lease is None else invocation.lease.epoch


def epoch_of_put(invocation: Invocation | None, address: Address, metadata: Mapping[str, Any]) -> int | None:
    """Under which epoch a running graph's put is made; None if anybody may make it."""
    epoch = epoch_of(invocation)
    if epoch is not None:
        return epoch
    return None if address.checkpoint_ns or metadata.get("source") not in ("input", "loop") else UNATTACHED


def _may_wait_to_answer(invocation: Invocation) -> bool:
    """Whether others may go on with the run, and be asked something else, before its command is read."""
    return invocation.on_busy == "wait" and isinstance(invocation.given, Command) and says(invocation.given)


def _not_refused(begun: invocations.Begun | LangGraphExtError) -> invocations.Begun:
    """What a thread was taken with.

    Raises:
        LangGraphExtError: It was not.
    """
    if isinstance(begun, LangGraphExtError):
        raise begun
    return begun


def _deadline(invocation: Invocation) -> float:
    return time.monotonic() + (invocation.wait_seconds if invocation.on_busy == "wait" else 0.0)


def _log_loss(error: LeaseError) -> None:
    """The renewal has lost it. Nothing else has to be done: whatever the invocation still writes is refused."""
    _LOGGER.warning("an invocation has lost its thread (%s): %s", error.code, error.details)


def _log_failure(ended: asyncio.Future[Any]) -> None:
    error = None if ended.cancelled() else ended.exception()
    if error is not None:
        _LOGGER.warning("a lease was not given back, and holds until it expires: %s", getattr(error, "code", error))
