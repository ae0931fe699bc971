"""RunLedger: the door to what is known about runs.

Each method is a pair of doors over one transaction function: what is asked for is checked at once, read in one
snapshot, and decoded when the snapshot is over. What a person says, or asks of a run, is written; so is the
file when opening it brings it up to date.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from langgraph_ext.database import Closing, Database, Encryption, open_database
from langgraph_ext.database.backup import BackedUp, OnPages
from langgraph_ext.database.encryption import Cipher, Locked
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger import answers as saying
from langgraph_ext.ledger import (
    attempt_listing,
    control,
    effect_listing,
    events,
    following,
    inbox,
    listing,
    memos,
    notices,
    resuming,
    snapshot,
    verify,
    visits,
)
from langgraph_ext.ledger.effect_listing import NO_RECEIPT
from langgraph_ext.ledger.encoded import Serde, encode
from langgraph_ext.ledger.records import (
    AttemptRecord,
    CancelMode,
    Effect,
    EffectStatus,
    ErrorRecord,
    Event,
    Finding,
    InboxEntry,
    Interrupt,
    Memo,
    Run,
    RunStatus,
    Snapshot,
    Visit,
    VisitStatus,
)
from langgraph_ext.ledger.spending import Spending

if TYPE_CHECKING:
    from langgraph.types import Command

__all__ = ["RunLedger"]


class RunLedger(Spending, Closing):
    """What ran, how often, with what result, and what it asked: read from the database that the saver writes.

    Reading blocks no writer. A ledger of its own may stand in any process.

    Args:
        url: A path or `"sqlite:///runs.db"`, closed by `close`; or a `Database` that is open elsewhere and stays so.
        serde: Decodes payloads of questions, answers, and receipts of effects, that are not JSON; without it they are
            None. With `dumps_typed`, it also encodes what `answer` and `resolve_effect` are given and is not JSON.
        encryption: The saver's. Without it, a database that is encrypted is refused; with `LOCKED` it can be looked at:
            ids, states, times and counts, and "(encrypted)" for payloads.

    Raises:
        InvalidArgument: The URL names no database this package can open.

    Every method may raise `StoreError` (`store_missing` if there is no such file), `InvalidArgument` for what can never
    be asked, and, where it takes the name of a run, `NotFound` (`run_not_found`).
    """

    def __init__(
        self,
        url: str | PathLike[str] | Database,
        *,
        serde: Serde | None = None,
        encryption: Encryption | Cipher | Locked | None = None,
    ) -> None:
        if encryption is not None and isinstance(url, Database):
            raise InvalidArgument(
                "a Database was given, and encryption; open it with that: open_database(…, encryption=…)"
            )
        self._owned = not isinstance(url, Database)
        if isinstance(url, Database):
            self.database = url
        else:
            self.database = open_database(url, create=False, encryption=encryption)
        self._serde = serde

    @property
    def serde(self) -> Serde | None:
        """What decodes payloads that are not JSON."""
        return self._serde

    # -- life

    def close(self) -> None:
        """Close the database, if this ledger opened it. May be called twice."""
        if self._owned:
            self.database.close()

    async def aclose(self) -> None:
        """As `close`, without holding the event loop."""
        if self._owned:
            await self.database.aclose()

    # -- runs

    def runs(
        self,
        *,
        thread_id: str | None = None,
        status: RunStatus | str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Run]:
        """Runs, newest first.

        Args:
            thread_id: Only those of this thread.
            status: Only those that stand so.
            before: Only those that began before the run of this id: for the next page, the last one of this page.
            limit: At most so many.
        """
        return self.database.read(listing.ask_runs(thread_id=thread_id, status=status, before=before, limit=limit))

    async def aruns(
        self,
        *,
        thread_id: str | None = None,
        status: RunStatus | str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Run]:
        """As `runs`."""
        ask = listing.ask_runs(thread_id=thread_id, status=status, before=before, limit=limit)
        return await self.database.aread(ask)

    def run(self, run_id: str) -> Run:
        """One run."""
        return self.database.read(listing.ask_run(run_id))

    async def arun(self, run_id: str) -> Run:
        """As `run`."""
        return await self.database.aread(listing.ask_run(run_id))

    def children(self, run_id: str) -> list[Run]:
        """The runs that a run's attempts have started, such as those of agents, in the order in which they began."""
        return self.database.read(listing.ask_children(run_id))

    async def achildren(self, run_id: str) -> list[Run]:
        """As `children`."""
        return await self.database.aread(listing.ask_children(run_id))

    def snapshot(self, run_id: str) -> Snapshot:
        """How a run stands, how many visits it has made, what it used, and what it waits for, at one point."""
        ask = snapshot.ask_snapshot(run_id, self.database.clock_us())
        return snapshot.developed(self.database.read(ask), self._serde)

    async def asnapshot(self, run_id: str) -> Snapshot:
        """As `snapshot`."""
        then = partial(snapshot.developed, serde=self._serde)
        return await self.database.aread_then(then, snapshot.ask_snapshot(run_id, self.database.clock_us()))

    # -- what a run did

    def visits(
        self,
        run_id: str,
        *,
        status: VisitStatus | str | None = None,
        node_path: str | None = None,
        inherited: bool = False,
        after: int = 0,
        limit: int | None = None,
    ) -> list[Visit]:
        """Visits of a run, by transition.

        Args:
            run_id: The run.
            status: Only those that stand so.
            node_path: Only those of this node.
            inherited: Also those before the fork, for a run that is one: in front of the others, and beyond the limit.
            after: Only those behind this transition.
            limit: At most so many; None: all.
        """
        ask = visits.ask_visits(
            run_id, status=status, node_path=node_path, inherited=inherited, after=after, limit=limit
        )
        return self.database.read(ask)

    async def avisits(
        self,
        run_id: str,
        *,
        status: VisitStatus | str | None = None,
        node_path: str | None = None,
        inherited: bool = False,
        after: int = 0,
        limit: int | None = None,
    ) -> list[Visit]:
        """As `visits`."""
        ask = visits.ask_visits(
            run_id, status=status, node_path=node_path, inherited=inherited, after=after, limit=limit
        )
        return await self.database.aread(ask)

    def errors(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[ErrorRecord]:
        """Errors of a run's tasks, in their order: those that were overcome, too.

        Args:
            run_id: The run.
            after: Only those behind this cursor.
            limit: At most so many.
        """
        return self.database.read(events.ask_errors(run_id, after=after, limit=limit))

    async def aerrors(self, run_id: str, *, after: int = 0, limit: int = 100) -> list[ErrorRecord]:
        """As `errors`."""
        return await self.database.aread(events.ask_errors(run_id, after=after, limit=limit))

    def interrupts(
        self,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        pending: bool | None = None,
        kind: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Interrupt]:
        """Questions that tasks asked, oldest first.

        Args:
            thread_id: Only those of this thread.
            run_id: Only those of this run.
            pending: True: only those that wait for an answer; False: only those that have one, or wait no more.
            kind: Only those whose payload has this `"kind"`.
            limit: At most so many.
            after: Only those behind the one of this id: for the next page, the last one of this page.
        """
        ask = listing.ask_interrupts(
            thread_id=thread_id, run_id=run_id, pending=pending, kind=kind, limit=limit, after=after
        )
        return listing.given_out(self.database.read(ask), self._serde)

    async def ainterrupts(
        self,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        pending: bool | None = None,
        kind: str | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[Interrupt]:
        """As `interrupts`."""
        ask = listing.ask_interrupts(
            thread_id=thread_id, run_id=run_id, pending=pending, kind=kind, limit=limit, after=after
        )
        return await self.database.aread_then(partial(listing.given_out, serde=self._serde), ask)

    def answer(
        self, answers: Mapping[str, Any], *, thread_id: str | None = None, by: str | None = None
    ) -> list[Interrupt]:
        """Answer questions; their tasks take the answers when their run is gone on with. It writes, all or nothing.

        The first answer counts: the same again changes nothing, another one is refused.

        Args:
            answers: By the id of the question: any JSON, or what the serde encodes; 2 MiB together.
            thread_id: The thread that asks, if a copied one asks under the same id.
            by: Who answers, for whoever reads the record.

        Returns:
            The questions, as they stand now.

        Raises:
            ConflictError: A question has another answer (`answer_conflict`, which says whose), or waits for none any
                more (`interrupt_not_pending`).
            InvalidArgument: There are no answers, they are too long, or one cannot be encoded.
            NotFound: Nobody asks so (`interrupt_not_found`).
        """
        now_us = self.database.clock_us()
        ask = saying.ask_to_answer(answers, thread_id=thread_id, by=by, serde=self._serde, now_us=now_us)
        return listing.given_out(self.database.transact(ask), self._serde)

    async def aanswer(
        self, answers: Mapping[str, Any], *, thread_id: str | None = None, by: str | None = None
    ) -> list[Interrupt]:
        """As `answer`."""
        now_us = self.database.clock_us()
        ask = saying.ask_to_answer(answers, thread_id=thread_id, by=by, serde=self._serde, now_us=now_us)
        return listing.given_out(await self.database.atransact(ask), self._serde)

    def resume_command(self, thread_id: str) -> Command[Any]:
        """`Command(resume={interrupt_id: value})` with the answers on record that their tasks have not taken.

        Whoever resumes twice, or after a crash, sends the same values.

        Raises:
            ConflictError: There are none (`interrupt_not_pending`).
            InvalidArgument: One is no JSON, and this ledger has no serde.
        """
        return resuming.command_of(self.database.read(resuming.ask_stored(thread_id)), self._serde)

    async def aresume_command(self, thread_id: str) -> Command[Any]:
        """As `resume_command`."""
        return resuming.command_of(await self.database.aread(resuming.ask_stored(thread_id)), self._serde)

    # -- what it did outside

    def attempts(self, run_id: str) -> list[AttemptRecord]:
        """The executions of a run's durable bodies, in the order in which they started."""
        return self.database.read(attempt_listing.ask_attempts(run_id))

    async def aattempts(self, run_id: str) -> list[AttemptRecord]:
        """As `attempts`."""
        return await self.database.aread(attempt_listing.ask_attempts(run_id))

    def authorize_recovery(self, attempt_id: str) -> None:
        """Let the next attempt of a visit act, though nobody knows how this one ended; once. It writes.

        Raises:
            NotFound: There is no such attempt (`attempt_not_found`).
            InvalidArgument: It is neither interrupted nor left running by a process that is gone.
        """
        if self.database.transact(attempt_listing.ask_to_authorize(attempt_id, self.database.clock_us())):
            notices.authorized(attempt_id)

    async def aauthorize_recovery(self, attempt_id: str) -> None:
        """As `authorize_recovery`."""
        if await self.database.atransact(attempt_listing.ask_to_authorize(attempt_id, self.database.clock_us())):
            notices.authorized(attempt_id)

    def effects(
        self,
        run_id: str | None = None,
        *,
        thread_id: str | None = None,
        status: EffectStatus | str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Effect]:
        """Actions on the outside world, oldest first.

        Args:
            run_id: Only those of this run.
            thread_id: Only those of this thread.
            status: Only those that stand so: `unknown` waits for `resolve_effect`, or for a retry.
            after: Only those behind the one of this id: for the next page, the last one of this page.
            limit: At most so many.
        """
        now_us = self.database.clock_us()
        ask = effect_listing.ask_effects(
            run_id, thread_id=thread_id, status=status, after=after, limit=limit, now_us=now_us
        )
        return effect_listing.effects_given_out(self.database.read(ask), self._serde)

    async def aeffects(
        self,
        run_id: str | None = None,
        *,
        thread_id: str | None = None,
        status: EffectStatus | str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> list[Effect]:
        """As `effects`."""
        now_us = self.database.clock_us()
        ask = effect_listing.ask_effects(
            run_id, thread_id=thread_id, status=status, after=after, limit=limit, now_us=now_us
        )
        return await self.database.aread_then(partial(effect_listing.effects_given_out, serde=self._serde), ask)

    def resolve_effect(
        self, effect_id: str, *, receipt: Any = NO_RECEIPT, happened: Literal[False] | None = None
    ) -> Effect:
        """Say what an effect in doubt came to: the next attempt takes the receipt, or acts anew. It writes.

        The same again changes nothing.

        Args:
            effect_id: The effect.
            receipt: What the outside has to show for it; any JSON, or what the serde encodes.
            happened: False, instead of a receipt: nothing was done.

        Raises:
            ConflictError: It was settled otherwise, or its attempt still runs and may be calling (`effect_conflict`).
            InvalidArgument: Neither a receipt nor `happened=False` is given, or both; the receipt cannot be encoded.
            NotFound: There is no such effect (`effect_not_found`).
        """
        resolve = effect_listing.ask_to_resolve(effect_id, receipt, happened, self._serde, self.database.clock_us())
        (effect,) = effect_listing.effects_given_out([self.database.transact(resolve)], self._serde)
        notices.resolved(effect.effect_id, effect.status)
        return effect

    async def aresolve_effect(
        self, effect_id: str, *, receipt: Any = NO_RECEIPT, happened: Literal[False] | None = None
    ) -> Effect:
        """As `resolve_effect`."""
        resolve = effect_listing.ask_to_resolve(effect_id, receipt, happened, self._serde, self.database.clock_us())
        (effect,) = effect_listing.effects_given_out([await self.database.atransact(resolve)], self._serde)
        notices.resolved(effect.effect_id, effect.status)
        return effect

    def memos(self, run_id: str) -> list[Memo]:
        """What the durable nodes of a run have kept."""
        return memos.memos_given_out(self.database.read(memos.ask_memos(run_id)), self._serde)

    async def amemos(self, run_id: str) -> list[Memo]:
        """As `memos`."""
        then = partial(memos.memos_given_out, serde=self._serde)
        return await self.database.aread_then(then, memos.ask_memos(run_id))

    # -- what is asked of a run

    def cancel(self, run_id: str, *, mode: CancelMode | str = "now", reason: str | None = None) -> Run:
        """Cancel a run, from any process. It writes; the same again changes nothing.

        One that nobody runs is cancelled at once, with its open questions. One that may be running is asked to end: it
        does at its next durable node, or, if its graph is attached, at its next model call or at the end of a step.
        What is running besides is finished and stored. The agents that it has started are asked with it: each stops as
        soon as whoever drives it sees that, or somebody comes to it.

        Args:
            run_id: The run.
            mode: `"now"`; `"after_call"`, the same for a graph's nodes, while an agent's calls under way come to their
                ends; `"after_batch"`: the step that is being run is finished, of the innermost graph, durable nodes
                that are to begin in it and their model calls included, or an agent's batch of tool calls. That is the
                newest step on record: under durability `"async"` a node may run before its step is stored.
            reason: Why, for whoever reads its record.

        Returns:
            The run as it stands now; `inbox` tells whether it has seen to it.

        Raises:
            ConflictError: It has ended otherwise (`run_closed`).
        """
        return self.database.transact(control.ask_to_cancel(run_id, mode, reason, self.database.clock_us()))

    async def acancel(self, run_id: str, *, mode: CancelMode | str = "now", reason: str | None = None) -> Run:
        """As `cancel`."""
        return await self.database.atransact(control.ask_to_cancel(run_id, mode, reason, self.database.clock_us()))

    def steer(self, run_id: str, message: Any) -> None:
        """Leave a message for a run, from any process, for the next attempt of a node that accepts steering. It writes.

        Args:
            run_id: The run.
            message: Any JSON, or what the serde encodes; 2 MiB.

        Raises:
            ConflictError: The run has ended (`run_closed`).
            InvalidArgument: The message cannot be encoded, or is too long.
        """
        packed = encode(message, self._serde, what="message")
        self.database.transact(inbox.ask_to_steer(run_id, packed, self.database.clock_us()))

    async def asteer(self, run_id: str, message: Any) -> None:
        """As `steer`."""
        packed = encode(message, self._serde, what="message")
        await self.database.atransact(inbox.ask_to_steer(run_id, packed, self.database.clock_us()))

    def inbox(self, run_id: str) -> list[InboxEntry]:
        """What was asked of a run, in order, and what of it was seen to."""
        return inbox.inbox_given_out(self.database.read(inbox.ask_inbox(run_id)), self._serde)

    async def ainbox(self, run_id: str) -> list[InboxEntry]:
        """As `inbox`."""
        then = partial(inbox.inbox_given_out, serde=self._serde)
        return await self.database.aread_then(then, inbox.ask_inbox(run_id))

    # -- events

    def events(self, run_id: str | None = None, *, after: int = 0, limit: int = 100) -> list[Event]:
        """What happened, in the order in which it became known; of one run, with its number in the run.

        Args:
            run_id: The run; None: of all of them, and of what belongs to none.
            after: Only those behind this cursor: for the next page, that of this page's last event.
            limit: At most so many.
        """
        return self.database.read(events.ask_events(run_id, after=after, limit=limit))

    async def aevents(self, run_id: str | None = None, *, after: int = 0, limit: int = 100) -> list[Event]:
        """As `events`."""
        return await self.database.aread(events.ask_events(run_id, after=after, limit=limit))

    def follow(
        self,
        run_id: str | None = None,
        *,
        after: int = 0,
        poll_seconds: float = 0.1,
        idle_seconds: float | None = None,
    ) -> Generator[Event, None, None]:
        """Events as they come: of one run until it has ended, of all of them for ever.

        It holds a connection of its own until it ends or is closed.

        Args:
            run_id: The run; None: all.
            after: Only events behind this cursor. Each event carries the one to go on with.
            poll_seconds: How often to look whether anybody has committed.
            idle_seconds: End after so much silence; None: wait for ever.
        """
        begin, patience = following.start(run_id, after), following.patience(poll_seconds, idle_seconds)
        return following.follow(self.database, begin, patience)

    def afollow(
        self,
        run_id: str | None = None,
        *,
        after: int = 0,
        poll_seconds: float = 0.1,
        idle_seconds: float | None = None,
    ) -> AsyncGenerator[Event, None]:
        """As `follow`; close it with `aclose()` if it is left before its end."""
        begin, patience = following.start(run_id, after), following.patience(poll_seconds, idle_seconds)
        return following.afollow(self.database, begin, patience)

    # -- soundness

    def backup(self, path: str | PathLike[str], *, on_progress: OnPages | None = None) -> BackedUp:
        """Copy the whole database, checkpoints and all, to a new file, while others write to it.

        The file appears when it is complete, synced and found to be sound; another one is never replaced.

        Args:
            path: Where to; there must be no such file.
            on_progress: Called with how many of its pages are copied, and of how many.

        Raises:
            InvalidArgument: There is such a file, or the database is in memory.
        """
        return self.database.backup(path, on_progress=on_progress)

    async def abackup(self, path: str | PathLike[str], *, on_progress: OnPages | None = None) -> BackedUp:
        """As `backup`; `on_progress` is called in another thread."""
        return await self.database.abackup(path, on_progress=on_progress)

    def verify(self, run_id: str | None = None) -> list[Finding]:
        """What should not be so; an empty list when all is sound.

        Args:
            run_id: Look at this run only; None: at the whole ledger.
        """
        return verify.verify(self.database, run_id)

    async def averify(self, run_id: str | None = None) -> list[Finding]:
        """As `verify`."""
        return await verify.averify(self.database, run_id)
