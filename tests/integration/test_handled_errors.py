"""Errors that a node's error handler has taken over: LangGraph knows them by their `id`, which others may come to have.

What has the same `id` later is passed over: the node counts as one that wrote nothing. It must be no refusal of ours,
and in an attached graph nothing else.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_ext import LedgerSaver, with_ledger
from langgraph_ext.errors import (
    AdmissionError,
    BudgetExhausted,
    ConflictError,
    LeaseError,
    RecoveryRequired,
    StoreError,
)
from langgraph_ext.saver.refusals import refused
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State
from tests.support.driver import Form

FAMILIES = [AdmissionError, BudgetExhausted, ConflictError, LeaseError, RecoveryRequired, StoreError]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_l18_no_refusal_is_where_another_error_has_been(family: Any) -> None:
    """Errors of all usual sizes, each gone before the next is made."""
    sizes = [
        type(f"Sized{size}", (Boom,), {"__slots__": tuple(f"_{n}" for n in range(size))}) for size in range(0, 48, 2)
    ]
    gone = {id(of("gone")) for of in sizes for _ in range(100)} | {id(family("gone")) for _ in range(100)}
    kept = [refused(family(f"refused {number}")) for number in range(200)]

    assert not gone & {id(error) for error in kept}


@pytest.mark.parametrize("durability", ["sync", pytest.param("async", marks=pytest.mark.slow), "exit"])
def test_l26_in_an_attached_graph_no_question_is_passed_over(
    saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop, durability: str
) -> None:
    """An error stays until its invocation is over, so that nothing else comes to have its `id`; then it goes."""
    acts = Acts(saver, form, durability, loop)
    raised: list[weakref.ref[Exception]] = []
    alive: list[bool] = []

    def bad(state: State) -> Any:
        error = Boom("taken over")
        raised.append(weakref.ref(error))
        raise error

    def ask(state: State) -> Any:
        gc.collect()
        alive.append(all(error() is not None for error in raised))
        return Command(goto="bad", update={"log": [interrupt("go on?")]})

    builder = StateGraph(State).add_node("ask", ask).add_edge(START, "bad")
    builder.add_node("bad", bad, error_handler=lambda state: Command(goto="ask", update={"log": ["handled"]}))
    app = with_ledger(builder.compile(checkpointer=saver))
    gc.freeze()  # so that only what is made from now on is looked through
    shown = acts.run(app)
    for number in range(3):
        assert ["go on?"] == [question.value for question in shown["__interrupt__"]]
        gc.collect()
        assert [None] == [error() for error in raised]
        raised.clear()
        shown = acts.run(app, Command(resume=str(number)))
    gc.unfreeze()

    assert [True] * 7 == alive  # each question is asked, and answered
    assert ["in", "handled", "0", "handled", "1", "handled", "2", "handled"] == app.get_state(CONFIG).values["log"]
