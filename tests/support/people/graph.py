"""The graph of the story: it thinks, then asks two questions at once while it muses; twice, in either form."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt

from langgraph_ext import EffectNotDone, Frame, LedgerSaver, durable
from langgraph_ext.testing import EffectLog, ScriptedChatModel
from tests.support.models import scripted, used

__all__ = ["CONFIG", "QUESTIONS", "build", "effects_of", "model_log_of"]

CONFIG: Any = {"configurable": {"thread_id": "t", "run_key": "the request"}}

ROUNDS = 2
_ASKING = ("left", "right")

QUESTIONS = [f"{number} {name}" for number in range(1, ROUNDS + 1) for name in _ASKING]


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    round: int


def effects_of(folder: str) -> EffectLog:
    """What was done outside: to each question `said`, and, of each message, by which visit it was heard."""
    return EffectLog(Path(folder, "effects"))


def model_log_of(folder: str) -> str:
    """Where each call of the model is noted as it begins."""
    return f"{folder}/dispatches"


def build(saver: LedgerSaver, folder: str, form: str) -> Any:
    """The graph, not attached yet."""
    log = effects_of(folder)
    model = scripted(usage=used(10, 5), max_tokens=50, log=model_log_of(folder))
    nodes = _sync(log, model) if form == "sync" else _async(log, model)
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_node("again", lambda state: {"log": []})
    builder.add_edge(START, "think")
    for name in (*_ASKING, "muse"):
        builder.add_edge("think", name)
    builder.add_edge([*_ASKING, "muse"], "again")
    builder.add_conditional_edges("again", lambda state: "think" if state["round"] < ROUNDS else END)
    return builder.compile(checkpointer=saver)


def _sync(log: EffectLog, model: ScriptedChatModel) -> dict[str, Any]:
    @durable(accepts_steering=True)
    def think(state: State, frame: Frame) -> Any:
        said = _heard(log, frame)
        model.invoke("hello")
        return {"log": said, "round": state["round"] + 1}

    def muse(state: State) -> Any:
        model.invoke("hello")

    def asking(name: str) -> Any:
        @durable(effect="write", on_unknown="probe", probe=_Probe(log))
        def ask(state: State, frame: Frame) -> Any:
            question = f"{state['round']} {name}"
            said = interrupt({"question": question})
            frame.once("act", {"question": question, "said": said}, _Act(log, question, said))
            return {"log": [f"{question}: {said}"]}

        return ask

    return {"think": think, "muse": muse} | {name: asking(name) for name in _ASKING}


def _async(log: EffectLog, model: ScriptedChatModel) -> dict[str, Any]:
    @durable(accepts_steering=True)
    async def think(state: State, frame: Frame) -> Any:
        said = _heard(log, frame)
        await model.ainvoke("hello")
        return {"log": said, "round": state["round"] + 1}

    async def muse(state: State) -> Any:
        await model.ainvoke("hello")

    def asking(name: str) -> Any:
        @durable(effect="write", on_unknown="probe", probe=_Probe(log))
        async def ask(state: State, frame: Frame) -> Any:
            question = f"{state['round']} {name}"
            said = interrupt({"question": question})
            await frame.aonce("act", {"question": question, "said": said}, _Act(log, question, said))
            return {"log": [f"{question}: {said}"]}

        return ask

    return {"think": think, "muse": muse} | {name: asking(name) for name in _ASKING}


def _heard(log: EffectLog, frame: Frame) -> list[str]:
    """The messages of this visit, each noted with it."""
    for message in frame.steering:
        log.record(f"heard {message}", visit=list(frame.iteration_path))
    return [f"heard {message}" for message in frame.steering]


class _Act:
    """Does to a question what was said."""

    def __init__(self, log: EffectLog, question: str, said: Any) -> None:
        self._log, self._question, self._said = log, question, said

    def __call__(self, key: str) -> str:
        self._log.record(self._question, said=self._said, key=key)
        return self._question


class _Probe:
    """Looks whether it was done."""

    def __init__(self, log: EffectLog) -> None:
        self._log = log

    def __call__(self, key: str) -> str:
        for question, facts in self._log.effects():
            if facts.get("key") == key:
                return question
        raise EffectNotDone("it is not in the log")
