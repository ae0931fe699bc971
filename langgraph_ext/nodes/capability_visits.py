"""Capability visits: how one attempt of a capability node makes its call, and what it asks for it.

    (arguments) ──▶ asked, if a person decides ──▶ begun ──▶ called ──▶ (hooks) ──▶ outcome
                     │ rejected, responded          │          │          denied, replaced
                     ▼                              ▼          ▼
                   outcome                       denied     in doubt: as its policy says, in this or a later attempt

The call is an effect of the attempt (ledger/effects.py); what else is not to be asked again is the visit's record
(capability_records.py), which is stored with the effect's beginning, in one commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from langgraph_ext import canonical
from langgraph_ext.engine.approvals import checked_decisions
from langgraph_ext.engine.cancelled import is_end_of_caller
from langgraph_ext.engine.capabilities import Capability
from langgraph_ext.engine.finding_out import find_out
from langgraph_ext.engine.from_sync import from_sync
from langgraph_ext.engine.in_threads import in_thread
from langgraph_ext.engine.in_time import in_time
from langgraph_ext.engine.moves import error_outcome
from langgraph_ext.errors import CapabilityFailed, ConflictError, InvalidArgument
from langgraph_ext.ledger import effect_rows, effects
from langgraph_ext.ledger.effect_rows import Held
from langgraph_ext.ledger.effects import Begun, Done, ToCall
from langgraph_ext.ledger.not_done import EffectNotDone
from langgraph_ext.ledger.records import EffectStatus
from langgraph_ext.nodes.acts import Wanted, check_over
from langgraph_ext.nodes.agent_tools import injecting
from langgraph_ext.nodes.capability_records import Record
from langgraph_ext.nodes.fenced import Fenced
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.place import Place
from langgraph_ext.nodes.questions import Doubted, Question, again, asked_of_doubt, drain, read_answer, was_shown

__all__ = ["CapabilityVisit"]

_NOBODY_KNOWS = "nobody knows whether this call was done, and it is not made again; see langgraph-ext show"


class CapabilityVisit:
    """One attempt of a capability node.

    Args:
        capability: What it calls.
        place: Where it stands.
        frame: Its attempt.
        input: Makes what it is called with of the state, if that is not on record.
        state: The graph's, as the node was given it.
        in_loop: Whether the node's body is awaited.
    """

    def __init__(
        self,
        capability: Capability,
        place: Place,
        frame: Frame,
        input: Callable[[Any], Any],
        state: Any,
        *,
        in_loop: bool,
    ) -> None:
        self._capability, self._place, self._frame = capability, place, frame
        self._input, self._state = input, state
        self._in_loop = in_loop
        self._actor = frame._actor
        self._fenced = Fenced(place, self._actor.key)
        self._visit = f"{place.task_id}-{self._actor.part.ordinal}"
        self._config = place.called_with
        self._inject = injecting(state, self._config, get_runtime())
        self._record = Record(place, self._actor.key, self._actor.part.ordinal)
        self._wanted: Wanted | None = None
        self._filled: dict[str, Any] = {}
        """Arguments that the graph gives."""
        self.outcome: dict[str, Any] | None = None
        """What counts: `{"value"}` or `{"error"}`; None before it has ended."""

    @property
    def has_ended(self) -> bool:
        """Whether the call has an outcome."""
        return self.outcome is not None

    @property
    def was_asked(self) -> bool:
        """Whether the graph was resumed behind a question of this visit."""
        return self._frame.goes_on

    # -- its way

    def drive(self) -> Question | None:
        """Go on from what is on record, to the outcome, or to what a person is asked."""
        return from_sync(self.adrive)

    async def adrive(self) -> Question | None:
        """As `drive`."""
        record = self._record
        if not await record.read():
            self._begin_record()
        if "asked" in record and "decision" not in record:
            await record.keep()
            return {"kind": "approval", **self._named(f"approval:{self._visit}"), **record["asked"]}
        if "outcome" not in record and "before" not in record:
            await self._ask_before()
        if "outcome" not in record:
            came = await self._came()
            if isinstance(came, _Asks):
                return came.question
            if "value" in came and self._capability.after and "after" not in record:
                await self._ask_after(came)
            self.outcome = came
        await record.keep()
        if "outcome" in record:
            self.outcome = record["outcome"]
        return None

    def _begin_record(self) -> None:
        """Look at what it is called with, before anything is begun.

        Raises:
            InvalidArgument: A tool does not take that (`tool_arguments_invalid`).
        """
        capability, given = self._capability, self._input(self._state)
        tool = capability.tool
        as_call = tool is not None and isinstance(given, Mapping) and given.get("type") == "tool_call"
        args = given.get("args") if as_call else given
        call_id = (given.get("id") if as_call else None) or self._visit
        fault = capability.fault_of(args)
        if as_call and tool is not None and given.get("name") != tool.tool.name:
            fault = f"{tool.tool.name!r} was not called, because the tool call is one of {given.get('name')!r}"
        if fault is not None:
            raise InvalidArgument(f"capability node {capability.name!r}: {fault}", code="tool_arguments_invalid")
        self._record.note(args=args, call_id=call_id, as_call=as_call)
        if (asked := capability.question(args, call_id)) is not None:
            self._record.note(asked=asked)

    async def _ask_before(self) -> None:
        record = self._record
        asked = await self._capability.ask_before(record["args"], record["call_id"], self._record.encoded)
        self._record.note(args=asked.value["args"], before=asked.decisions)
        if asked.denied is not None:
            self._record.note(outcome=error_outcome("denied", asked.denied))

    async def _ask_after(self, came: dict[str, Any]) -> None:
        asked = await self._capability.ask_after(came, self._record.encoded)
        self._record.note(after=asked.decisions)
        if asked.denied is not None:
            self._record.note(outcome=error_outcome("denied", asked.denied))
        elif any(each["decision"] == "replaced" for each in asked.decisions):
            self._record.note(outcome=asked.value)

    # -- its call

    async def _came(self) -> dict[str, Any] | _Asks:
        """What the call has come to, made now or before; or what is to be asked of it."""
        begun = await self._begun()
        if isinstance(begun, Done):
            return {"value": self._actor.received(begun.effect.receipt)}
        if isinstance(begun, ToCall):
            return {"value": await self._called(begun.effect)}
        check_over(begun)
        if self._capability.effect == "once" and not self._actor.authorized:
            return await self._found_out(begun.effect)
        return {"value": await self._called(await self._again(begun.effect))}

    async def _begun(self) -> Begun:
        """Put the call on record, with what it is made of, or find it there."""
        record, actor = self._record, self._actor
        tool = self._capability.tool
        self._filled = {} if tool is None else self._inject(tool.tool, record["args"], record["call_id"])
        if "digest" not in record:
            record.note(digest=canonical.digest(record.encoded(record["args"], "input").data))
        if self._wanted is None:
            self._wanted = actor.wanted(self._capability.name, record["digest"])
        return await record.kept_with(actor.beginning(self._wanted))

    async def _again(self, effect: Held) -> Held:
        return await self._fenced.acommit(partial(effects.again, effect_id=effect.effect_id))

    async def _called(self, effect: Held) -> Any:
        """Make the call that is on record, and again where that may help; what it returns."""
        while True:
            try:
                return await self._call(effect)
            except EffectNotDone:  # the next attempt makes it
                raise
            except Exception as error:
                pause = self._capability.retry_after(effect.tries, error)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            effect = await self._again(effect)

    async def _call(self, effect: Held) -> Any:
        """Make one physical call. What is made in a thread says there how it went, also when nobody waits for it."""
        capability, record = self._capability, self._record

        def late() -> Exception:
            return CapabilityFailed(
                f"{capability.name!r} took longer than {capability.seconds:g} s, and what it did is in doubt; allow it "
                "more, or let it do less",
                code="deadline_exceeded",
                details={"capability": capability.name, "effect_id": effect.effect_id},
            )

        def request(key: str) -> Any:
            as_call = record["as_call"]
            return capability.request(record["args"], record["call_id"], self._filled, key, as_call=as_call)

        async def acall(key: str) -> Any:
            return await in_time(capability.called.ainvoke(request(key), self._config), capability.seconds, late)

        def call(key: str) -> Any:
            return capability.called.invoke(request(key), self._config)

        if capability.is_awaited(in_loop=self._in_loop):
            return await self._actor.acalled(effect, acall)
        return await in_time(in_thread(self._actor.called, effect, call), capability.seconds, late)

    # -- in doubt

    async def _found_out(self, effect: Held) -> dict[str, Any] | _Asks:
        """What a call has come to of which nobody knows, that is not made again unasked."""
        capability = self._capability
        if capability.on_unknown == "error":
            return error_outcome("outcome_unknown", _NOBODY_KNOWS)
        if callable(capability.on_unknown):
            found = receipt = None
            try:
                found = await find_out(capability.on_unknown, self._record["args"], effect.key.text, capability.seconds)
                receipt = None if found is None else self._actor.packed(found)
            except EffectNotDone:
                await self._fenced.acommit(partial(effects.not_happened, effect_id=effect.effect_id))
                return await self._came()
            except BaseException as error:  # a user's function: what it raises tells nothing
                if is_end_of_caller(error):
                    raise
            if receipt is not None:
                await self._fenced.acommit(partial(effects.commit, effect_id=effect.effect_id, receipt=receipt))
                return {"value": found}
        record = self._record
        asked = asked_of_doubt(capability.name, record["args"], record["call_id"], effect.key.text)
        return _Asks({"kind": "doubt", **self._named(_doubt_of(effect)), "effect_id": effect.effect_id, **asked})

    # -- what a person says

    def ask(self, question: Question) -> Question | None:
        """Ask, and commit the answer; what is asked again, if it was none."""
        if not from_sync(partial(self._is_open, question)):
            drain(question)
            return None
        value = interrupt(question)
        return from_sync(partial(self._answered, question, value))

    async def aask(self, question: Question) -> Question | None:
        """As `ask`."""
        if not await self._is_open(question):
            drain(question)
            return None
        return await self._answered(question, interrupt(question))

    async def _is_open(self, question: Question) -> bool:
        """Whether nobody has answered a question yet, in whichever process."""
        if question["kind"] == "approval":
            return "decision" not in self._record
        read = partial(effect_rows.find, effect_id=question["effect_id"])
        effect = await self._place.saver.database.aread(read)
        if effect is None or effect.status not in (EffectStatus.STARTED, EffectStatus.UNKNOWN):
            return False
        return question["request_id"] == _doubt_of(effect) and "outcome" not in self._record

    async def _answered(self, question: Question, value: Any) -> Question | None:
        """Commit an answer; what is asked again, if it was none."""
        ledger, place = self._place.saver.ledger, self._place
        shown = partial(was_shown, ledger, place.thread_id, self._frame.run_id, question)
        try:
            read = await asyncio.to_thread(read_answer, question, value, shown)
            if question["kind"] == "approval":
                [decision] = checked_decisions(question, read, lambda name, args: self._capability.fault_of(args))
                self._decide(decision)
            else:
                await self._resolve(question, read)
        except (InvalidArgument, ConflictError) as error:
            if isinstance(error, GraphBubbleUp):
                raise
            return again(question, error)
        await self._record.keep()
        return None

    def _decide(self, decision: Mapping[str, Any]) -> None:
        self._record.note(decision=decision)
        message = decision.get("message")
        if decision["type"] == "edit":
            self._record.note(args=decision["edited_action"]["args"])
        elif decision["type"] == "respond":
            self._record.note(outcome={"value": self._said(message)})
        elif decision["type"] == "reject":
            told = message or "a person has rejected this call; it was not made"
            self._record.note(outcome=error_outcome("rejected", told))

    async def _resolve(self, question: Question, read: Doubted) -> None:
        ledger, effect_id = self._place.saver.ledger, question["effect_id"]
        if read.happened:
            await ledger.aresolve_effect(effect_id, receipt=self._said(read.result))
        elif read.happened is not None:
            await ledger.aresolve_effect(effect_id, happened=False)
        else:
            self._record.note(outcome=error_outcome("outcome_unknown", _NOBODY_KNOWS))

    def _said(self, message: Any) -> Any:
        """What a person has said for a result, as the call would have returned it."""
        record = self._record
        if not record["as_call"]:
            return message
        return ToolMessage(message, tool_call_id=record["call_id"], name=self._capability.name)

    def _named(self, request_id: str) -> Question:
        return {"request_id": request_id, "capability": self._capability.name}


class _Asks(NamedTuple):
    """Something has to be asked before the call comes to an outcome."""

    question: Question


def _doubt_of(effect: Held) -> str:
    """By what a doubt is named: an effect may come to be in doubt several times."""
    return f"doubt:{effect.effect_id}:{effect.tries}"
