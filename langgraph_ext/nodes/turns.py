"""Turns: the questions that a task asks about effects of its fork, in the order in which it came to them first.

LangGraph knows answers by their order in the task. So the ledger keeps that order (ledger/forks.py), and each try of
the task asks in it: LangGraph is asked for what was answered before, too, also where the part of the task that had
asked is not run again, for else its answer would be given to the next question. What comes early waits for its turn,
and while one question waits for its answer no other one is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from langgraph_ext.ledger.forks import Choice, Met

__all__ = ["Turns"]

_KIND = "effect_on_fork"


class Turns:
    """The questions of this sort in one try of a task. Safe to use from any thread."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._answers: list[Choice] = []
        self._asked: GraphInterrupt | None = None
        """The question that waits for its answer."""

    def catch_up(self, earlier: Iterable[Met]) -> None:
        """Ask for what was answered in earlier tries, as far as it is its turn.

        Raises:
            GraphInterrupt: LangGraph has lost such an answer: it is asked again.
        """
        for question in earlier:
            if question.choice is not None and self.has_come(question):
                self.ask(question)

    def has_come(self, question: Met) -> bool:
        """Whether it is the turn of a question.

        Raises:
            GraphInterrupt: Another one is asked: that has to be answered first.
        """
        with self._mutex:
            self._refuse_second()
            return _ordinal(question) <= len(self._answers)

    def ask(self, question: Met) -> Choice:
        """Ask, if nobody has in this try; its turn has come. What is no answer is asked again, with the reason.

        Raises:
            GraphInterrupt: There is no answer yet.
        """
        with self._mutex:
            self._refuse_second()
            if _ordinal(question) < len(self._answers):
                return self._answers[_ordinal(question)]
            shown = _shown(question)
            try:
                answer = interrupt(shown)
                while answer not in tuple(Choice):
                    answer = interrupt({**shown, "error": f"the answer must be one of {shown['options']}"})
            except GraphInterrupt as asked:
                self._asked = asked
                raise
            self._answers.append(Choice(answer))
            return self._answers[-1]

    def _refuse_second(self) -> None:
        if self._asked is not None:
            raise GraphInterrupt(*self._asked.args)


def _ordinal(question: Met) -> int:
    assert question.ordinal is not None, "it is one that is asked"
    return question.ordinal


def _shown(question: Met) -> dict[str, Any]:
    """What whoever answers is shown."""
    return {
        "kind": _KIND,
        "question": (
            f"Effect {question.name!r} of node {question.node_path!r} was committed by the run that this one was "
            "forked from. Give its receipt back (reuse), act again (act), or cancel this run (stop)?"
        ),
        "options": [Choice.REUSE.value, Choice.ACT.value, Choice.STOP.value],
        "effect": question.name,
        "part": question.part,
        "node": question.node_path,
        "effect_id": question.before_id,
        "run_id": question.before_run,
    }
