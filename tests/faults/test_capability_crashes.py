"""Graphs of capability nodes, killed at every commit: no call is repeated that must not be, and none is forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from langgraph_ext import CapabilityNode, EffectNotDone, InjectedIdempotencyKey, LedgerSaver, ToolPolicy, with_ledger
from langgraph_ext.engine import Hooks, Replace, Retry
from langgraph_ext.testing import EffectLog, crash_at_every_commit
from tests.support.apps import CONFIG
from tests.support.capable import Late
from tests.support.faults import full

CALLED_AGAIN: dict[str, int | None] = {"key": None, "refund": None, "look": None}
"""What may be called again: by its key, as is on record besides, or because that changes nothing more."""


class Sale(TypedDict, total=False):
    order: str
    receipt: Any
    refunded: Any
    seen: Any


def louder(outcome: Any) -> Replace:
    """An after-hook."""
    return Replace({"value": outcome["value"].upper()})


def line(effects: EffectLog) -> Any:
    """pay (`once`, approved, with hooks) → refund (`keyed`, that fails at first) → look (`repeatable`)."""

    def pay(order: str) -> str:
        """Pay; the service does not look whether that was done before."""
        effects.record(f"pay {order}")
        return f"paid {order}"

    async def refund(order: str, key: Annotated[str, InjectedIdempotencyKey]) -> str:
        """Refund; the service knows a second call by its key."""
        known = {each["key"] for each in effects.facts("key")}
        effects.record("key", key=key)
        assert known <= {key}, "a call that is made again has the key it had"
        if not known:
            raise Late
        effects.record("refund")
        return f"refunded {order}"

    def look(order: str) -> str:
        """Look."""
        effects.record("look")
        return f"seen {order}"

    def given(state: Sale) -> dict[str, str]:
        return {"order": state["order"]}

    hooks = Hooks(before_tool=[_next_order], after_tool=[louder])
    builder: Any = StateGraph(Sale)
    builder.add_node(CapabilityNode(pay, input=given, output="receipt", hooks=hooks, interrupt_on=True))
    keyed, retry = ToolPolicy(effect="keyed"), Retry(calls=3, wait_seconds=0.0)
    builder.add_node(CapabilityNode(refund, input=given, output="refunded", policy=keyed, retry=retry))
    builder.add_node(CapabilityNode(look, input=given, output="seen", policy=ToolPolicy(effect="repeatable")))
    return builder.add_edge(START, "pay").add_edge("pay", "refund").add_edge("refund", "look")


def _next_order(request: Any) -> Replace:
    return Replace({**request, "args": {"order": "8"}})


def person(question: dict[str, Any], effects: EffectLog) -> Any:
    """Approves, and of a call in doubt looks outside what came of it."""
    happened = question["kind"] == "doubt" and effects.count("pay 8")
    decision = {"type": "respond", "message": "paid 8"} if happened else {"type": "approve"}
    return {"request_id": question["request_id"], "decisions": [decision]}


def given_to(state: Any, effects: EffectLog) -> Any:
    """What the graph is gone on with."""
    if state.created_at is None:
        return {"order": "7"}
    return Command(resume=person(state.interrupts[0].value, effects)) if state.interrupts else None


def scenario(db_url: str, effects: EffectLog) -> None:
    """Start the run, or go on with it, until it has ended."""
    with LedgerSaver(db_url) as saver:
        app = line(effects).compile(checkpointer=saver)
        while (state := app.get_state(CONFIG)).created_at is None or state.tasks:
            app.invoke(given_to(state, effects), CONFIG, durability="sync")


async def attached(db_url: str, effects: EffectLog) -> None:
    """The same in its async form, in a subgraph of an attached graph."""
    outer: Any = StateGraph(Sale).add_node("sale", line(effects).compile()).add_edge(START, "sale")
    async with LedgerSaver(db_url) as saver:
        app = with_ledger(outer.compile(checkpointer=saver))
        while (state := await app.aget_state(CONFIG)).created_at is None or state.tasks:
            await app.ainvoke(given_to(state, effects), CONFIG, durability="sync")


def found_out(db_url: str, effects: EffectLog) -> None:
    """A `once` call whose doubt a function settles: nobody is asked."""

    def pay(order: str) -> str:
        """Pay."""
        effects.record(f"pay {order}")
        return f"paid {order}"

    def look(args: Any, key: str) -> str | None:
        """Nothing can be on its way to the log of a process that is gone."""
        if effects.count(f"pay {args['order']}"):
            return f"paid {args['order']}"
        raise EffectNotDone("no such payment")

    policy = ToolPolicy(on_unknown=look)
    node = CapabilityNode(pay, input=lambda state: {"order": state["order"]}, output="receipt", policy=policy)
    with LedgerSaver(db_url) as saver:
        app = StateGraph(Sale).add_node(node).add_edge(START, "pay").compile(checkpointer=saver)
        while (state := app.get_state(CONFIG)).created_at is None or state.tasks:
            assert not state.interrupts
            app.invoke({"order": "7"} if state.created_at is None else None, CONFIG, durability="sync")


def check(tmp_path: Path, story: str, **options: Any) -> None:
    report = crash_at_every_commit(
        f"{__name__}:{story}",
        db=tmp_path / "c.db",
        at_most=CALLED_AGAIN,
        ignore_facts=["key"],
        timeout_seconds=60,
        **options,
    )
    report.assert_sound()
    assert {"t": "succeeded"} == report.ended


def test_a_call_that_was_made_and_is_not_on_record_is_found_out_about(tmp_path: Path) -> None:
    """Killed between the two; `make faults` kills at every commit."""
    check(tmp_path, "found_out", only=(6, "before"))


@pytest.mark.slow
@pytest.mark.parametrize("story", ["scenario", "attached", "found_out"])
def test_calls_of_every_policy_survive_a_kill_at_every_commit(tmp_path: Path, story: str) -> None:
    """What acts once has acted once, a key stays, no approval and no decision of a hook is lost."""
    check(tmp_path, story, points=["before", "inside", "after"] if full() else ["before", "after"])
