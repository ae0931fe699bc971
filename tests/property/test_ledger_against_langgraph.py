"""The ledger says of every run what LangGraph says of its thread, whatever the graph and whatever is done to it.

Graphs of random shape (tests/support/shapes.py) run over a LedgerSaver; after each action the ledger is compared with
LangGraph's own `get_state_history` (tests/support/witness.py, which says where the saver alone cannot know). Compared:

- runs: one for each input, and for each fork, which names the run it left; where each stands at its head;
- questions: those pending are those that LangGraph shows and nobody has answered (L24);
- visits: those that succeeded are the tasks whose results LangGraph holds, in subgraphs too (L9); their ordinals and
  transitions never change once they were shown (L3);
- events: what was shown stays as it is, cursors ascend, `run_seq` has no gaps, pages add up to the whole (L48);
- `verify()` finds nothing.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.shapes import parts
from tests.support.witness import Thread

# Over both forms and three durabilities.
EXAMPLES = (1000 if os.environ.get("LANGGRAPH_EXT_TEST_FULL") == "1" else 100) // 6 + 1

picks = st.integers(0, 11)
_next = st.tuples(st.sampled_from(["go", "go", "answer", "answer", "map"]), picks)
_any = st.tuples(st.sampled_from(["input", "update", "input at", "go at", "answer at", "update at"]), picks)
actions = st.lists(_next | _next | _any, max_size=6)


def act(thread: Thread, what: str, pick: int) -> None:
    word, _, at = what.partition(" ")
    if word == "update":
        thread.update(pick, at_old=bool(at))
    else:
        thread.invoke(word, pick, at_old=bool(at))


@pytest.mark.timeout(900)  # when it fails, Hypothesis needs minutes to find the shortest story
@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@given(parts=parts, actions=actions)
@settings(max_examples=EXAMPLES, derandomize=EXAMPLES < 100, suppress_health_check=[HealthCheck.too_slow])
def test_l3_l9_l24_l47_l48_l54_the_ledger_agrees_with_langgraph(
    durability: str, form: Any, parts: Any, actions: Any
) -> None:
    """Whatever runs, raises, asks, is answered, edited, replayed and forked: both tell the same."""
    thread = Thread(parts, form, durability)
    try:
        thread.invoke("input")
        for what, pick in actions:
            act(thread, what, pick)
    finally:
        thread.close()
