"""Scenarios for the crash harness: one that is right, and several with a bug planted in them."""

from __future__ import annotations

import asyncio
import operator
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict
from uuid import uuid4

from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.testing import EffectLog

CONFIG: Any = {"configurable": {"thread_id": "order-1"}}


class Order(TypedDict, total=False):
    receipt: str
    sure: bool


Charge = Callable[[Order], Order]


def idempotent(effects: EffectLog) -> Charge:
    """Charges unless it has charged."""

    def charge(order: Order) -> Order:
        if not effects.count("charge"):
            effects.record("charge", cents=700)
        return {"receipt": "r1"}

    return charge


def blindly(effects: EffectLog) -> Charge:
    """Charges whenever it runs."""

    def charge(order: Order) -> Order:
        effects.record("charge")
        print("charged")
        return {"receipt": "r1"}

    return charge


def graph(charge: Charge, saver: LedgerSaver) -> Any:
    return StateGraph(Order).add_node("charge", charge).add_edge(START, "charge").compile(checkpointer=saver)


def run(url: str, charge: Charge) -> None:
    """Start the run, or go on with it, until it has ended."""
    with LedgerSaver(url) as saver:
        app = graph(charge, saver)
        state = app.get_state(CONFIG)
        if state.created_at is None:
            app.invoke({}, CONFIG, durability="sync")
        elif state.tasks:
            app.invoke(None, CONFIG, durability="sync")


def sound(url: str, effects: EffectLog) -> None:
    run(url, idempotent(effects))


def charges_again(url: str, effects: EffectLog) -> None:
    run(url, blindly(effects))


async def sound_async(url: str, effects: EffectLog) -> None:
    async with LedgerSaver(url) as saver:
        app = graph(idempotent(effects), saver)
        state = await app.aget_state(CONFIG)
        if state.created_at is None or state.tasks:
            await app.ainvoke({} if state.created_at is None else None, CONFIG)


async def charges_again_async(url: str, effects: EffectLog) -> None:
    async def charge(order: Order) -> Order:
        effects.record("charge")
        await asyncio.sleep(0)
        return {"receipt": "r1"}

    async with LedgerSaver(url) as saver:
        app = StateGraph(Order).add_node(charge).add_edge(START, "charge").compile(checkpointer=saver)
        state = await app.aget_state(CONFIG)
        if state.created_at is None or state.tasks:
            await app.ainvoke({} if state.created_at is None else None, CONFIG, durability="sync")


def asks(url: str, effects: EffectLog) -> None:
    """A run that is answered, and charges then."""

    def ask(order: Order) -> Order:
        return {"sure": interrupt("sure?")}

    with LedgerSaver(url) as saver:
        builder = StateGraph(Order).add_node(ask).add_node("charge", idempotent(effects))
        app = builder.add_edge(START, "ask").add_edge("ask", "charge").compile(checkpointer=saver)
        while (state := app.get_state(CONFIG)).created_at is None or state.tasks:
            given: Any = {} if state.created_at is None else None
            app.invoke(Command(resume=True) if state.interrupts else given, CONFIG, durability="sync")


class Items(TypedDict, total=False):
    done: Annotated[list[int], operator.add]
    item: int


async def fans_out(url: str, effects: EffectLog) -> None:
    """Four tasks at once, under LangGraph's own durability: their commits come in any order."""

    async def work(items: Items) -> Items:
        key = f"work {items['item']}"
        if not effects.count(key):
            effects.record(key)
        return {"done": [items["item"]]}

    def every(items: Items) -> list[Send]:
        return [Send("work", {"item": item}) for item in range(4)]

    async with LedgerSaver(url) as saver:
        builder = StateGraph(Items).add_node(work).add_conditional_edges(START, every, ["work"])
        app = builder.compile(checkpointer=saver)
        state = await app.aget_state(CONFIG)
        if state.created_at is None or state.tasks:
            await app.ainvoke({"done": []} if state.created_at is None else None, CONFIG)


# -- with a bug


def charges_by_another_name(url: str, effects: EffectLog) -> None:
    """A key that is another one in each process protects nobody."""

    def charge(order: Order) -> Order:
        key = f"charge-{uuid4()}" if effects.keys() else "charge"
        effects.record(key)
        return {}

    run(url, charge)


def announces_again(url: str, effects: EffectLog) -> None:
    """Does something before the run is stored, that it does again unless the whole of its beginning is."""
    if not _is_begun(url):
        effects.record("announced")
    sound(url, effects)


def forgets(url: str, effects: EffectLog) -> None:
    """Looks at `next`, which is empty between a task's writes and the checkpoint behind them."""
    with LedgerSaver(url) as saver:
        app = graph(idempotent(effects), saver)
        state = app.get_state(CONFIG)
        if state.created_at is None or state.next:
            app.invoke({} if state.created_at is None else None, CONFIG, durability="sync")


def _is_begun(url: str) -> bool:
    with LedgerSaver(url) as saver:
        return saver.get_tuple(CONFIG) is not None


def hangs_when_gone_on_with(url: str, effects: EffectLog) -> None:
    if _is_begun(url):
        print("waiting for ever", flush=True)
        time.sleep(1000)
    sound(url, effects)


def raises_when_gone_on_with(url: str, effects: EffectLog) -> None:
    if _is_begun(url):
        raise ValueError("no going on")
    sound(url, effects)


def dies_when_gone_on_with(url: str, effects: EffectLog) -> None:
    if _is_begun(url):
        os._exit(7)
    sound(url, effects)


def raises_once_when_gone_on_with(url: str, effects: EffectLog) -> None:
    if _is_begun(url) and not effects.count("raised"):
        effects.record("raised")
        raise ValueError("no going on yet")
    sound(url, effects)
    if not effects.count("raised"):
        effects.record("raised")


def never_ends(url: str, effects: EffectLog) -> None:
    """Commits for ever."""
    with LedgerSaver(url) as saver:
        app = graph(idempotent(effects), saver)
        while True:
            app.invoke({}, CONFIG)


def raises(url: str, effects: EffectLog) -> None:
    raise ValueError("not even once")


# -- special ones


def commits_nothing(url: str, effects: EffectLog) -> None:
    effects.record("charge")


def uses_another_database(url: str, effects: EffectLog) -> None:
    """What happens in another database is none of the harness's business."""
    with LedgerSaver(url.replace("crash", "another")) as saver:
        graph(blindly(effects), saver).invoke({}, CONFIG)


def leaves_a_process_behind(url: str, effects: EffectLog) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    effects.record("started", pid=child.pid)
    child.returncode = 0  # so that nobody complains that it still runs
    sound(url, effects)
