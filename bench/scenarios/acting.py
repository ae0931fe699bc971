"""Acting: what one process of a scenario does with an agent, and what it tells of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command, Interrupt

from bench.scenarios.cases import Case, Place, receipt
from bench.scenarios.sides import App, Form, Side, opened

__all__ = ["Act", "Seen", "act"]

Gate = Callable[[], object]

_PATIENCE = 0.3
"""How many seconds after an effect somebody gives up: time enough to store its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a process does.

    Without any of these it goes on with the thread: `invoke(None)`.
    """

    say: str | None = None
    """It begins with a message."""
    answer: Any = None
    """It answers with this."""
    approve: bool = False
    """It looks at what is asked, and approves it all."""
    look: bool = False
    """It does nothing."""
    stream: bool = False
    """It shows tokens meanwhile."""
    cancel_after: int | None = None
    """It gives up some time after this effect, by its number from 1."""
    operator: bool = False
    """A person answers all that is asked: what became of a payment, after looking into the file; yes to the rest."""
    kill_after: int | None = None
    """It kills itself right after this effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a process has seen."""

    ended: bool
    """Whether the turn has ended, with an answer of the model."""
    waits: bool
    """Whether the thread waits for an answer."""
    doubts: int = 0
    """How many calls the person was asked about, whether they were made."""
    asked_again: int = 0
    """How many calls the person was asked to approve, having been asked before."""
    error: str | None = None
    """What it ended with."""


@dataclass
class _Operator:
    """The person who is asked."""

    side: Side
    place: Place
    doubts: int = 0
    approvals: int = 0

    def __call__(self, asked: Sequence[Interrupt]) -> Command[Any]:
        question = asked[0].value
        if not isinstance(question, dict) or question.get("kind") != "doubt":
            self.approvals += len(asked) if self.side.per_call else len(question["action_requests"])
            return Command(resume=self.side.approval(asked))
        self.doubts += 1
        order = question["action_requests"][0]["args"]["order"]
        done = self.place.effects.count(order)
        decision = {"type": "respond", "message": receipt(order)} if done else {"type": "approve"}
        return Command(resume={"decisions": [decision]})


def act(gate: Gate, side: Side, case: Case, place: Place, form: Form, wanted: Act) -> Seen:
    """Open the agent, do what is wanted, and tell what is seen then."""
    operator, error = _Operator(side, place), None
    with opened(side, case, place, form, wanted.kill_after) as app:
        given = _given(app, side, wanted)
        gate()
        try:
            _do(app, given, wanted, operator)
        except Exception as found:  # noqa: BLE001 - what it ends with is what is asked
            error = _told(found)
        state = app.state()
    messages = state.values.get("messages") or [None]
    last = messages[-1]
    return Seen(
        ended=not state.next and getattr(last, "type", None) == "ai" and not last.tool_calls,
        waits=bool(state.interrupts),
        doubts=operator.doubts,
        asked_again=operator.approvals,
        error=error,
    )


def _given(app: App, side: Side, wanted: Act) -> Any:
    if wanted.say is not None:
        return {"messages": [HumanMessage(wanted.say)]}
    if wanted.answer is not None:
        return Command(resume=wanted.answer)
    return Command(resume=side.approval(app.state().interrupts)) if wanted.approve else None


def _do(app: App, given: Any, wanted: Act, operator: _Operator) -> None:
    if wanted.look:
        return
    if wanted.cancel_after is not None:
        least, effects = wanted.cancel_after, operator.place.effects
        app.cancelled(given, lambda: len(effects.effects()) >= least, _PATIENCE)
    elif wanted.stream:
        app.streamed(given)
    else:
        found = app.run(given)
        while wanted.operator and (asked := found.get("__interrupt__")):
            found = app.run(operator(asked))


def _told(error: Exception) -> str:
    """The code of an error of ours; of another one its class."""
    code = getattr(error, "code", None)
    return code if isinstance(code, str) else type(error).__name__
