"""Acts: effects of a durable body, on record before their call runs (rules L28–L31, L52).

Each step is a transaction that checks, before it writes, that the attempt is still this one and that the thread is
still held under its epoch. The call runs between two of them; whatever it does, it is not forgotten.
"""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, NoReturn

from langgraph.errors import GraphBubbleUp

from langgraph_ext import canonical
from langgraph_ext.database import AppTx
from langgraph_ext.errors import AdmissionError, InvalidArgument, LangGraphExtError, RecoveryRequired
from langgraph_ext.ledger import effects, notices
from langgraph_ext.ledger.attempts import EffectClass
from langgraph_ext.ledger.effect_keys import Key, key_for
from langgraph_ext.ledger.effect_rows import Held
from langgraph_ext.ledger.effects import Begun, Done, InDoubt, ToCall
from langgraph_ext.ledger.encoded import Encoded, encode, value_of
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.ledger.not_done import EffectNotDone
from langgraph_ext.ledger.settlement import PartKey
from langgraph_ext.nodes.callables import check_takes, is_async, left_unawaited, name_of
from langgraph_ext.nodes.declared import Declared
from langgraph_ext.nodes.fenced import Fenced
from langgraph_ext.nodes.forked import Forked
from langgraph_ext.nodes.place import Place
from langgraph_ext.saver.refusals import refuse

__all__ = ["Actor", "AttemptInterrupted", "EffectNotDone", "Named", "Wanted", "check_over"]


class AttemptInterrupted(Exception):
    """Raised by a durable body to say that nobody knows how it ended: a lost session, a service gone in the middle.

    The attempt is interrupted, not failed: what it has left in doubt stops the run, as after a crash.

    Args:
        code: A stable name for programs.
        message: What happened.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Named(NamedTuple):
    """What a caller names an action by, if by anything."""

    key: str | None
    base_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One effect, as the body asks for it."""

    name: str
    part: str | None
    key: Key
    payload_digest: str
    effect_id: str
    """For the case that it begins."""


class Actor:
    """Lets one attempt act. Its sync and async methods differ in how they wait, and in nothing else."""

    def __init__(
        self, place: Place, key: FrameKey, run_id: str, declared: Declared, *, authorized: bool, own_lease: bool
    ) -> None:
        self._place, self.key, self._run_id, self._declared = place, key, run_id, declared
        self.authorized = authorized
        """Whether somebody let it repeat what is in doubt."""
        self._own_lease = own_lease
        self._fenced = Fenced(place, key)
        self._forked = Forked(place, key, self._fenced, declared.on_fork)
        self._inside: list[Callable[[AppTx], object]] | None = []
        self.calling: set[str] = set()
        """Ids of the effects whose calls are running."""
        self.notes: str | None = None
        """What its settlement says besides."""

    @property
    def part(self) -> PartKey:
        """Which part of its task it is of."""
        return self._place.part

    def inside(self, fn: Any) -> None:
        """As `Frame.inside`."""
        if not callable(fn) or is_async(fn):
            raise InvalidArgument(f"inside: {name_of(fn)} is no plain function; a transaction waits for nobody")
        check_takes(fn, "inside", "tx")
        if self._inside is None:
            raise InvalidArgument("inside: the body has ended; what belongs to its end must be registered before")
        self._inside.append(partial(_without_signals, fn))

    def close(self) -> Sequence[Callable[[AppTx], object]]:
        """The body has ended; what it has registered."""
        registered = self._inside
        self._inside = None
        return registered or ()

    def once(self, name: str, payload: Any, call: Callable[[str], Any], *, part: str | None, named: Named) -> Any:
        """As `Frame.once`."""
        if is_async(call):
            raise InvalidArgument(f"effect {name!r}: {name_of(call)} is async; write `await frame.aonce(…)`")
        check_takes(call, f"effect {name!r}", "the key")
        wanted = self.wanted(name, payload, part, named)
        receipt = self._forked.receipt(wanted)
        if receipt is not None:
            return self.received(receipt)
        begun = self._fenced.commit(self.beginning(wanted))
        if isinstance(begun, Done):
            return self.received(begun.effect.receipt)
        if isinstance(begun, ToCall):
            return self.called(begun.effect, call)
        if self._declared.on_unknown == "probe" and not begun.live:
            return self._probed(wanted, begun.effect, call)
        return self.called(self._fenced.commit(self._again(begun)), call)

    async def aonce(
        self, name: str, payload: Any, call: Callable[[str], Any], *, part: str | None, named: Named
    ) -> Any:
        """As `Frame.aonce`."""
        check_takes(call, f"effect {name!r}", "the key")
        wanted = self.wanted(name, payload, part, named)
        receipt = await self._forked.areceipt(wanted)
        if receipt is not None:
            return self.received(receipt)
        begun = await self._fenced.acommit(self.beginning(wanted))
        if isinstance(begun, Done):
            return self.received(begun.effect.receipt)
        if isinstance(begun, ToCall):
            return await self.acalled(begun.effect, call)
        if self._declared.on_unknown == "probe" and not begun.live:
            return await self._aprobed(wanted, begun.effect, call)
        return await self.acalled(await self._fenced.acommit(self._again(begun)), call)

    # -- the call, between two commits

    def called(self, effect: Held, call: Callable[[str], Any]) -> Any:
        """Make the call of an effect that has begun, and say how it went."""
        with self._running(effect):
            try:
                answer = _answered(effect, call(effect.key.text))
                receipt = self.packed(answer)
            except BaseException as error:
                with _noting(error):
                    self._settle(effect, self._failure(effect, error))
                raise
            self._settle(effect, partial(effects.commit, effect_id=effect.effect_id, receipt=receipt))
        return answer

    async def acalled(self, effect: Held, call: Callable[[str], Any]) -> Any:
        """As `called`."""
        with self._running(effect):
            try:
                answer = await _awaited(call(effect.key.text))
                receipt = self.packed(answer)
            except BaseException as error:
                with _noting(error):
                    await self._asettle(effect, self._failure(effect, error))
                raise
            await self._asettle(effect, partial(effects.commit, effect_id=effect.effect_id, receipt=receipt))
        return answer

    def _settle(self, effect: Held, how: Callable[..., Any]) -> None:
        """Say how a call went. Where that is refused its attempt is over, and it says that it has come back."""
        try:
            self._fenced.commit(how)
        except LangGraphExtError:
            self._fenced.transact(self._over(effect))
            raise

    async def _asettle(self, effect: Held, how: Callable[..., Any]) -> None:
        """As `_settle`."""
        try:
            await self._fenced.acommit(how)
        except LangGraphExtError:
            await self._fenced.atransact(self._over(effect))
            raise

    @contextmanager
    def _running(self, effect: Held) -> Iterator[None]:
        """Around a call, which may outlast its body: as long as it runs, the lease is not given back."""
        holds, key = self._place.saver.holds, self.key
        self.calling.add(effect.effect_id)
        holds.join(self._place.thread_id, key.epoch)
        try:
            yield
        finally:
            self.calling.discard(effect.effect_id)
            holds.end(self._place.thread_id, key.epoch)

    def _over(self, effect: Held) -> Callable[..., Any]:
        """The transaction that says that a call has come back which may not say how: its attempt is over."""
        return partial(
            effects.call_over,
            effect_id=effect.effect_id,
            attempt_id=self.key.attempt_id,
            epoch=self.key.epoch,
            gives_back=self._own_lease,
            now_us=self._place.saver.database.clock_us(),
        )

    def _failure(self, effect: Held, error: BaseException) -> Callable[..., Any]:
        """The transaction that says what a call which raised has come to."""
        move = effects.not_happened if isinstance(error, EffectNotDone) else effects.doubt
        return partial(move, effect_id=effect.effect_id)

    # -- an effect in doubt

    def _probed(self, wanted: Wanted, effect: Held, call: Callable[[str], Any]) -> Any:
        assert self._declared.probe is not None, 'on_unknown="probe" comes with one'
        try:
            answer = self._declared.probe(effect.key.text)
        except EffectNotDone:
            self._fenced.commit(partial(effects.not_happened, effect_id=effect.effect_id))
            return self.called(self._fenced.commit(self.beginning(_anew(wanted))).effect, call)
        self._check_probed(effect, answer)
        self._fenced.commit(partial(effects.commit, effect_id=effect.effect_id, receipt=self.packed(answer)))
        return answer

    async def _aprobed(self, wanted: Wanted, effect: Held, call: Callable[[str], Any]) -> Any:
        assert self._declared.probe is not None, 'on_unknown="probe" comes with one'
        try:
            answer = await _awaited(self._declared.probe(effect.key.text))
        except EffectNotDone:
            await self._fenced.acommit(partial(effects.not_happened, effect_id=effect.effect_id))
            return await self.acalled((await self._fenced.acommit(self.beginning(_anew(wanted)))).effect, call)
        self._check_probed(effect, answer)
        await self._fenced.acommit(partial(effects.commit, effect_id=effect.effect_id, receipt=self.packed(answer)))
        return answer

    def _check_probed(self, effect: Held, answer: Any) -> None:
        """What a lookup gives for "nothing found" must not be taken for a receipt: nobody would ever act."""
        if answer is None or left_unawaited(answer):
            said = "None" if answer is None else "something to await"
            self._stop_in_doubt(
                effect,
                f"the probe of effect {effect.name!r} ({effect.effect_id}) answered {said}: no receipt, and no "
                "EffectNotDone, so it stays in doubt; mend the probe, or record what came of it with "
                "ledger.resolve_effect(effect_id, …), then invoke again",
            )

    def _stop_in_doubt(self, effect: Held, why: str) -> NoReturn:
        notices.in_doubt(self._place.thread_id, effect.attempt_id, (effect.effect_id,))
        refuse(RecoveryRequired(why, details={"effect_id": effect.effect_id, "attempt_id": effect.attempt_id}))

    def _again(self, begun: InDoubt) -> Callable[..., Held]:
        """The transaction that takes an effect in doubt over, if it was declared, or authorized, to be repeated."""
        held = begun.effect
        check_over(begun)
        if self._declared.on_unknown != "retry" and not self.authorized:
            self._stop_in_doubt(
                held,
                f"nobody knows whether effect {held.name!r} ({held.effect_id}) happened; find out, and record it "
                "with ledger.resolve_effect(effect_id, …), then invoke again",
            )
        return partial(effects.again, effect_id=held.effect_id)

    # -- transactions

    def beginning(self, wanted: Wanted) -> Callable[..., Begun]:
        """The transaction that puts an effect on record, or finds it there."""
        return partial(
            effects.begin,
            effect_id=wanted.effect_id,
            name=wanted.name,
            part=wanted.part,
            key=wanted.key,
            payload_digest=wanted.payload_digest,
            compensate=None,
        )

    # -- what goes in and out

    def wanted(self, name: str, payload: Any, part: str | None = None, given: Named | None = None) -> Wanted:
        """An effect, looked at before anything is written.

        Raises:
            InvalidArgument: The node is declared without effects, or its name or payload is none.
        """
        place = self._place
        if self._declared.effect is EffectClass.NONE:
            raise InvalidArgument(
                f'effect {name!r}: node {place.node!r} is declared without effects; write @durable(effect="write")',
                code="effect_undeclared",
            )
        try:
            digest = canonical.digest(canonical.encode(payload, where="payload"))
        except TypeError as error:
            raise InvalidArgument(f"effect {name!r}: {error}; give what JSON can hold, or what names it") from error
        rounds = self.key.iteration_path
        own, base = given or (None, None)
        key = key_for(self._run_id, place.part, name, part, iteration_path=rounds, key=own, base=base)
        return Wanted(name=name, part=part, key=key, payload_digest=digest, effect_id=uuid.uuid4().hex)

    def packed(self, answer: Any) -> Encoded:
        """An answer as a receipt.

        Raises:
            InvalidArgument: Nothing encodes it.
        """
        return encode(answer, self._place.saver.serde, what="receipt")

    def received(self, receipt: Encoded | None) -> Any:
        """What a receipt holds."""
        assert receipt is not None, "a committed effect has one"
        return value_of(receipt.type, receipt.data, self._place.saver.serde)


def check_over(begun: InDoubt) -> None:
    """See that the call of an effect in doubt runs no more.

    Raises:
        AdmissionError: It may (`attempt_running`); as a signal to LangGraph.
    """
    held = begun.effect
    if begun.live:
        refuse(
            AdmissionError(
                f"effect {held.name!r} ({held.effect_id}) may still be called by attempt {held.attempt_id!r}; "
                "invoke again when that has ended",
                code="attempt_running",
                retryable=True,
                details={"effect_id": held.effect_id, "attempt_id": held.attempt_id},
            )
        )


def _anew(wanted: Wanted) -> Wanted:
    """The same behind one that has not happened: an effect of its own."""
    return replace(wanted, effect_id=uuid.uuid4().hex)


def _answered(effect: Held, answer: Any) -> Any:
    """What a call answered, which must not be something that nobody will await."""
    if left_unawaited(answer):
        raise InvalidArgument(
            f"effect {effect.name!r}: its call answered something to await, so nobody knows what it did; "
            "write `await frame.aonce(…)`"
        )
    return answer


async def _awaited(answer: Any) -> Any:
    """A plain function may answer at once, or hand on what another one gave it to await."""
    return await answer if inspect.isawaitable(answer) else answer


def _without_signals(fn: Callable[[AppTx], object], tx: AppTx) -> object:
    """A signal to LangGraph, such as a question, would be taken for one of whatever task happens to commit."""
    try:
        return fn(tx)
    except GraphBubbleUp as signal:
        raise InvalidArgument(
            f"inside: the function raised {type(signal).__name__}, a signal to LangGraph; ask and act in the body"
        ) from signal


@contextmanager
def _noting(error: BaseException) -> Iterator[None]:
    """It stays started on record, so it is in doubt when the attempt is over; who reads the error is told why."""
    try:
        yield
    except LangGraphExtError as unrecorded:
        error.add_note(f"what this effect came to could not be recorded ({unrecorded.code}): it counts as in doubt")
