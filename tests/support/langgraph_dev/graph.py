"""The graph that `langgraph dev` serves: charge → ask → mail, which takes a minute if `SLOW` is set."""

from __future__ import annotations

import asyncio
import operator
import os
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from langgraph_ext import Frame, durable, with_ledger


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def record(word: str) -> str:
    """Do it."""
    with open(f"{os.environ['RUNS']}/effects", "a") as file:
        file.write(f"{word}\n")
    return word


@durable(effect="write")
def charge(state: State, frame: Frame) -> State:
    return {"log": [frame.once("charge", {}, lambda key: record("charge"))]}


@durable
async def ask(state: State) -> State:
    return {"log": [interrupt("sure?")]}


@durable(effect="write")
async def mail(state: State, frame: Frame) -> State:
    async def send(key: str) -> str:
        return await asyncio.to_thread(record, "mail")

    told = await frame.aonce("mail", {}, send)
    if "SLOW" in os.environ:
        await asyncio.sleep(60)
    return {"log": [told]}


builder = StateGraph(State).add_node(charge).add_node(ask).add_node(mail)
builder.add_edge(START, "charge").add_edge("charge", "ask").add_edge("ask", "mail")
graph = with_ledger(builder.compile())
