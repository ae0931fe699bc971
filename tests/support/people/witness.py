"""The witness: what must hold of a story at its end, whatever came when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from langgraph_ext import RunLedger
from langgraph_ext.ledger import Dimension, Event, Interrupt
from langgraph_ext.ledger.records import InboxKind
from tests.support.models import dispatches
from tests.support.people.graph import QUESTIONS, effects_of, model_log_of
from tests.support.people.person import Act
from tests.support.people.seed import Played
from tests.support.people.worker import LAST_RAISE, LAST_WORD, TOKENS

__all__ = ["findings"]

_CODES = {"done", "asks", "budget_exhausted", "cancelled", "drained"}
"""What an invocation may come to."""

_BEGINNINGS = {"attempt.started", "attempt.resumed"}
"""Events that a run has no more of when somebody has asked it to end."""

_NO_MORE = _BEGINNINGS | {"interrupt.requested", "interrupt.answered", "run.resumed"}
"""Events that a run has no more of when it was cancelled."""

_TOKENS_OF_A_CALL = 15


def findings(played: Played) -> list[str]:
    """What does not hold; empty if all is well."""
    with RunLedger(f"{played.folder}/runs.db") as ledger:
        runs = ledger.runs()
        if len(runs) != 1 or runs[0].status not in ("succeeded", "cancelled"):
            return [f"there should be one run, and it ended: {[(run.run_id, str(run.status)) for run in runs]}"]
        told = _Told(played, ledger, runs[0])
        found = [finding for check in _CHECKS for finding in check(told)]
        return found + [f"verify: {each.code}: {each.message}" for each in ledger.verify()]


class _Told:
    """What is on record, and what everybody says."""

    def __init__(self, played: Played, ledger: RunLedger, run: Any) -> None:
        self.played, self.run, self.status = played, run, str(run.status)
        self.succeeded = self.status == "succeeded"
        self.log: list[str] = played.workers[-1].said.get("log", [])
        """Of the state."""
        self.asked = {each.interrupt_id: each for each in ledger.interrupts(run_id=run.run_id)}
        self.inbox = ledger.inbox(run.run_id)
        self.usage, self.calls = ledger.usage(run.run_id), ledger.calls(run.run_id)
        self.events = ledger.events(run.run_id, limit=10_000)
        self.effects = ledger.effects(run.run_id)
        self.outside = effects_of(played.folder).effects()

    def acts(self, kind: str) -> list[Act]:
        """Of a kind, but for those that there was nothing to do to."""
        return [act for act in self.played.acts if act.kind.startswith(kind) and act.code != "nothing"]

    def accepted(self, kind: str) -> list[Act]:
        """As `acts`, those that were accepted."""
        return [act for act in self.acts(kind) if act.accepted]


def _of_workers(told: _Told) -> Iterator[str]:
    last = told.played.workers[-1]
    if last.exitcode != 0:
        yield f"the last worker ended with {last.exitcode}: {last.said}"
        return
    codes, end = last.said["codes"], "done" if told.succeeded else "cancelled"
    if set(codes) - _CODES or codes[-1] != end:
        yield f"the last worker's invocations came to {codes}, and the run is {told.status}"
    if not told.succeeded and last.said["again"] != "cancelled":
        yield f"who went on with the cancelled run was told {last.said['again']}"


# -- who is refused is told why


def _of_refusals(told: _Told) -> Iterator[str]:
    for act in told.played.acts:
        if act.code not in ("ok", "nothing") and not _MAY_BE_TOLD[act.kind.split()[0], act.code](told, act):
            yield f"refused without a reason: {act}"


def _is_closed(told: _Told, act: Act) -> bool:
    return act.details["status"] in (told.status, "budget_exhausted")


def _is_lower(told: _Told, act: Act) -> bool:
    """As the limits are only ever raised, it is lower than the last one, too; or there was none yet."""
    ((name, wanted),) = act.said.items()
    limit = told.usage.spent[Dimension(name)].limit
    return "is not bounded" in act.words or (limit is not None and wanted < limit)


def _answered(told: _Told, act: Act) -> list[tuple[str, Interrupt | None]]:
    return [(said, told.asked.get(key)) for key, said in act.said.items()]


_MAY_BE_TOLD: Mapping[tuple[str, str], Callable[[_Told, Act], bool]] = {
    ("answer", "answer_conflict"): lambda told, act: any(
        each is not None and each.answer not in (None, said) for said, each in _answered(told, act)
    ),
    ("answer", "interrupt_not_pending"): lambda told, act: any(
        each is not None and each.answer is None and each.status == "superseded" for _, each in _answered(told, act)
    ),
    ("answer", "interrupt_not_found"): lambda told, act: any(each is None for _, each in _answered(told, act)),
    ("steer", "run_closed"): _is_closed,
    ("cancel", "run_closed"): _is_closed,
    ("raise", "run_closed"): _is_closed,
    ("raise", "invalid_argument"): _is_lower,
}
"""The codes that each kind of act may be refused with, and whether it may have been so in this story."""


# -- no answer is used twice, or elsewhere; the first one counts


def _of_answers(told: _Told) -> Iterator[str]:
    accepted: dict[str, set[tuple[Any, Any]]] = {key: set() for key in told.asked}
    for act in told.accepted("answer"):
        for key, said in act.said.items():
            accepted[key].add((said, act.person))
    for key, question in told.asked.items():
        wanted = accepted[key] or {(LAST_WORD, LAST_WORD), (None, None)}
        if len(accepted[key]) > 1 or (question.answer, question.answered_by) not in wanted:
            yield f"{question.value}: accepted {accepted[key]}, on record {question.answer}"


def _of_uses(told: _Told) -> Iterator[str]:
    names = [each.value["question"] for each in told.asked.values()]
    if len(names) != len(set(names)):
        yield f"a question was asked under two ids: {names}"
    answers = {each.value["question"]: each.answer for each in told.asked.values()}
    in_state: list[Any] = [tuple(line.split(": ")) for line in told.log if ": " in line]
    outside: list[Any] = [(key, facts["said"]) for key, facts in told.outside if key in QUESTIONS]
    for where, used in (("in the state", in_state), ("outside", outside)):
        is_whole = not told.succeeded or sorted(dict(used)) == QUESTIONS
        if len(used) != len(dict(used)) or not set(used) <= answers.items() or not is_whole:
            yield f"{where} were used {used}, on record are {answers}"


def _of_effects(told: _Told) -> Iterator[str]:
    kept = Counter(str(each.status) for each in told.effects)
    done = sum(key in QUESTIONS for key, _ in told.outside)
    in_doubt = 0 if told.succeeded else kept["started"] + kept["unknown"]
    if not kept["committed"] <= done <= kept["committed"] + in_doubt:
        yield f"done outside: {told.outside}, on record: {kept}"


# -- each message is heard once at most, and else in sight


def _of_steering(told: _Told) -> Iterator[str]:
    left = [each for each in told.inbox if each.kind is InboxKind.STEER]
    said = [act.said["message"] for act in told.accepted("steer")]
    if sorted(said) != sorted(each.message for each in left):
        yield f"messages left: {said}, in the inbox: {[each.message for each in left]}"
    heard = [line.removeprefix("heard ") for line in told.log if line.startswith("heard ")]
    consumed = {each.message for each in left if each.consumed_at is not None}
    is_whole = set(heard) == consumed if told.succeeded else set(heard) <= consumed
    if len(heard) != len(set(heard)) or not is_whole:
        yield f"heard: {heard}, consumed: {consumed}"
    visits = {(key, tuple(facts["visit"])) for key, facts in told.outside if "visit" in facts}
    if len(visits) != len(dict(visits)):
        yield f"heard by several visits: {visits}"


# -- who cancels ends it, once


def _of_cancelling(told: _Told) -> Iterator[str]:
    entries = [each for each in told.inbox if each.kind is InboxKind.CANCEL]
    asked = told.accepted("cancel")
    if len(entries) != min(len(asked), 1):
        yield f"asked to end: {asked}, in the inbox: {entries}"
    if told.succeeded == any(each.consumed_at is not None for each in entries):
        yield f"the run is {told.status}, and in its inbox is {entries}"
    for name, no_more in (("run.cancel_requested", _BEGINNINGS), ("run.cancelled", _NO_MORE)):
        for event in told.events:
            if event.name == name and (late := _late(told, event, no_more)):
                yield f"behind {name} {event.details} the run has {late}"
    first = min((act.ended for act in asked), default=None)
    called = [call.node for call in told.calls if first is not None and call.started_at.timestamp() > first]
    if called and entries[0].mode != "after_batch":
        yield f"behind {entries[0]} models were called by {called}"


def _late(told: _Told, then: Event, no_more: set[str]) -> list[str]:
    """What has begun behind an event, and may not; in the step in which a cancel finds its run, what its mode says."""
    late = [event for event in told.events if event.cursor > then.cursor and event.name in no_more]
    if then.details.get("mode") == "after_batch" and len({event.checkpoint_id for event in late}) <= 1:
        return []
    return [event.name for event in late]


# -- no limit is lost, or doubled


def _of_limits(told: _Told) -> Iterator[str]:
    for dimension, first in ((Dimension.TURNS, told.played.story.turns), (Dimension.TOKENS, TOKENS)):
        name, limit = str(dimension), told.usage.spent[dimension].limit
        raised = [act.said[name] for act in told.accepted("raise") if name in act.said]
        named = [event for event in told.events if event.name == "budget.raised" and name in event.details]
        events = [event.details[name] for event in named]
        if limit is None and not raised and not told.calls:
            continue  # it was cancelled before its limits were on record
        if events != sorted(set(events)) or set(events) - {*raised, LAST_RAISE}:
            yield f"{name}: raised to {raised}, and by the events to {events}"
        if limit != max([first, *events]) or limit < max([first, *raised]):
            yield f"{name}: began with {first}, raised to {raised}, and the limit is {limit}"


# -- what is used is what was called, counted once


def _of_calls(told: _Told) -> Iterator[str]:
    if not told.played.story.attached:
        return  # nobody is told of them
    turns, tokens = told.usage.spent[Dimension.TURNS], told.usage.spent[Dimension.TOKENS]
    settled = sum(call.status == "settled" for call in told.calls)
    if (turns.known, turns.reserved, told.usage.open_calls) != (settled, len(told.calls) - settled, 0):
        yield f"turns: {turns}, open: {told.usage.open_calls}, by the calls: {Counter(c.status for c in told.calls)}"
    reserved = sum(call.reserved_tokens for call in told.calls)
    if (tokens.known, tokens.reserved) != (_TOKENS_OF_A_CALL * settled, reserved):
        yield f"tokens: {tokens}, by the calls: {settled} settled, {reserved} reserved"
    for each in (turns, tokens):
        if told.calls and (each.limit is None or each.known + each.reserved > each.limit):
            yield f"above its limit: {each}"
    dispatched = dispatches(model_log_of(told.played.folder))
    if not settled <= dispatched <= len(told.calls):
        yield f"the model was called {dispatched} times; on record are {len(told.calls)} calls, {settled} settled"


_CHECKS = (
    _of_workers,
    _of_refusals,
    _of_answers,
    _of_uses,
    _of_effects,
    _of_steering,
    _of_cancelling,
    _of_limits,
    _of_calls,
)
