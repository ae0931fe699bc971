"""Catalogue: the scenarios, in words, and the playing of one with every side that it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.scenarios import approvals, crashes, histories
from bench.scenarios.sides import AGENT_NODE, CREATE_AGENT, PER_CALL, Form, Side
from bench.scenarios.stage import Found

__all__ = ["SCENARIOS", "Played", "Scenario", "play"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One situation."""

    number: int
    asked: str
    """What is asked of both, for a table."""
    does: str
    """What happens."""
    why: str
    """Why it matters."""
    play: Callable[[Side, Path, Form], Found]
    sides: tuple[Side, ...] = (CREATE_AGENT, AGENT_NODE)


@dataclass(frozen=True, slots=True)
class Played:
    """A scenario, and what each side has come to."""

    scenario: Scenario
    found: Mapping[Side, Found]

    @property
    def kept(self) -> bool:
        """Whether `AgentNode` has done what it promises."""
        return self.found[AGENT_NODE].sound

    def told(self, *, ours: bool) -> str:
        """What a side has come to, in words; of `create_agent` in each of its modes."""
        parts = [
            (f"with {side.mode}: " if side.mode else "") + found.told
            for side, found in self.found.items()
            if side.ours == ours
        ]
        return "; ".join(parts)


def play(scenario: Scenario, folder: Path, form: Form) -> Played:
    """Play a scenario with each side, on databases of its own.

    Args:
        scenario: Which.
        folder: Where the databases are, while it plays.
        form: How graphs are invoked.
    """
    found = {}
    for side in scenario.sides:
        with TemporaryDirectory(dir=folder, prefix="compare-") as place:
            try:
                found[side] = scenario.play(side, Path(place), form)
            except (AssertionError, RuntimeError, TimeoutError) as error:
                found[side] = Found(told=f"it could not be played: {error}", counts={}, sound=False)
    return Played(scenario, found)


_ASKING = (CREATE_AGENT, PER_CALL, AGENT_NODE)

SCENARIOS = {
    each.number: each
    for each in (
        Scenario(
            number=1,
            asked="Killed right after the second of four tools has acted, then resumed: effects repeated, lost",
            does="The model asks for four payments. They act one after the other, 0.3 s apart. The process is "
            "killed when the second is made and has not been answered. A new process goes on.",
            why="Deploys and out-of-memory kills fall between an effect and its record. Whoever goes on must "
            "not pay again, and must not leave anything out.",
            play=crashes.after_the_second,
        ),
        Scenario(
            number=2,
            asked="Eight tools act together, killed right after the last effect, then resumed: effects repeated, lost",
            does="The model asks for eight payments, which act at the same moment. The process is killed when "
            "the last of them is made. A new process goes on. How many results were stored by then varies "
            "from run to run.",
            why="Tools of one answer run side by side, so that one crash puts all of them in doubt.",
            play=crashes.all_at_once,
        ),
        Scenario(
            number=3,
            asked="Two processes answer the same approval at once (four calls): executions per call",
            does="Four payments wait for a person. Two processes open the thread, and approve all four at one moment.",
            why="A button is pressed twice, a request is retried by a proxy, two people look at one inbox.",
            play=approvals.at_once,
            sides=_ASKING,
        ),
        Scenario(
            number=4,
            asked="A malformed approval in three shapes, then a good one: threads that complete",
            does='Three threads wait for approval. They are answered with `"yes"`, `{"decisions": []}` and '
            '`{"decisions": [{"type": "maybe"}]}`, and then approved as it should be.',
            why="A front end has a bug for an hour. The threads that were answered then should not be lost for good.",
            play=approvals.malformed,
            sides=_ASKING,
        ),
        Scenario(
            number=5,
            asked="Four calls approved, killed after the second effect, then resumed: approvals lost or misapplied",
            does="As 1, with four payments that a person has approved before. If the person is asked to approve "
            "again, the answer is yes.",
            why="An approval is given once. It should hold over a crash, for the call that it was given to and "
            "for one execution of that.",
            play=approvals.killed_behind_it,
            sides=_ASKING,
        ),
        Scenario(
            number=6,
            asked="Two and three workers resume one thread at once: duplicate tool executions",
            does="A process is killed during the first call of the model. Two workers resume the thread at one "
            "moment; on another thread, three. The model asks for four payments.",
            why="Queues deliver twice, and every worker looks for work that was left when it starts.",
            play=crashes.workers,
        ),
        Scenario(
            number=7,
            asked="An answer cut off at its length limit (`finish_reason` is `length`), with two tool calls: calls run",
            does="The model asks for the payment of orders `12` and `3456`, and is cut off behind `34`. Its "
            "tokens are streamed, and langchain-core repairs the arguments of what was cut off.",
            why="Half an answer is not what the model has decided: arguments are cut, and further calls are missing.",
            play=histories.cut_off,
        ),
        Scenario(
            number=8,
            asked="At most three model calls, the first of which is killed up to four times: dispatches",
            does="The process is killed in the middle of the model's first call, and a new one goes on, up to "
            "four times. Then the model asks for one payment after the other. `create_agent` has a "
            "`ModelCallLimitMiddleware` with `thread_limit=3` and `run_limit=3`, `AgentNode` has "
            "`Limits(model_calls=3)`.",
            why="A limit is there for the bill. A call that was dispatched is paid for, whether its answer was "
            "stored or not; so a crash loop costs what it likes if only answers count.",
            play=crashes.limited,
        ),
        Scenario(
            number=9,
            asked="A turn is cancelled in the middle of a batch, then a new message: is the history valid?",
            does="Of two payments one is made after 0.1 s, the other takes 5 s. The turn is cancelled 0.3 s after "
            "the first. Then the user says something else. Looked at are the messages of the next request to the "
            "model. Always in the async form: a sync invocation cannot be cancelled.",
            why="OpenAI and Anthropic refuse a request in which a tool call has no result right behind it, so "
            "the thread cannot go on.",
            play=histories.cancelled,
        ),
        Scenario(
            number=10,
            asked="Killed in the middle of a batch, then a new message instead of a resume: is the history valid?",
            does="As 9, but the process is killed right after the first payment. A new one does not go on: in it, "
            "the user says something else.",
            why="Somebody who gets no answer writes again. What was paid, or may have been, should be known to "
            "the model then.",
            play=histories.killed,
        ),
    )
}
