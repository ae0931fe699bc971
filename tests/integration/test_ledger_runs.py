"""What the ledger learns of runs from a saver that graphs run on: beginnings, ends, outcomes, questions, forks."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from langgraph.channels import LastValue
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.pregel import NodeBuilder, Pregel
from langgraph.types import Command, Interrupt, Send, TimeoutPolicy, interrupt

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import ConflictError
from langgraph_ext.ledger.event_rows import append_event
from tests.support.apps import CONFIG, Boom, State, answered, asks, fails, fan, line, names, says, tried
from tests.support.build import checkpoint, cid, config, metadata, running


def statuses(saver: LedgerSaver) -> list[str]:
    """Of all runs, the oldest first."""
    return [str(run.status) for run in reversed(saver.ledger.runs())]


def only_run(saver: LedgerSaver) -> Any:
    (run,) = saver.ledger.runs()
    return run


def run_events(saver: LedgerSaver) -> list[str]:
    """Names of what happened to runs and questions, in order."""
    return [name for name in names(saver.ledger.events(limit=1000)) if not name.startswith("visit.")]


def outcomes(saver: LedgerSaver, run_id: str | None = None) -> dict[str, str]:
    """How the visits of a run stand, by node path; the newest of a path wins."""
    return {
        visit.node_path: str(visit.status) for visit in saver.ledger.visits(run_id or saver.ledger.runs()[0].run_id)
    }


# -- L54: when a run is settled


def test_l54_a_run_is_settled_by_the_checkpoint_after_which_nothing_starts(saver: LedgerSaver, durability: Any) -> None:
    """And not before: while its nodes run, it is running."""
    seen: list[Any] = []

    def second(state: State) -> dict[str, Any]:
        seen.extend(saver.ledger.runs())
        return {"log": ["second"]}

    tried(line(saver, first=says("first"), second=second), durability=durability)

    assert ["succeeded"] == statuses(saver)
    assert ["run.started", "run.succeeded"] == run_events(saver)
    assert [] == [run for run in seen if run.status != "running"]
    assert only_run(saver).ended_at >= only_run(saver).started_at


def test_l54_joins_that_wait_for_more_are_no_start(saver: LedgerSaver) -> None:
    """`join:a+b:end` with only one of them: the other took another way, and the run is over."""
    builder = StateGraph(State)
    for name in ("a", "b", "end"):
        builder.add_node(name, says(name))
    builder.add_edge(START, "a").add_edge(["a", "b"], "end")
    tried(builder.compile(checkpointer=saver))

    assert ["succeeded"] == statuses(saver)


def test_l54_a_complete_join_goes_on(saver: LedgerSaver) -> None:
    """Both have come: `end` is still to run."""
    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, says(name)).add_edge(START, name)
    builder.add_node("end", says("end")).add_edge(["a", "b"], "end")
    app = builder.compile(checkpointer=saver, interrupt_before=["end"])
    tried(app)
    assert ["running"] == statuses(saver)
    app.invoke(None, CONFIG)

    assert ["succeeded"] == statuses(saver)


def test_l54_a_deferred_join_goes_on_when_its_turn_has_come(saver: LedgerSaver) -> None:
    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, says(name)).add_edge(START, name)
    builder.add_node("end", says("end"), defer=True).add_edge(["a", "b"], "end")
    tried(builder.compile(checkpointer=saver, interrupt_before=["end"]))
    assert ["running"] == statuses(saver)


def test_l54_a_subgraph_settles_nothing(saver: LedgerSaver) -> None:
    """Its last checkpoint is not its run's."""
    seen: list[str] = []

    def after(state: State) -> dict[str, Any]:
        seen.extend(statuses(saver))
        return {"log": []}

    tried(line(saver, sub=line(None, x=says("x")), after=after), durability="sync")

    assert (["running"], ["succeeded"]) == (seen, statuses(saver))


@pytest.mark.parametrize("between", [None, "effect.resolved", "run.steered"])
def test_l54_of_a_graph_of_another_kind_the_end_is_not_known(saver: LedgerSaver, between: str | None) -> None:
    """A bare Pregel starts tasks by channels of any name: the run stays idle, and the next input closes it; also when
    somebody has resolved an effect of it in between, or said something to it."""
    node = NodeBuilder().subscribe_only("a").do(lambda a: a + 1).write_to("b")
    app = Pregel(
        nodes={"one": node},
        channels={"a": LastValue(int), "b": LastValue(int)},
        input_channels="a",
        output_channels="b",
        checkpointer=saver,
    )
    assert 2 == app.invoke(1, CONFIG)
    assert ["idle"] == statuses(saver)
    if between is not None:
        run = saver.database.read(lambda tx: tx.one("run_last", run_id="")["run"])
        where = {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": saver.ledger.runs()[0].last_checkpoint_id}
        saver.database.transact(append_event, name=between, run=run, **where, stored_us=1)
    app.invoke(2, CONFIG)

    assert ["succeeded", "idle"] == statuses(saver)


def test_l54_the_functional_api_is_settled_by_its_return(saver: LedgerSaver) -> None:
    from langgraph.func import entrypoint, task

    @task
    def add(number: int) -> int:
        return number + 1

    @entrypoint(checkpointer=saver)
    def flow(number: int) -> int:
        return add(number).result()

    assert 2 == flow.invoke(1, CONFIG)
    assert ["succeeded"] == statuses(saver)


# -- beginnings, stops


def test_a_run_has_the_name_that_its_metadata_gives(saver: LedgerSaver) -> None:
    """Used again, on any thread, it names the first; the next run is named after its first checkpoint."""
    app = line(saver, a=says("a"))
    for thread in ("t", "u"):
        app.invoke({"log": []}, {"configurable": {"thread_id": thread}, "metadata": {"run_id": "mine"}})
    second, first = saver.ledger.runs()

    assert ("mine", "t") == (first.run_id, first.thread_id)
    assert (second.first_checkpoint_id, "u") == (second.run_id, second.thread_id)


def test_a_run_that_new_input_finds_open_comes_to_nothing_more(saver: LedgerSaver, durability: Any) -> None:
    """It is cancelled, its question superseded; a failed one as well."""
    if durability == "exit":
        pytest.skip("under exit a saver sees one checkpoint, and not whether it began with an input")
    tried(line(saver, ask=asks("sure?")), durability=durability)
    tried(line(saver, ask=fails(1)), durability=durability)
    tried(line(saver, ask=says("done")), durability=durability)

    assert ["cancelled", "cancelled", "succeeded"] == statuses(saver)
    assert ["superseded"] == [str(found.status) for found in saver.ledger.interrupts()]


def test_update_state_belongs_to_the_run_it_corrects(saver: LedgerSaver) -> None:
    """And begins none: what goes on afterwards is the same run."""
    app = line(saver, a=says("a"), b=fails(1))
    tried(app)
    app.update_state(CONFIG, {"log": ["corrected"]}, as_node="a")
    app.invoke(None, CONFIG)

    assert ["succeeded"] == statuses(saver)


def test_what_goes_on_behind_an_end_is_a_run_of_its_own(saver: LedgerSaver) -> None:
    """`update_state(as_node=…)` behind the end starts nodes again; that is no fork."""
    app = line(saver, a=says("a"), b=says("b"))
    tried(app)
    app.update_state(CONFIG, {"log": ["again"]}, as_node="a")
    app.invoke(None, CONFIG)

    assert ["succeeded", "succeeded"] == statuses(saver)
    assert None is saver.ledger.runs()[0].fork_of


def test_a_programs_own_checkpoints_belong_to_no_run(saver: LedgerSaver) -> None:
    """Imports, copies, tests: a saver used directly keeps no ledger."""
    saver.put(config(), checkpoint(cid(0), {"a": 0}, {"a": 1}), metadata(0), {"a": 1})
    saver.put_writes(config(id=cid(0)), [("a", 1), ("__error__", Boom("x"))], "task", "~__pregel_pull, a")

    assert [] == saver.ledger.runs()
    assert [] == saver.ledger.events()


def test_a_copied_thread_belongs_to_no_run_until_it_goes_on(saver: LedgerSaver) -> None:
    app = line(saver, a=says("a"), b=fails(1))
    tried(app)
    saver.copy_thread("t", "copy")
    assert ["t"] == [run.thread_id for run in saver.ledger.runs()]
    app.invoke(None, {"configurable": {"thread_id": "copy"}})

    assert [("copy", "succeeded"), ("t", "failed")] == [(r.thread_id, str(r.status)) for r in saver.ledger.runs()]


# -- L9: outcomes


def test_l9_output_is_success_and_an_error_alone_is_a_failure(saver: LedgerSaver, durability: Any) -> None:
    """And success it is, too, when the error was that of an earlier call."""
    app = line(saver, good=says("good"), bad=fails(1))
    tried(app, durability=durability)
    if durability != "exit":
        assert {"good": "succeeded", "bad": "failed"} == outcomes(saver)
    assert ("failed", "Boom", "late failed") == (
        only_run(saver).status,
        only_run(saver).error_type,
        only_run(saver).error_message,
    )
    app.invoke(None, CONFIG, durability=durability)

    if durability != "exit":
        assert {"good": "succeeded", "bad": "succeeded"} == outcomes(saver)
    assert ["succeeded"] == statuses(saver)


def test_scenario_09_l9_a_router_that_raises_is_a_failure_and_runs_again(saver: LedgerSaver) -> None:
    """Its node had written by then; LangGraph is shown the error alone (S12), so that the branch is not lost."""
    left = [1]

    def router(state: State) -> str:
        if left:
            left.pop()
            raise Boom("router")
        return "right"

    builder = StateGraph(State).add_node("a", says("a")).add_node("right", says("right"))
    builder.add_edge(START, "a").add_conditional_edges("a", router, ["right", END])
    app = builder.compile(checkpointer=saver)
    tried(app)
    assert {"a": "failed"} == outcomes(saver)
    result = app.invoke(None, CONFIG)

    assert ["in", "a", "right"] == result["log"]
    assert {"a": "succeeded", "right": "succeeded"} == outcomes(saver)


async def test_l9_cancelled_and_timed_out_tasks_are_told_apart(saver: LedgerSaver) -> None:
    async def slow(state: State) -> dict[str, Any]:
        await asyncio.sleep(30)
        return {}

    async def bad(state: State) -> dict[str, Any]:
        await asyncio.sleep(0.05)
        raise Boom("bad")

    builder = StateGraph(State).add_node("slow", slow).add_node("bad", bad)
    app = builder.add_edge(START, "slow").add_edge(START, "bad").compile(checkpointer=saver)
    with pytest.raises(Boom):
        await app.ainvoke({"log": []}, CONFIG)
    async for event in saver.ledger.afollow():  # LangGraph does not wait for what a cancelled task writes
        if event.name == "visit.cancelled":
            break
    assert {"slow": "cancelled", "bad": "failed"} == outcomes(saver)

    late = StateGraph(State).add_node("late", slow, timeout=TimeoutPolicy(run_timeout=0.05)).add_edge(START, "late")
    with pytest.raises(Exception, match="late"):
        await late.compile(checkpointer=saver).ainvoke({"log": []}, CONFIG)

    assert {"late": "timed_out"} == outcomes(saver)
    assert "failed" == saver.ledger.runs()[0].status


def test_l9_an_error_that_a_handler_takes_over_fails_no_run(saver: LedgerSaver) -> None:
    def handler(state: State, error: NodeError) -> dict[str, Any]:
        return {"log": ["handled"]}

    builder = StateGraph(State).add_node("bad", fails(9), error_handler=handler).add_edge(START, "bad")
    tried(builder.compile(checkpointer=saver))

    assert ["run.started", "run.succeeded"] == run_events(saver)
    assert ["failed", "succeeded"] == [str(visit.status) for visit in saver.ledger.visits(only_run(saver).run_id)]


def test_l9_of_a_fan_out_each_task_has_its_own_outcome(saver: LedgerSaver) -> None:
    done: list[int] = []

    def good(state: State) -> dict[str, Any]:
        done.append(1)
        return {"log": ["good"]}

    def bad(state: State) -> dict[str, Any]:
        while len(done) < 2:  # LangGraph cancels what has not begun when a task fails
            time.sleep(0.01)
        raise Boom("bad")

    tried(fan(saver, "good", "bad", "good", good=good, bad=bad))
    visits = saver.ledger.visits(only_run(saver).run_id)
    assert [("good", 0, "succeeded"), ("bad", 1, "failed"), ("good", 2, "succeeded")] == sorted(
        ((v.node, v.place, str(v.status)) for v in visits if v.place is not None), key=lambda found: found[1]
    )


# -- L24: questions


def test_l24_a_question_is_recorded_with_the_write_that_asks_it(saver: LedgerSaver, form: str, durability: Any) -> None:
    """With LangGraph's id, its ordinal, its payload and kind; run and visit are paused, then answered and done."""
    app = line(saver, ask=asks({"kind": "approval", "n": 1}))
    if form == "async":
        asyncio.run(app.ainvoke({"log": []}, CONFIG, durability=durability))
    else:
        app.invoke({"log": []}, CONFIG, durability=durability)
    (question,) = saver.ledger.interrupts(pending=True)
    (shown,) = app.get_state(CONFIG).interrupts

    assert (shown.id, 0, "approval", {"kind": "approval", "n": 1}, "ask") == (
        question.interrupt_id,
        question.ordinal,
        question.kind,
        question.value,
        question.node,
    )
    assert ["paused"] == statuses(saver)
    answered(app, durability=durability)
    assert ["succeeded"] == statuses(saver)
    assert ["answered"] == [str(found.status) for found in saver.ledger.interrupts()]
    assert "run.paused" in run_events(saver)


def test_l24_two_questions_of_one_task_are_told_apart(saver: LedgerSaver) -> None:
    app = line(saver, ask=asks("one", "two"))
    tried(app)
    answered(app, "1")
    first, second = sorted(saver.ledger.interrupts(), key=lambda found: found.ordinal)
    assert [(0, "one", "answered"), (1, "two", "pending")] == [
        (found.ordinal, found.value, str(found.status)) for found in (first, second)
    ]
    assert ["paused"] == statuses(saver)
    answered(app, "2")

    assert ["answered", "answered"] == [str(found.status) for found in saver.ledger.interrupts()]
    assert 2 == run_events(saver).count("interrupt.requested")


def test_l24_an_id_already_recorded_adds_nothing(saver: LedgerSaver) -> None:
    """A subgraph's question is asked again by the graph around it."""
    app = line(saver, sub=line(None, ask=asks("deep?")))
    tried(app)
    (question,) = saver.ledger.interrupts()
    assert ("ask", True) == (question.node, question.checkpoint_ns != "")
    answered(app)

    assert 1 == run_events(saver).count("interrupt.requested") == run_events(saver).count("interrupt.answered")


def test_l24_answers_by_id_close_their_own_questions(saver: LedgerSaver) -> None:
    """One of two is answered by a map; LangGraph asks the other again, and the ledger knows it already."""
    builder = StateGraph(State).add_node("a", asks("a?")).add_node("b", asks("b?"))
    app = builder.add_edge(START, "a").add_edge(START, "b").compile(checkpointer=saver)
    tried(app)
    ids = {found.node: found.interrupt_id for found in saver.ledger.interrupts(pending=True)}
    app.invoke(Command(resume={ids["a"]: "yes"}), CONFIG)

    assert ["b"] == [found.node for found in saver.ledger.interrupts(pending=True)]
    assert ["paused"] == statuses(saver)
    assert 2 == run_events(saver).count("interrupt.requested")


def test_l24_a_payload_that_is_no_json_is_kept_as_the_serde_has_it(saver: LedgerSaver) -> None:
    app = line(saver, ask=asks({1: {2, 3}}))
    tried(app)
    (question,) = saver.ledger.interrupts()

    assert ({1: {2, 3}}, "msgpack") == (question.value, question.value_type)


# -- L47: forks


def test_l47_a_run_on_a_fork_is_a_new_one_that_names_the_old(saver: LedgerSaver, durability: Any) -> None:
    """By replay, by update_state at an old checkpoint, by new input there."""
    app = line(saver, a=says("a"), b=says("b"))
    tried(app, durability="sync")
    old = only_run(saver)
    at_b = next(found.config for found in app.get_state_history(CONFIG) if found.next == ("b",))
    app.invoke(None, at_b, durability=durability)
    app.invoke(None, app.update_state(at_b, {"log": ["edited"]}), durability=durability)
    app.invoke({"log": ["other"]}, at_b, durability=durability)

    assert [old.run_id] * 3 + [None] == [run.fork_of for run in saver.ledger.runs()]
    assert {"succeeded"} == set(statuses(saver))


def test_l47_inherited_visits_are_marked_and_do_not_count(saver: LedgerSaver) -> None:
    app = line(saver, a=says("a"), b=says("b"))
    tried(app)
    app.invoke(None, next(found.config for found in app.get_state_history(CONFIG) if found.next == ("b",)))
    fork = saver.ledger.runs()[0].run_id

    assert [("b", 1, False)] == [(v.node, v.transition, v.inherited) for v in saver.ledger.visits(fork)]
    assert [("a", 0, True), ("b", 1, False)] == [
        (v.node, v.transition, v.inherited) for v in saver.ledger.visits(fork, inherited=True)
    ]
    assert ["run.started", "visit.succeeded", "run.succeeded"] == list(names(saver.ledger.events(fork)))


def test_l47_an_old_question_answered_again_is_a_fork(saver: LedgerSaver) -> None:
    """Resumed where it had gone on already: the first run stays as it ended."""
    app = line(saver, ask=asks("sure?"), b=says("b"))
    tried(app)
    asked = app.get_state(CONFIG).config
    answered(app)
    before = only_run(saver)
    app.invoke(Command(resume="no"), asked)

    fork, first = saver.ledger.runs()
    assert (before, before.run_id) == (first, fork.fork_of)


# -- L1, L2: identity


OUTPUT_OR_ERROR = pytest.mark.parametrize("writes", [[("a", 1)], [("__error__", Boom("x"))]], ids=["output", "error"])


@OUTPUT_OR_ERROR
def test_l1_a_task_never_changes_its_namespace(saver: LedgerSaver, writes: Any) -> None:
    """One that was recorded and comes in another namespace is refused, and nothing is written."""
    saver.put(config(), checkpoint(cid(1)), metadata(0), {})
    saver.put_writes(running(config(id=cid(1))), [("a", 1)], "task", "~__pregel_pull, a")
    before = saver.ledger.events()
    assert ["visit.succeeded"] == list(names(before))

    with pytest.raises(ConflictError, match="task_identity_conflict"):
        saver.put_writes(running(config("t", "elsewhere", id=cid(1))), writes, "task", "~__pregel_pull, a")
    assert before == saver.ledger.events()


@OUTPUT_OR_ERROR
def test_l2_a_task_never_changes_its_node(saver: LedgerSaver, writes: Any) -> None:
    """One that was recorded and comes under another path is refused, and nothing is written."""
    saver.put(config(), checkpoint(cid(1)), metadata(0), {})
    saver.put_writes(running(config(id=cid(1))), [("a", 1)], "task", "~__pregel_pull, a")
    before = saver.ledger.events()
    assert ["visit.succeeded"] == list(names(before))

    with pytest.raises(ConflictError, match="task_identity_conflict"):
        saver.put_writes(running(config(id=cid(1))), writes, "task", "~__pregel_pull, b")
    assert before == saver.ledger.events()


@pytest.mark.parametrize("ns", ["elsewhere", ""], ids=["l1", "l2"])
def test_l1_l2_another_saver_is_told_by_the_database(saver: LedgerSaver, backend: Any, ns: str) -> None:
    """What fails or asks is compared with what any process wrote."""
    saver.put_writes(running(config(id=cid(1))), [("a", 1)], "task", "~__pregel_pull, a")
    path = "~__pregel_pull, a" if ns else "~__pregel_pull, b"

    with pytest.raises(ConflictError, match="task_identity_conflict"):
        backend.open().put_writes(running(config("t", ns, id=cid(1))), [("__error__", Boom("x"))], "task", path)


# -- L10: failures inside a transaction


def test_l10_a_failure_inside_leaves_no_row(saver: LedgerSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call's row, its question and its events come together or not at all."""
    from langgraph_ext.ledger import calls

    app = line(saver, ask=asks("sure?"))

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(calls, "move", broken)
        with pytest.raises(RuntimeError, match="broken"):
            app.invoke({"log": []}, CONFIG, durability="sync")

    assert [] == saver.ledger.interrupts()
    assert ["run.started"] == list(names(saver.ledger.events()))
    assert ["running"] == statuses(saver)
    assert [] == saver.ledger.verify()


def test_l9_an_error_that_cannot_say_what_it_is_fails_its_run_and_loses_no_write(saver: LedgerSaver) -> None:
    class Mute(Boom):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def mute(state: State) -> dict[str, Any]:
        raise Mute

    tried(line(saver, a=mute))

    assert ("failed", "Mute") == (only_run(saver).status, only_run(saver).error_type)


# -- found by tests/property/test_ledger_against_langgraph.py


def test_l24_a_task_that_failed_and_asks_now_pauses_its_run(saver: LedgerSaver) -> None:
    fail = fails(1)

    def node(state: State) -> dict[str, Any]:
        return {**fail(state), **asks("sure?")(state)}

    app = line(saver, a=node)
    tried(app)
    assert ["failed"] == statuses(saver)
    app.invoke(None, CONFIG)

    assert ["paused"] == statuses(saver)


def test_l24_a_question_asked_again_behind_its_answer_pauses_no_run(saver: LedgerSaver) -> None:
    """A fork replayed at its own head asks anew, and LangGraph shows that; but the answer is stored, and is taken."""

    def node(state: State) -> dict[str, Any]:
        given = interrupt("sure?")
        first, answers[:] = not answers, [given]
        if first:
            raise Boom("answered")
        return {"log": [given]}

    answers: list[str] = []
    app = line(saver, a=says("a"), node=node)
    tried(app)
    app.invoke(None, app.get_state(CONFIG).config)
    answered(app)
    app.invoke(None, app.get_state(CONFIG).config)
    assert (["failed"], []) == (statuses(saver)[1:], saver.ledger.verify())
    assert ["sure?"] == [found.value for found in app.get_state(CONFIG).interrupts]
    app.invoke(None, CONFIG)

    assert ["yes"] == app.get_state(CONFIG).values["log"][-1:]
    assert ["succeeded"] == statuses(saver)[1:]


def test_l24_a_cancelled_task_leaves_a_question_open(saver: LedgerSaver) -> None:
    """One task asks, and another is cancelled because a third one fails: an answer takes the run on."""
    start = running(config())
    saver.put(start, checkpoint(cid(1), {"branch:to:ask": None}, {"branch:to:ask": 1}), metadata(0, "input"), {})
    place = running(config(id=cid(1)))
    saver.put_writes(place, [("__interrupt__", [Interrupt("sure?", id="i")])], "1", "~__pregel_pull, ask")
    saver.put_writes(place, [("__error__", asyncio.CancelledError())], "2", "~__pregel_pull, slow")

    assert ["paused"] == statuses(saver)
    assert ["i"] == [found.interrupt_id for found in saver.ledger.interrupts(pending=True)]


def test_l24_update_state_takes_the_open_questions_away(saver: LedgerSaver) -> None:
    """LangGraph asks them no more: the tasks begin anew, or there is nothing left to run."""
    app = line(saver, a=says("a"), ask=asks("sure?"))
    tried(app)
    app.update_state(CONFIG, {"log": ["edited"]}, as_node="a")
    assert (["idle"], []) == (statuses(saver), saver.ledger.interrupts(pending=True))
    app.invoke(None, CONFIG)
    assert ["superseded", "pending"] == [str(found.status) for found in saver.ledger.interrupts()]
    app.update_state(CONFIG, {"log": ["answered by hand"]}, as_node="ask")

    assert (["succeeded"], []) == (statuses(saver), saver.ledger.verify())


def test_l24_update_state_on_a_running_run_leaves_it_idle(saver: LedgerSaver) -> None:
    """A breakpoint or a killed process left it running; whoever runs it still is refused at the next checkpoint."""
    app = line(saver, a=says("a"), b=says("b"))
    tried(app, interrupt_after=["a"])
    assert ["running"] == statuses(saver)
    app.update_state(CONFIG, {"log": ["edited"]}, as_node="a")
    assert ["idle"] == statuses(saver)
    app.invoke(None, CONFIG)

    assert ["succeeded"] == statuses(saver)
    assert ["run.started", "run.stopped", "run.resumed", "run.succeeded"] == run_events(saver)


def test_l24_a_graph_begun_anew_voids_what_was_asked_deep_inside(saver: LedgerSaver) -> None:
    """Replayed at its own head, the middle graph runs `a` again, and the inner one is another task that asks anew."""
    inner = line(None, ask=asks("deep?"))
    app = line(saver, middle=line(None, a=says("a"), inner=inner))
    tried(app)
    for _ in range(2):  # the first makes a fork; the second begins its middle graph anew
        app.invoke(None, app.get_state(CONFIG).config)
    (shown,) = app.get_state(CONFIG).interrupts
    fork, _ = saver.ledger.runs()

    assert [shown.id] == [found.interrupt_id for found in saver.ledger.interrupts(run_id=fork.run_id, pending=True)]
    assert ["superseded", "pending"] == [str(found.status) for found in saver.ledger.interrupts(run_id=fork.run_id)]


def test_l24_a_parallel_graph_keeps_its_question_when_another_asks_anew(saver: LedgerSaver) -> None:
    """Two graphs below one checkpoint; only the one that goes on to its second question has its first one closed."""
    builder = StateGraph(State)
    builder.add_node("left", line(None, inner=line(None, ask=asks("l1", "l2"))))
    builder.add_node("right", line(None, inner=line(None, ask=asks("r1"))))
    app = builder.add_edge(START, "left").add_edge(START, "right").compile(checkpointer=saver)
    tried(app)
    ids = {found.value: found.interrupt_id for found in saver.ledger.interrupts(pending=True)}
    app.invoke(Command(resume={ids["l1"]: "yes"}), CONFIG)

    assert {"l2", "r1"} == {found.value for found in saver.ledger.interrupts(pending=True)}


def test_l47_an_old_question_answered_again_leaves_its_run_as_it_stands(saver: LedgerSaver) -> None:
    """Also where that run waits for another answer now."""
    app = line(saver, one=asks("one"), two=asks("two"))
    tried(app)
    asked = app.get_state(CONFIG).config
    answered(app)
    app.invoke(Command(resume="no"), asked)

    assert ["paused", "paused"] == statuses(saver)


def test_l47_an_edited_fork_that_asks_at_once_is_a_run(saver: LedgerSaver) -> None:
    """Its question and its visits are known though no checkpoint followed."""
    app = line(saver, a=says("a"), ask=asks("sure?"))
    tried(app)
    answered(app)
    at_ask = next(found.config for found in app.get_state_history(CONFIG) if found.next == ("ask",))
    app.invoke(None, app.update_state(at_ask, {"log": ["edited"]}))
    fork, first = saver.ledger.runs()

    assert ("paused", first.run_id) == (fork.status, fork.fork_of)
    assert ["ask"] == [found.node for found in saver.ledger.interrupts(run_id=fork.run_id, pending=True)]
    assert ["ask"] == [visit.node for visit in saver.ledger.visits(fork.run_id)]


@pytest.mark.parametrize(
    ("writes", "status"),
    [([("__interrupt__", [Interrupt("sure?", id="i")])], "paused"), ([("__error__", Boom("x"))], "failed")],
)
def test_l24_what_comes_before_its_checkpoint_is_recorded_with_it(saver: LedgerSaver, writes: Any, status: str) -> None:
    """Under durability `async` the put that begins a run may come after what its tasks did: it is that run's."""
    place = running(config(id=cid(1)))
    saver.put_writes(place, writes, "task", "~__pregel_pull, ask")
    assert [] == statuses(saver)
    start = running(config())
    saver.put(start, checkpoint(cid(1), {"branch:to:ask": None}, {"branch:to:ask": 1}), metadata(0, "input"), {})

    assert [status] == statuses(saver)
    assert (status == "paused") == bool(saver.ledger.interrupts(pending=True))
    assert [] == saver.ledger.verify()


# -- found by trying to break it


def test_s9_a_thread_deleted_while_its_run_goes_on_is_not_written_on(saver: LedgerSaver, durability: Any) -> None:
    """Whoever runs it is told; another thread's run is left alone, though it came in between."""
    other = {"configurable": {"thread_id": "other"}}
    asking = line(saver, ask=asks("sure?"))

    def delete(state: State) -> dict[str, Any]:
        saver.delete_thread("t")
        tried(asking, config=other)
        return {"log": ["deleted"]}

    tried(line(saver, a=says("a")), durability=durability)
    app = line(saver, a=says("a"), delete=delete, c=says("c"), d=says("d"))
    with pytest.raises(ConflictError, match="thread_deleted"):
        tried(app, durability=durability)

    assert [("other", "paused")] == [(run.thread_id, str(run.status)) for run in saver.ledger.runs()]
    assert ([], []) == (list(saver.list(CONFIG)), saver.ledger.verify())


def test_l24_a_copied_thread_that_asks_at_once_has_a_run(saver: LedgerSaver) -> None:
    app = line(saver, a=says("a"), ask=asks("sure?"))
    tried(app)
    saver.copy_thread("t", "copy")
    copy = {"configurable": {"thread_id": "copy"}}
    app.invoke(Command(resume="yes"), copy)

    assert [("copy", "succeeded")] == [(r.thread_id, str(r.status)) for r in saver.ledger.runs(thread_id="copy")]
    assert {"ask": "succeeded"} == outcomes(saver)


def test_l24_what_comes_of_a_checkpoint_of_no_run_is_that_runs(saver: LedgerSaver) -> None:
    """`update_state` behind an end, and the node that it starts asks."""
    app = line(saver, a=says("a"), ask=asks("sure?"))
    tried(app)
    answered(app)
    app.update_state(CONFIG, {"log": ["again"]}, as_node="a")
    app.invoke(None, CONFIG)

    assert ["succeeded", "paused"] == statuses(saver)
    assert {"ask": "paused"} == outcomes(saver)


def test_l9_a_second_failure_is_told_and_kept(saver: LedgerSaver) -> None:
    errors = iter([Boom("first"), KeyError("second")])

    def bad(state: State) -> dict[str, Any]:
        raise next(errors)

    app = line(saver, a=says("a"), bad=bad)
    tried(app)
    with pytest.raises(KeyError):
        app.invoke(None, CONFIG)

    assert "KeyError" == only_run(saver).error_type
    assert 2 == run_events(saver).count("run.failed")


def test_l9_a_run_that_failed_and_goes_on_is_running(saver: LedgerSaver, durability: Any) -> None:
    """What was remembered of it before it failed is doubted."""
    if durability == "exit":
        pytest.skip("under exit nothing is stored meanwhile")
    seen: list[str] = []

    def last(state: State) -> dict[str, Any]:
        next(event for event in saver.ledger.follow(idle_seconds=10) if event.name == "run.resumed")
        seen.extend(statuses(saver))
        return {"log": ["last"]}

    app = line(saver, a=says("a"), bad=fails(1), b=says("b"), c=says("c"), last=last)
    tried(app, durability=durability)
    tried(app, None, durability=durability)

    assert ["running"] == seen
    assert ["succeeded"] == statuses(saver)


def test_l54_a_graph_that_only_sends_is_settled(saver: LedgerSaver) -> None:
    """No branch was ever written; that its input was taken by a node says that it is a StateGraph."""
    builder = StateGraph(State).add_node("w", says("w"))
    builder.add_conditional_edges(START, lambda state: [Send("w", {"log": []}), Send("w", {"log": []})], ["w"])
    tried(builder.compile(checkpointer=saver))

    assert ["succeeded"] == statuses(saver)


@pytest.mark.parametrize("kind", ["\ud800", "x" * 1000, 7, "two\nlines"])
def test_l24_an_odd_kind_is_none(saver: LedgerSaver, kind: Any) -> None:
    tried(line(saver, ask=asks({"kind": kind})))

    assert [None] == [found.kind for found in saver.ledger.interrupts(pending=True)]


def test_s6_a_serde_of_ones_own_keeps_payloads_to_itself(backend: Any, tmp_path: Any) -> None:
    """Whatever it does: nobody but it knows whether it encrypts."""

    class Veiled(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            kind, data = super().dumps_typed(obj)
            return kind, bytes(byte ^ 255 for byte in data)

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return super().loads_typed((data[0], bytes(byte ^ 255 for byte in data[1])))

    saver = LedgerSaver(backend.url(), serde=Veiled())
    tried(line(saver, ask=asks({"kind": "secret kind", "q": "secret question"})), ("secret input",))
    tried(line(saver, ask=fails(1, "secret")), ("secret input",))
    assert ["secret question"] == [found.value["q"] for found in saver.ledger.interrupts()]
    saver.close()

    assert b"secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


def test_l47_whatever_names_are_taken_a_run_gets_one(saver: LedgerSaver) -> None:
    """Metadata's name and the checkpoint's belong to other runs: copies of a thread share its checkpoints' ids."""
    app = line(saver, a=says("a"), ask=asks("sure?"))
    tried(app)
    for name in ("one", "two", "three"):
        saver.copy_thread("t", name)
        app.invoke(Command(resume="yes"), {"configurable": {"thread_id": name}})

    assert 4 == len({run.run_id for run in saver.ledger.runs()})
    assert {"succeeded", "paused"} == set(statuses(saver))
