"""What the processes of the killed moments do: run a graph with one effect, and die at a moment of it; or go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph

from langgraph_ext import EffectNotDone, Frame, LedgerSaver, RunLedger, durable, with_ledger
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import EffectLog
from tests.support.faults import kill_myself

__all__ = ["MOMENTS", "Record", "go", "record"]

CONFIG: Any = {"configurable": {"thread_id": "t"}}

MOMENTS = (
    "before the node was admitted",
    "before `frame.once` has begun the effect",
    "between that record and the call",
    "during the call",
    "between the call and its receipt's record",
    "behind the receipt's record, in the body",
    "when the body has returned, before that is stored",
    "when it is stored, before the next checkpoint",
)
"""In the words, and in the order, of docs/guarantees.md."""

Record = tuple[list[str], list[str]]
"""How the attempts and the effects of the run stand, oldest first."""


class State(TypedDict, total=False):
    receipt: str


class Act:
    """A payment outside, and the process that makes it, which may be about to die."""

    def __init__(self, folder: str, moment: str | None) -> None:
        self.log, self._moment = EffectLog(Path(folder) / "effects"), moment

    def die(self, at: str) -> None:
        if at == self._moment:
            kill_myself()

    def pay(self, key: str) -> str:
        self.die(MOMENTS[2])
        self.log.record(key)
        self.die(MOMENTS[3])
        return "r1"

    def call(self, key: str) -> str:
        receipt = self.pay(key)
        self.die(MOMENTS[4])
        return receipt

    def probe(self, key: str) -> str:
        if not self.log.count(key):
            raise EffectNotDone
        return "r1"


class DyingSaver(LedgerSaver):
    """Dies, if it is to, when the node's writes are stored."""

    act: Act

    def put_writes(self, config: Any, writes: Any, *args: Any) -> None:
        super().put_writes(config, writes, *args)
        if "receipt" in [channel for channel, _ in writes]:
            self.act.die(MOMENTS[7])


def build(act: Act, options: Any) -> Any:
    """One node, with one effect, or one action that the ledger does not see."""

    @durable(**options)
    def charge(state: State, frame: Frame) -> Any:
        act.die(MOMENTS[1])
        is_seen = options["effect"] == "write"
        receipt = frame.once("charge", {"order": 7}, act.call) if is_seen else act.pay("unseen")
        act.die(MOMENTS[5])
        return {"receipt": receipt}

    def node(state: State) -> Any:
        act.die(MOMENTS[0])
        result = charge(state)
        act.die(MOMENTS[6])
        return result

    return StateGraph(State).add_node("charge", node).add_edge(START, "charge")


def go(folder: str, options: Any, moment: str | None, attached: bool = True) -> str:
    """Run, or go on; dies at the moment. Returns the state's receipt, or the error's code."""
    act = Act(folder, moment)
    if options.get("on_unknown") == "probe":
        options = {**options, "probe": act.probe}
    with DyingSaver(f"{folder}/runs.db") as saver:
        saver.act = act
        app = build(act, options).compile(checkpointer=saver)
        app = with_ledger(app) if attached else app
        given: Any = None if app.get_state(CONFIG).created_at else {}
        try:
            return str(app.invoke(given, CONFIG, durability="sync")["receipt"])
        except LangGraphExtError as error:
            return error.code


def record(folder: str) -> Record:
    """What is on record, as another process reads it."""
    with RunLedger(f"{folder}/runs.db") as ledger:
        assert [] == ledger.verify()
        (run,) = ledger.runs()
        attempts, effects = ledger.attempts(run.run_id), ledger.effects(run.run_id)
    return [str(each.status) for each in attempts], [str(each.status) for each in effects]
