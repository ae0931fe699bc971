"""A1 to A5, A7, A8, A12, A15: a durable agent as a node of an ordinary graph."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage, convert_to_openai_messages
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, Send
from pydantic import BaseModel

from langgraph_ext import AgentGraphEngine, AgentNode, Budget, LedgerSaver, canonical, with_ledger
from langgraph_ext.engine import Compaction, Limits
from langgraph_ext.engine.program import NotKnown
from langgraph_ext.errors import AdmissionError, AgentRunFailed, BudgetExhausted, InvalidArgument
from langgraph_ext.testing import ScriptedChatModel, call, calls, fails, say, tries
from tests.support.acted import Acts
from tests.support.apps import CONFIG, graph_of
from tests.support.driver import Form
from tests.support.message_rules import openai_faults
from tests.support.reacting import Notes

APPROVE = {"decisions": [{"type": "approve"}]}


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, durability: str, loop: asyncio.AbstractEventLoop) -> Acts:
    """In both forms, under every durability."""
    return Acts(saver, form, durability, loop)


@pytest.fixture
def lasting(acts: Acts) -> Acts:
    """Where attempts are on record."""
    if acts.durability == "exit":
        pytest.skip("under exit no attempt is on record")
    return acts


def agent(script: Sequence[Any], *tools: Any, name: str = "support", **more: Any) -> AgentNode:
    return AgentNode(name=name, model=ScriptedChatModel(script=list(script)), tools=tools, **more)


def graph(saver: Any, *nodes: Any, state: Any = MessagesState, **options: Any) -> Any:
    """A graph of these nodes, one after the other."""
    builder: Any = StateGraph(state)
    before = START
    for node in nodes:
        builder.add_node(node, **options)
        builder.add_edge(before, node.name)
        before = node.name
    return builder.add_edge(before, END).compile(checkpointer=saver)


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text) for text in texts]}


def texts(state: Any) -> list[tuple[str, str]]:
    return [(each.type, each.text) for each in state["messages"]]


def question(state: Any) -> Any:
    [asked] = state["__interrupt__"]
    return asked.value


def engine_of(acts: Acts) -> AgentGraphEngine:
    return AgentGraphEngine(acts.saver.ledger)


def check_history(messages: Sequence[AnyMessage]) -> None:
    """One result for each tool call, right behind its decision: what OpenAI and Anthropic ask for."""
    assert [] == openai_faults(convert_to_openai_messages(messages))


# -- A1, A7, A15


def test_a1_a15_an_agent_is_a_node_that_appends_messages(acts: Acts) -> None:
    """With its own name; what it returns is what it has added, with ids that stay."""
    notes = Notes()
    app = graph(acts.saver, agent([call("t", {"x": 1}), "done"], notes.tool("t")))
    final = acts.run(app, said("go"))
    assert [("human", "go"), ("ai", ""), ("tool", "1!"), ("ai", "done")] == texts(final)
    assert ("support", [("t", 1)]) == (agent(["x"]).get_name(), notes)
    [run] = engine_of(acts).runs()
    entries = engine_of(acts).transcript(run.agent_run_id)
    assert [each.id for each in final["messages"]] == [each.message.id for each in entries]
    assert [] == acts.saver.ledger.verify()


def test_a1_one_question_suspends_the_graph_and_an_answer_goes_on(acts: Acts) -> None:
    notes = Notes()
    node = agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True})
    app = graph(acts.saver, node)
    asked = question(acts.run(app, said("go")))
    assert ("approval", "support", [{"x": 1}]) == (
        asked["kind"],
        asked["agent"],
        [each["args"] for each in asked["action_requests"]],
    )
    assert [] == notes
    final = acts.run(app, Command(resume=APPROVE))
    assert (("ai", "done"), [("t", 1)]) == (texts(final)[-1], notes)
    check_history(final["messages"])


def test_a1_several_questions_are_asked_one_after_the_other(acts: Acts) -> None:
    """Each with an interrupt id of its own."""
    notes = Notes()
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), call("t", {"x": 3}), "done"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), interrupt_on={"t": True}))
    found = acts.run(app, said("go"))
    ids = []
    while "__interrupt__" in found:
        ids.append(found["__interrupt__"][0].id)
        found = acts.run(app, Command(resume=APPROVE))
    assert (3, 3, [("t", 1), ("t", 2), ("t", 3)]) == (len(ids), len(set(ids)), notes)
    assert ("ai", "done") == texts(found)[-1]


def test_a15_a_second_turn_goes_on_with_the_conversation(acts: Acts) -> None:
    """Of the model it is sent the whole of it; each turn is an agent run of its own."""
    model = ScriptedChatModel(script=["one", "two"])
    app = graph(acts.saver, AgentNode(name="support", model=model))
    acts.run(app, said("first"))
    assert [("human", "first"), ("ai", "one"), ("human", "second"), ("ai", "two")] == texts(
        acts.run(app, said("second"))
    )
    assert ["first", "one", "second"] == [each["content"] for each in model.calls[1].messages]
    assert 2 == len(engine_of(acts).runs())


class Answer(BaseModel):
    number: int


class Rich(MessagesState):
    structured_response: Any
    agent_runs: Annotated[list[str], operator.add]


def test_a1_keys_that_the_graph_has_are_filled(acts: Acts) -> None:
    node = agent(['{"number": 7}'], response_format=Answer)
    final = acts.run(graph(acts.saver, node, state=Rich), said("go"))
    [run] = engine_of(acts).runs()
    assert ({"number": 7}, [run.agent_run_id]) == (final["structured_response"], final["agent_runs"])
    other: Any = {"configurable": {"thread_id": "other"}}
    plain = acts.run(graph(acts.saver, agent(['{"number": 7}'], response_format=Answer)), said("go"), other)
    assert {"messages"} == set(plain)


class Topic(TypedDict):
    topic: str
    note: str


def test_a1_input_and_output_are_the_callers(acts: Acts) -> None:
    node = agent(
        ["fine"],
        input=lambda state: f"about {state['topic']}",
        output=lambda result: {"note": f"{result.output} after {len(result.messages)}"},
    )
    final = acts.run(graph(acts.saver, node, state=Topic), {"topic": "tea"})
    assert "fine after 1" == final["note"]


def test_a1_what_cannot_be_is_told_where_it_is_made(acts: Acts) -> None:
    for wrong in ({"name": ""}, {"on_failure": "ignore"}, {"strategy": object()}):
        with pytest.raises(InvalidArgument):
            AgentNode(**{"name": "a", "model": ScriptedChatModel(script=["x"]), **wrong})
    with pytest.raises(AdmissionError, match="LedgerSaver"):
        agent(["x"]).invoke(said("go"))
    with pytest.raises(AdmissionError, match="LedgerSaver"):
        acts.run(graph(InMemorySaver(), agent(["x"])), said("go"))
    with pytest.raises(InvalidArgument, match="nothing to begin with"):
        acts.run(graph(acts.saver, agent(["x"])), {"messages": []})


def test_a7_tokens_are_seen_in_the_parents_stream_with_the_ids_that_are_stored(acts: Acts) -> None:
    """Without `subgraphs=True`, at the node; each answer once."""
    app = graph(acts.saver, agent([call("t", {"x": 1}), say("one two three")], Notes().tool("t")))
    parts = acts.stream(app, said("go"), ["messages", "updates"])
    pieces = [part for mode, part in parts if mode == "messages"]
    [update] = [part for mode, part in parts if mode == "updates"]
    assert {"support"} == {about["langgraph_node"] for _, about in pieces}
    stored = update["support"]["messages"]
    last = [piece for piece, _ in pieces if piece.id == stored[-1].id]
    assert len(last) > 1
    assert "one two three" == "".join(piece.text for piece in last)
    assert {each.id for each in stored} == {piece.id for piece, _ in pieces}


def test_a7_events_of_the_engine_are_in_the_custom_stream(acts: Acts) -> None:
    """Each once, in their order, over a pause; and what tools write besides."""
    notes = Notes()
    node = agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True})
    app = graph(acts.saver, node)
    first = [part for mode, part in acts.stream(app, said("go"), ["custom"]) if mode == "custom"]
    second = [part for _, part in acts.stream(app, Command(resume=APPROVE), ["custom"])]
    [run] = engine_of(acts).runs()
    told = [each for each in (*first, *second) if each.get("type") == "agent_event"]
    assert {run.agent_run_id} == {each["agent_run_id"] for each in told}
    seqs = [each["seq"] for each in told]
    assert sorted(set(seqs)) == seqs
    names = [each["name"] for each in told]
    assert "request.opened" in [each["name"] for each in first]
    assert "agent.succeeded" == [each for each in names if each.startswith("agent.")][-1]


def test_a7_tool_calls_are_in_the_tools_stream(acts: Acts) -> None:
    app = graph(acts.saver, agent([call("t", {"x": 1}), "done"], Notes().tool("t")))
    parts = [part for mode, part in acts.stream(app, said("go"), ["tools"]) if mode == "tools"]
    assert parts
    assert {"t"} == {part.get("tool_name", part.get("name")) for part in parts if "finish" not in str(part)}


def test_a7_summaries_are_not_in_the_stream(acts: Acts) -> None:
    summaries = ScriptedChatModel(script=["a secret summary"], by=lambda _: 0)
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), "done"]
    notes = Notes()
    node = AgentNode(
        name="support",
        model=ScriptedChatModel(script=steps, by=lambda _: len(notes)),  # its history is cut
        tools=[notes.tool("t", lambda x: "word " * 60)],
        compaction=Compaction(soft_tokens=60, model=summaries),
    )
    app = graph(acts.saver, node)
    pieces = [part for mode, part in acts.stream(app, said("go"), ["messages"]) if mode == "messages"]
    assert summaries.calls
    assert not [piece for piece, _ in pieces if "secret" in piece.text]


# -- A2, A3


@pytest.mark.parametrize(
    "bad", ["yes", {"decisions": []}, {"request_id": "approval:other", **APPROVE}, {"decisions": [{"type": "maybe"}]}]
)
def test_a3_scenario_20_a_malformed_answer_is_asked_again(acts: Acts, bad: Any) -> None:
    """With what was wrong; the thread is not wedged, and a good answer goes on."""
    notes = Notes()
    app = graph(acts.saver, agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True}))
    first = question(acts.run(app, said("go")))
    again = question(acts.run(app, Command(resume=bad)))
    assert again.pop("error").startswith("nothing was decided")
    assert (first, []) == (again, notes)
    final = acts.run(app, Command(resume={"request_id": first["request_id"], **APPROVE}))
    assert (("ai", "done"), [("t", 1)]) == (texts(final)[-1], notes)


def test_a2_a_question_that_was_answered_elsewhere_takes_no_answer(acts: Acts) -> None:
    """What somebody resumes with then is drained: it is not the answer to the next question."""
    notes = Notes()
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), "done"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), interrupt_on={"t": True}))
    first = question(acts.run(app, said("go")))
    engine = engine_of(acts)
    engine.answer(first["agent_run_id"], first["request_id"], {"decisions": [{"type": "reject"}]})
    second = question(acts.run(app, Command(resume=APPROVE)))
    assert ([{"x": 2}], []) == ([each["args"] for each in second["action_requests"]], notes)
    acts.run(app, Command(resume=APPROVE))
    assert [("t", 2)] == notes


def test_scenario_7_approve_reject_and_edit_through_the_node(acts: Acts) -> None:
    notes = Notes()
    steps = [calls(*(call("t", {"x": x}) for x in (1, 2, 3))), "done", "again"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), interrupt_on={"t": True}))
    acts.run(app, said("go"))
    edited = {"type": "edit", "edited_action": {"name": "t", "args": {"x": 33}}}
    decisions = [{"type": "approve"}, {"type": "reject", "message": "no"}, edited]
    final = acts.run(app, Command(resume={"decisions": decisions}))
    assert [("t", 1), ("t", 33)] == sorted(notes)
    check_history(final["messages"])
    check_history(acts.run(app, said("and now?"))["messages"])


# -- A4


def test_a4_a_retry_behind_a_failure_is_another_agent_run_that_knows_what_was_done(lasting: Acts) -> None:
    """Numbered; the first one's decision and result are its history, so that nothing is done twice."""
    notes = Notes()

    model = ScriptedChatModel(script=[call("t", {"x": 1}), tries(fails(ValueError("gone")), "done")])
    node = AgentNode(name="support", model=model, tools=[notes.tool("t")])
    policy = RetryPolicy(max_attempts=2, initial_interval=0.01, retry_on=AgentRunFailed)
    app = graph(lasting.saver, node, retry_policy=policy)
    final = lasting.run(app, said("go"))
    assert [("human", "go"), ("ai", ""), ("tool", "1!"), ("ai", "done")] == texts(final)
    assert ([("t", 1)], ["failed", "succeeded"]) == (
        notes,
        [each.status for each in reversed(engine_of(lasting).runs())],
    )


def test_a4_a_failure_is_an_error_of_the_node_and_the_next_turn_knows_of_it(acts: Acts) -> None:
    notes = Notes()
    steps = [call("t", {"x": 1}), fails(ValueError("gone"))]
    app = graph(acts.saver, agent(steps, notes.tool("t")))
    with pytest.raises(AgentRunFailed) as failed:
        acts.run(app, said("go"))
    assert "model_call_failed" == failed.value.code
    if acts.durability == "exit":
        return
    model = ScriptedChatModel(script=[call("t", {"x": 1}), "sorry"])
    app = graph(acts.saver, AgentNode(name="support", model=model, tools=[notes.tool("t")]))
    final = acts.run(app, said("what happened?"))
    assert ("ai", "sorry") == texts(final)[-1]
    sent = [each["content"] for each in model.calls[-1].messages]
    assert ["go", "", "1!", "what happened?"] == sent
    check_history(final["messages"])
    assert {"go", "", "1!", "what happened?", "sorry"} == {text for _, text in texts(final)}


def test_a4_or_an_answer_that_says_so(acts: Acts) -> None:
    model = ScriptedChatModel(script=[fails(ValueError("gone"))])
    app = graph(acts.saver, AgentNode(name="support", model=model, on_failure="return"))
    final = acts.run(app, said("go"))
    kind, text = texts(final)[-1]
    assert "ai" == kind
    assert "gone" in text


def test_scenario_15_instances_under_send_do_not_mix(acts: Acts) -> None:
    """Five at once, one of which asks; and again in a later turn."""
    notes = Notes()

    class Many(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        topics: list[int]

    def by_topic(messages: list[Any]) -> str:
        """They run side by side."""
        topic = next(each.text for each in messages if each.type == "human")
        return f"{topic}:{sum(each.type == 'tool' for each in messages)}"

    script = {}
    for topic in (*range(1, 6), *range(11, 16)):
        script[f"{topic}:0"] = call("t" if topic % 5 else "u", {"x": topic})
        script[f"{topic}:1"] = say(f"{topic}: {topic}!")
    model = ScriptedChatModel(script=script, by=by_topic)
    tools = [notes.tool("t"), notes.tool("u")]
    node = AgentNode(name="support", model=model, tools=tools, interrupt_on={"u": True})
    builder = StateGraph(Many)
    builder.add_node(node)
    builder.add_conditional_edges(
        START, lambda state: [Send("support", said(str(topic))) for topic in state["topics"]], ["support"]
    )
    app = builder.compile(checkpointer=acts.saver)
    for turn in (0, 10):
        topics = [turn + number for number in range(1, 6)]
        found = acts.run(app, {"topics": topics})
        assert [{"x": turn + 5}] == [each["args"] for each in question(found)["action_requests"]]
        final = acts.run(app, Command(resume=APPROVE))
        answered = {each.text for each in final["messages"] if each.type == "ai" and each.text}
        assert {f"{topic}: {topic}!" for topic in topics} <= answered
    assert sorted(x for _, x in notes) == [*range(1, 6), *range(11, 16)]


def test_a15_an_agent_in_a_subgraph_asks_through_it(acts: Acts) -> None:
    notes = Notes()
    node = agent([call("t", {"x": 1}), "done"], notes.tool("t"), interrupt_on={"t": True})
    outer: Any = StateGraph(MessagesState)
    outer.add_node("inner", graph_of(node).compile())
    outer.add_edge(START, "inner")
    app = outer.compile(checkpointer=acts.saver)
    acts.run(app, said("go"))
    final = acts.run(app, Command(resume=APPROVE))
    assert (("ai", "done"), [("t", 1)]) == (texts(final)[-1], notes)


# -- A5: its place in the ledger


def test_a5_the_ledger_knows_whose_run_it_is(lasting: Acts) -> None:
    """The child run, by the attempt that has started it; that says how it ended."""
    app = graph(lasting.saver, agent([call("t", {"x": 1}), "done"], Notes().tool("t")))
    lasting.run(app, said("go"))
    ledger = lasting.saver.ledger
    [run] = ledger.runs(thread_id="t")
    [child] = [each for each in ledger.runs() if each.parent_run_id == run.run_id]
    [attempt] = ledger.attempts(run.run_id)
    [agent_run] = engine_of(lasting).runs()
    assert (agent_run.agent_run_id, attempt.attempt_id, "succeeded") == (
        child.run_id,
        child.parent_attempt_id,
        child.status,
    )
    assert ("agent", "succeeded", 1) == (attempt.kind, attempt.status, attempt.number)


def test_a12_calls_count_in_the_budget_of_the_graphs_run(lasting: Acts) -> None:
    """A refused call is not made, and is made when the budget was raised; what was done is not done again."""
    notes = Notes()
    model = ScriptedChatModel(script=[call("t", {"x": 1}), "done"])
    built = graph(lasting.saver, AgentNode(name="support", model=model, tools=[notes.tool("t")]))
    app = with_ledger(built, budget=Budget(turns=1))
    with pytest.raises(BudgetExhausted):
        lasting.run(app, said("go"))
    ledger = lasting.saver.ledger
    lasting.saver.database.transact(lambda tx: None)  # behind what was queued before
    [run] = ledger.runs(thread_id="t")
    assert ("budget_exhausted", [("t", 1)], 1) == (run.status, notes, len(model.calls))
    ledger.raise_budget(run.run_id, turns=5)
    final = lasting.run(app, None)
    assert (("ai", "done"), [("t", 1)], 2) == (texts(final)[-1], notes, len(model.calls))
    assert 2 == sum(each.kind == "model" for each in ledger.calls(run.run_id))


def test_a6_at_a_limit_a_person_is_asked_through_the_graph(acts: Acts) -> None:
    """As of an approval; a rejection is the node's failure."""
    notes = Notes()
    steps = [call("t", {"x": 1}), call("t", {"x": 2}), "done"]
    app = graph(acts.saver, agent(steps, notes.tool("t"), limits=Limits(model_calls=1, on_limit="ask")))
    asked = question(acts.run(app, said("go")))
    assert ("limit", {"limit": "model_calls", "to": 2}) == (asked["kind"], asked["action_requests"][0]["args"])
    again = question(acts.run(app, Command(resume=APPROVE)))
    assert asked["request_id"] != again["request_id"]
    with pytest.raises(AgentRunFailed) as failed:
        acts.run(app, Command(resume={"decisions": [{"type": "reject"}]}))
    assert "model_calls_exhausted" == failed.value.code
    assert [("t", 1), ("t", 2)] == notes


def test_a6_or_the_agent_finishes_with_what_there_is(acts: Acts) -> None:
    notes = Notes()
    node = agent([call("t", {"x": 1}), "done"], notes.tool("t"), limits=Limits(model_calls=1, on_limit="finish"))
    final = acts.run(graph(acts.saver, node), said("go"))
    assert [("human", "go"), ("ai", ""), ("tool", "1!")] == texts(final)[:3]
    assert "limits.model_calls is 1" in texts(final)[-1][1]
    check_history(final["messages"])


# -- A8


def test_a8_scenario_8_a_cancelled_graph_leaves_a_valid_history(saver: LedgerSaver, loop: Any, form: Form) -> None:
    """The finished sibling's result is kept, the other's is closed, and the next turn goes on with both."""
    if form == "sync":
        pytest.skip("a sync graph cannot be cancelled")
    begun = asyncio.Event()
    done: list[str] = []

    async def quick() -> str:
        """Be quick."""
        done.append("quick")
        return "was quick"

    async def slow() -> str:
        """Be slow."""
        begun.set()
        await asyncio.sleep(60)
        return "was slow"

    model = ScriptedChatModel(script=[calls(call("quick"), call("slow")), "never", "hello"])
    app = graph(saver, AgentNode(name="support", model=model, tools=[quick, slow]))
    engine = AgentGraphEngine(saver.ledger)

    async def cancelled() -> None:
        running = asyncio.ensure_future(app.ainvoke(said("go"), CONFIG))
        await begun.wait()
        [agent_run] = await engine.aruns()
        while "settled" not in [each.state for each in await engine.aslots(agent_run.agent_run_id)]:
            assert not running.done(), running
            await asyncio.sleep(0.005)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    loop.run_until_complete(cancelled())
    [run] = engine.runs()
    assert "cancelled" == run.status
    final = loop.run_until_complete(app.ainvoke(said("and now?"), CONFIG))
    check_history(final["messages"])
    told = {each.name: each.text for each in final["messages"] if each.type == "tool"}
    assert ("was quick", ["quick"]) == (told["quick"], done)
    assert "slow" in told
    assert ["human", "ai", "tool", "tool", "human"] == [each["type"] for each in model.calls[-1].messages]


# -- A10


def test_a10_a_call_in_doubt_is_asked_about(lasting: Acts) -> None:
    """A person says what came of it, and the agent goes on with that."""
    payments: list[int] = []

    async def pay(x: int) -> str:
        """Pay."""
        payments.append(x)
        raise NotKnown("it took too long")

    steps: list[Any] = [call("pay", {"x": 1}), "done"]
    app = graph(lasting.saver, agent(steps, pay))
    asked = question(lasting.run(app, said("go")))
    assert ("doubt", [{"x": 1}]) == (asked["kind"], [each["args"] for each in asked["action_requests"]])
    again = question(lasting.run(app, Command(resume={"decisions": [{"type": "edit"}]})))
    assert "error" in again
    final = lasting.run(app, Command(resume={"decisions": [{"type": "respond", "message": "paid"}]}))
    assert [("tool", "paid"), ("ai", "done")] == texts(final)[-2:]
    assert [1] == payments


@pytest.mark.parametrize(("decision", "result", "made"), [("approve", "paid", 2), ("reject", "outcome_unknown", 1)])
def test_a10_or_has_it_called_again_or_left(lasting: Acts, decision: str, result: str, made: int) -> None:
    payments: list[int] = []

    async def pay(x: int) -> str:
        """Pay."""
        payments.append(x)
        if len(payments) == 1:
            raise NotKnown("it took too long")
        return "paid"

    app = graph(lasting.saver, agent([call("pay", {"x": 1}), "done"], pay))
    lasting.run(app, said("go"))
    final = lasting.run(app, Command(resume={"decisions": [{"type": decision}]}))
    assert texts(final)[-2][1].startswith(result)
    assert made == len(payments)


# -- A11


class Cart(MessagesState):
    user: str
    cart: Annotated[list[str], operator.add]


@dataclass
class Shop:
    currency: str


def test_a11_langgraphs_injections_work_and_the_model_sees_none_of_them(acts: Acts) -> None:
    """State, a field of it, the store, the runtime with context and writer, the call's id; what a model supplies for
    them is dropped."""
    seen: dict[str, Any] = {}

    @tool
    async def look(
        x: int,
        state: Annotated[dict[str, Any], InjectedState],
        user: Annotated[str, InjectedState("user")],
        store: Annotated[BaseStore, InjectedStore],
        runtime: ToolRuntime[Shop, Any],
        call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Look."""
        await store.aput(("seen",), "x", {"x": x})
        runtime.stream_writer({"looked": x})
        seen.update(
            state=sorted(state), user=user, currency=runtime.context.currency, call_id=(call_id, runtime.tool_call_id)
        )
        return f"{x}"

    model = ScriptedChatModel(script=[call("look", {"x": 1, "user": "mallory", "state": {}}), "done"])
    builder: Any = StateGraph(Cart, context_schema=Shop)
    builder.add_node(AgentNode(name="support", model=model, tools=[look]))
    builder.add_edge(START, "support")
    store = InMemoryStore()
    app = builder.compile(checkpointer=acts.saver, store=store)
    given = {**said("go"), "user": "alice"}
    final = acts.run(app, given, context=Shop("EUR"))
    assert ("ai", "done") == texts(final)[-1]
    assert {"user": "alice", "currency": "EUR", "call_id": ("call-0-0", "call-0-0")}.items() <= seen.items()
    assert "messages" in seen["state"]
    item = store.get(("seen",), "x")
    assert item is not None
    assert {"x": 1} == item.value
    [shown] = acts.saver.database.read(_release)["tools"].values()
    assert (["x"], ["call_id", "runtime", "state", "store", "user"]) == (
        list(shown["arguments"]["properties"]),
        shown["injected"],
    )


def test_a11_a_tool_may_return_a_command(acts: Acts) -> None:
    """Its update is the node's, and its message the call's result."""

    @tool
    def put(item: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Put something into the cart."""
        return Command(update={"cart": [item], "messages": [ToolMessage(f"put {item}", tool_call_id=call_id)]})

    node = agent([calls(call("put", {"item": "tea"}), call("put", {"item": "milk"})), "done"], put)
    final = acts.run(graph(acts.saver, node, state=Cart), said("go"))
    assert (["tea", "milk"], ("ai", "done")) == (final["cart"], texts(final)[-1])
    assert ["put tea", "put milk"] == [each.text for each in final["messages"] if each.type == "tool"]
    check_history(final["messages"])


def test_a11_a_command_that_leads_elsewhere_ends_the_agent(acts: Acts) -> None:
    """No model is asked any more; the graph goes where it says."""

    @tool
    def hand_over(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Hand over to billing."""
        return Command(goto="billing", update={"messages": [ToolMessage("handed over", tool_call_id=call_id)]})

    model = ScriptedChatModel(script=[call("hand_over")])
    builder: Any = StateGraph(MessagesState)
    builder.add_node(AgentNode(name="support", model=model, tools=[hand_over]), destinations=("billing",))
    builder.add_node("billing", lambda state: {"messages": [AIMessage("billing here")]})
    builder.add_edge(START, "support")
    final = acts.run(builder.compile(checkpointer=acts.saver), said("go"))
    assert [("tool", "handed over"), ("ai", "billing here")] == texts(final)[-2:]
    assert 1 == len(model.calls)


def test_a11_return_direct_ends_with_the_tools_result(acts: Acts) -> None:
    notes = Notes()
    app = graph(acts.saver, agent([call("t", {"x": 1})], notes.tool("t", return_direct=True)))
    assert ("tool", "1!") == texts(acts.run(app, said("go")))[-1]


def _release(tx: Any) -> Any:
    [row] = tx._execute("SELECT descriptor FROM agent_release", {}).fetchall()
    return canonical.decode(row["descriptor"])
