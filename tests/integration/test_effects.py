"""Effects of durable nodes: `frame.once` against a log outside of the database, over failures, retries and crashes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from langgraph_ext import EffectNotDone, LedgerSaver, durable
from langgraph_ext.database.sqlite import SqliteBackend
from langgraph_ext.errors import InvalidArgument, RecoveryRequired
from langgraph_ext.nodes import Frame
from langgraph_ext.testing import EffectLog
from tests.support.acted import Acts
from tests.support.apps import CONFIG, Boom, State, line, says
from tests.support.driver import Form


@pytest.fixture(params=["sync", "async"])
def acts(request: pytest.FixtureRequest, saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under both durabilities that store as they go."""
    return Acts(saver, form, request.param, loop)


class Bank:
    """The outside: charges what it is told, and fails as often as it is told, before or after it has charged."""

    def __init__(self, folder: Path, *, fails_after: int = 0, not_done: int = 0) -> None:
        self.log = EffectLog(folder / "effects.log")
        self._after, self._not_done = iter(range(fails_after)), iter(range(not_done))

    def pay(self, key: str) -> Any:
        for _ in self._not_done:
            raise EffectNotDone("declined")
        self.log.record(key)
        for _ in self._after:
            raise ConnectionError("lost on the way back")
        return {"receipt": len(self.log.keys())}

    async def apay(self, key: str) -> Any:
        return self.pay(key)

    @property
    def charges(self) -> int:
        return sum(self.log.counts().values())


def charging(acts: Acts, bank: Bank, then: Any = None, **options: Any) -> Any:
    """A node that charges once, and then does what it is told."""
    named = {name: options.pop(name) for name in ("key", "part") if name in options}

    def after() -> None:
        acts.ran.append("charge")
        if then is not None:
            then()

    if acts.form == "sync":

        @durable(effect="write", **options)
        def charge(state: State, frame: Frame) -> Any:
            receipt = frame.once("charge", {"order": 7}, bank.pay, **named)
            after()
            return {"log": [str(receipt)]}

        return charge

    @durable(effect="write", **options)
    async def acharge(state: State, frame: Frame) -> Any:
        receipt = await frame.aonce("charge", {"order": 7}, bank.apay, **named)
        after()
        return {"log": [str(receipt)]}

    return acharge


def raising(times: int) -> Any:
    left = iter(range(times))

    def act() -> None:
        for _ in left:
            raise Boom("after the effect")

    return act


def effects(acts: Acts) -> list[tuple[str, str]]:
    return [(effect.name, str(effect.status)) for effect in acts.saver.ledger.effects()]


def test_l28_an_effect_is_committed_before_and_after_its_call(acts: Acts, tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    seen: list[Any] = []
    acts.run(line(acts.saver, charge=charging(acts, bank, lambda: seen.append(effects(acts)))))

    assert ([[("charge", "committed")]], 1) == (seen, bank.charges)
    assert ["effect.started", "effect.committed"] == acts.events("effect")
    assert [] == acts.saver.ledger.verify()


def test_scenario_10_a_committed_effect_is_not_repeated_by_a_retry(acts: Acts, tmp_path: Path) -> None:
    """Three attempts are on record with error and time; one charge."""
    bank = Bank(tmp_path)
    node = charging(acts, bank, raising(2))
    policy = RetryPolicy(initial_interval=0.01, jitter=False, max_attempts=3, retry_on=Boom)
    app = StateGraph(State).add_node("charge", node, retry_policy=policy).add_edge(START, "charge")
    app = app.compile(checkpointer=acts.saver)
    acts.run(app)

    assert [("charge", 1, "failed"), ("charge", 2, "failed"), ("charge", 3, "succeeded")] == acts.attempts()
    assert (1, "{'receipt': 1}") == (bank.charges, app.get_state(CONFIG).values["log"][-1])


def test_l28_nor_by_an_interrupt_behind_it(acts: Acts, tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    app = line(acts.saver, charge=charging(acts, bank, lambda: interrupt("sure?")))
    acts.run(app)
    acts.run(app, Command(resume="yes"))

    assert (1, [("charge", 1, "succeeded")]) == (bank.charges, acts.attempts())


def test_l30_an_effect_in_doubt_stops_the_run_until_it_is_resolved(acts: Acts, tmp_path: Path) -> None:
    """Its call raised after it had charged; nobody knows, so nobody charges again."""
    bank = Bank(tmp_path, fails_after=1)
    app = line(acts.saver, charge=charging(acts, bank))
    with pytest.raises(ConnectionError):
        acts.run(app)
    (doubtful,) = acts.saver.ledger.effects(status="unknown")
    for _ in range(2):
        with pytest.raises(RecoveryRequired, match="resolve_effect"):
            acts.run(app, None)
    acts.saver.ledger.resolve_effect(doubtful.effect_id, receipt={"receipt": "found"})
    acts.run(app, None)

    assert (1, "{'receipt': 'found'}") == (bank.charges, app.get_state(CONFIG).values["log"][-1])
    assert [] == acts.saver.ledger.verify()


def test_l31_what_did_not_happen_is_done_by_the_next_attempt(acts: Acts, tmp_path: Path) -> None:
    bank = Bank(tmp_path, fails_after=1)
    app = line(acts.saver, charge=charging(acts, bank))
    with pytest.raises(ConnectionError):
        acts.run(app)
    (doubtful,) = acts.saver.ledger.effects(status="unknown")
    acts.saver.ledger.resolve_effect(doubtful.effect_id, happened=False)
    acts.run(app, None)

    assert (2, [("charge", "not_happened"), ("charge", "committed")]) == (bank.charges, effects(acts))


def test_l30_retry_calls_again_with_the_same_key(acts: Acts, tmp_path: Path) -> None:
    bank = Bank(tmp_path, fails_after=1)
    app = line(acts.saver, charge=charging(acts, bank, on_unknown="retry"))
    with pytest.raises(ConnectionError):
        acts.run(app)
    acts.run(app, None)

    assert [2] == list(bank.log.counts().values())
    assert [("charge", "committed")] == effects(acts)


@pytest.mark.parametrize("found", [True, False])
def test_l30_probe_finds_out(acts: Acts, tmp_path: Path, found: bool) -> None:
    """The receipt is taken, or the effect is begun anew."""
    bank = Bank(tmp_path, fails_after=1)

    def probe(key: str) -> Any:
        if not found:
            raise EffectNotDone
        return {"receipt": "probed"}

    app = line(acts.saver, charge=charging(acts, bank, on_unknown="probe", probe=probe))
    with pytest.raises(ConnectionError):
        acts.run(app)
    acts.run(app, None)

    assert (1 if found else 2) == bank.charges
    assert ("charge", "committed") == effects(acts)[-1]


def test_l28_a_call_that_says_it_did_nothing_leaves_no_doubt(acts: Acts, tmp_path: Path) -> None:
    bank = Bank(tmp_path, not_done=1)
    app = line(acts.saver, charge=charging(acts, bank))
    with pytest.raises(EffectNotDone):
        acts.run(app)
    acts.run(app, None)

    assert (1, [("charge", "not_happened"), ("charge", "committed")]) == (bank.charges, effects(acts))


def test_l29_a_key_of_the_callers_own_holds_over_runs(acts: Acts, tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    app = line(acts.saver, charge=charging(acts, bank, key="order-7"))
    acts.run(app)
    acts.run(app)

    assert (1, ["{'receipt': 1}"] * 2) == (bank.charges, app.get_state(CONFIG).values["log"][1::2])


def test_l29_by_default_each_visit_acts(acts: Acts, tmp_path: Path) -> None:
    """Another round of a loop is another visit."""
    bank = Bank(tmp_path)
    builder = StateGraph(State).add_node("charge", charging(acts, bank)).add_edge(START, "charge")
    builder.add_conditional_edges("charge", lambda state: "charge" if len(state["log"]) < 4 else "__end__")
    acts.run(builder.compile(checkpointer=acts.saver))

    assert (3, 3) == (bank.charges, len(bank.log.keys()))


def test_l28_an_undeclared_effect_is_refused(acts: Acts) -> None:
    def body(frame: Frame) -> Any:
        return frame.once("charge", {}, str)

    with pytest.raises(InvalidArgument, match='effect="write"') as refusal:
        acts.run(line(acts.saver, a=acts.node("a", body)))

    assert "effect_undeclared" == refusal.value.code


def test_l52_a_frame_that_was_given_up_writes_nothing(acts: Acts, tmp_path: Path) -> None:
    """Kept by somebody beyond its body."""
    kept: list[Frame] = []
    acts.run(line(acts.saver, a=acts.node("a", lambda frame: kept.append(frame) or {"log": []}, effect="write")))
    bank = Bank(tmp_path)
    with pytest.raises(Exception, match=r"lease|attempt") as refusal:
        kept[0].once("charge", {}, bank.pay)

    assert (0, []) == (bank.charges, effects(acts))
    assert getattr(refusal.value, "code", "") in ("lease_lost", "attempt_mismatch")


def test_l22_l28_a_durable_node_adds_one_commit_and_an_effect_two(
    acts: Acts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its admission; the effect's beginning and its receipt. Its end rides with what the task writes."""
    committed: list[int] = []
    commit = SqliteBackend.commit

    def counted(self: SqliteBackend, group: list[Any]) -> None:
        committed.append(len(group))
        commit(self, group)

    monkeypatch.setattr(SqliteBackend, "commit", counted)

    def transactions(node: Any) -> int:
        committed.clear()
        acts.run(line(acts.saver, node=node), config={"configurable": {"thread_id": str(len(acts.ran))}})
        return sum(committed)

    async def aplain(state: State) -> Any:
        return {"log": ["plain"]}

    transactions(acts.node("warm"))
    plain = transactions(says("plain") if acts.form == "sync" else aplain)

    assert plain + 1 == transactions(acts.node("durable"))
    assert plain + 3 == transactions(charging(acts, Bank(tmp_path)))
