"""A14: LangChain's middleware around the models of an agent node, and what of it is refused."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest
from langchain.agents import middleware as shipped
from langchain.agents.middleware import AgentMiddleware, ModelResponse, dynamic_prompt, wrap_model_call
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langgraph_ext import AgentGraphEngine, AgentNode, Budget, LedgerSaver, with_ledger
from langgraph_ext.engine import Hook, Hooks, Limits
from langgraph_ext.engine.applying import operation_of
from langgraph_ext.engine.descriptors import hook_name
from langgraph_ext.errors import AgentRunFailed, BudgetExhausted
from langgraph_ext.testing import ScriptedChatModel, call, fails, hangs, say, tries
from tests.support.acted import Acts
from tests.support.apps import CONFIG, graph_of
from tests.support.driver import Form
from tests.support.reacting import Notes

BUSY = ModelRateLimitError("busy")


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, "sync", loop)


def scripted(*steps: Any, **options: Any) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(steps), **options)


def agent(model: Any, *middleware: Any, **more: Any) -> AgentNode:
    return AgentNode(name="support", model=model, middleware=middleware, **more)


def graph(acts: Acts, node: AgentNode) -> Any:
    return graph_of(node).compile(checkpointer=acts.saver)


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text) for text in texts]}


def texts(state: Any) -> list[str]:
    return [each.text for each in state["messages"]]


def sent(model: ScriptedChatModel, number: int = 0) -> list[str]:
    return [each["content"] for each in model.calls[number].messages]


def only_run(acts: Acts) -> Any:
    [run] = AgentGraphEngine(acts.saver.ledger).runs()
    return run


def calls_on_record(acts: Acts) -> list[tuple[str, str | None]]:
    """State and error of every physical call."""
    engine = AgentGraphEngine(acts.saver.ledger)
    found = [each for op in engine.operations(only_run(acts).agent_run_id) for each in op.calls]
    return [(str(each.state), (each.error or {}).get("code")) for each in found]


# -- what wraps a call


def in_either_form(form: str, act: Any) -> AgentMiddleware[Any, Any]:
    """A middleware with a `wrap_model_call` of one form alone: `act(request)` makes the requests to send, in turn."""

    class Sync(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            found = None
            for each in act(request):
                found = handler(each)
            return found

    class Async(AgentMiddleware[Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            found = None
            for each in act(request):
                found = await handler(each)
            return found

    return Sync() if form == "called" else Async()


EITHER = pytest.mark.parametrize("written", ["called", "awaited"])


def test_a14_a_dynamic_prompt_is_what_the_model_is_told(acts: Acts) -> None:
    @dynamic_prompt
    def prompt(request: Any) -> str:
        return f"{request.system_prompt} Messages: {len(request.messages)}."

    model = scripted(call("t", {"x": 1}), "done")
    app = graph(acts, agent(model, prompt, tools=[Notes().tool("t")], system_prompt="Be kind."))
    assert ["go", "", "1!", "done"] == texts(acts.run(app, said("go")))
    assert ["Be kind. Messages: 1.", "Be kind. Messages: 3."] == [sent(model, n)[0] for n in (0, 1)]
    assert 2 == only_run(acts).model_calls


@EITHER
def test_a14_each_call_that_a_middleware_makes_is_on_record_and_counts(acts: Acts, written: str) -> None:
    """Whichever form it is written in; what the first has used counts, though its answer does not."""
    model = scripted(tries(say("one", usage=(5, 1)), say("two", usage=(7, 2))))
    twice = in_either_form(written, lambda request: [request, request])
    assert ["go", "two"] == texts(acts.run(graph(acts, agent(model, twice)), said("go")))
    run = only_run(acts)
    assert (2, 12, 3) == (run.model_calls, run.tokens_in, run.tokens_out)
    assert [("failed", "asked_again"), ("settled", None)] == calls_on_record(acts)
    assert [] == acts.saver.ledger.verify()


@EITHER
def test_a14_a_limit_of_calls_holds_for_those_of_middlewares(acts: Acts, written: str) -> None:
    """What would be one too many is not made."""
    model = scripted(tries("one", "two"))
    twice = in_either_form(written, lambda request: [request, request])
    with pytest.raises(AgentRunFailed) as caught:
        acts.run(graph(acts, agent(model, twice, limits=Limits(model_calls=1))), said("go"))
    assert ("model_calls_exhausted", 1) == (caught.value.code, len(model.calls))


def test_a14_a_call_is_on_record_before_it_is_made(acts: Acts) -> None:
    """The model of a second call finds it there."""
    seen: list[int] = []
    model = scripted(tries(fails(BUSY), say("done", during=lambda: seen.append(only_run(acts).model_calls))))
    app = graph(acts, agent(model, shipped.ModelRetryMiddleware(max_retries=1, initial_delay=0.0)))
    assert ["go", "done"] == texts(acts.run(app, said("go")))
    assert ([2], [("failed", "call_failed"), ("settled", None)]) == (seen, calls_on_record(acts))


def test_a14_a_middleware_sees_what_the_model_has_raised(acts: Acts) -> None:
    """And what it raises on is what the engine has on record, as without it."""
    model = scripted(fails(BUSY))
    retry = shipped.ModelRetryMiddleware(max_retries=2, retry_on=(KeyError,), on_failure="error")
    with pytest.raises(AgentRunFailed, match="busy"):
        acts.run(graph(acts, agent(model, retry)), said("go"))
    assert [("settled", "call_failed")] == calls_on_record(acts)


def test_a14_another_model_is_called_if_the_first_fails(acts: Acts) -> None:
    model, other = scripted(fails(BUSY)), scripted("done")
    app = graph(acts, agent(model, shipped.ModelFallbackMiddleware(other)))
    assert ["go", "done"] == texts(acts.run(app, said("go")))
    assert (2, 1, 1) == (only_run(acts).model_calls, len(model.calls), len(other.calls))


def test_a14_a_refused_call_is_no_failure_for_a_middleware_to_mend(acts: Acts) -> None:
    """No other model is called past the budget of the graph's run; raised, the agent run goes on."""
    model, other = scripted(call("t", {"x": 1}), "done"), scripted("never")
    node = agent(model, shipped.ModelFallbackMiddleware(other), tools=[Notes().tool("t")])
    app = with_ledger(graph(acts, node), budget=Budget(turns=1))
    with pytest.raises(BudgetExhausted):
        acts.run(app, said("go"))
    assert (1, 0) == (len(model.calls), len(other.calls))
    [run] = acts.saver.ledger.runs(thread_id="t")
    acts.saver.ledger.raise_budget(run.run_id, turns=5)
    assert ("done", 0) == (texts(acts.run(app, None))[-1], len(other.calls))


def test_a14_tools_are_selected_by_a_model_whose_calls_count(acts: Acts) -> None:
    """It is on record before it is asked, and its tokens are counted."""
    notes = Notes()
    selector = scripted(call("ToolSelectionResponse", {"tools": ["b"]}, usage=(100, 10)))
    model = scripted(say("done", usage=(5, 1)))
    chosen = shipped.LLMToolSelectorMiddleware(model=selector)
    app = graph(acts, agent(model, chosen, tools=[notes.tool("a"), notes.tool("b")]))
    assert ["go", "done"] == texts(acts.run(app, said("go")))
    run = only_run(acts)
    assert (2, 105, 11) == (run.model_calls, run.tokens_in, run.tokens_out)
    assert [["b"]] == [each.tools for each in model.calls]


@EITHER
def test_a14_a_model_that_a_middleware_calls_itself_is_not_called_past_a_limit(acts: Acts, written: str) -> None:
    judge = scripted("fine")

    class Sync(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            found = handler(request)
            judge.invoke("is it?")
            return found

    class Async(AgentMiddleware[Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            found = await handler(request)
            await judge.ainvoke("is it?")
            return found

    node = agent(scripted("done"), Sync() if written == "called" else Async(), limits=Limits(model_calls=1))
    with pytest.raises(AgentRunFailed) as caught:
        acts.run(graph(acts, node), said("go"))
    assert ("model_calls_exhausted", 0) == (caught.value.code, len(judge.calls))


def test_a14_a_middleware_that_would_hold_the_loop_up_is_told_so(acts: Acts) -> None:
    judge = scripted("fine")

    class Blocks(AgentMiddleware[Any, Any]):
        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            judge.invoke("is it?")
            return await handler(request)

    with pytest.raises(AgentRunFailed, match="ainvoke"):
        acts.run(graph(acts, agent(scripted("done"), Blocks())), said("go"))
    assert [] == judge.calls


def test_a14_a_middleware_may_answer_itself_and_rewrite_answers(acts: Acts) -> None:
    """What it returns is the answer, under an id that stays."""

    @wrap_model_call
    async def loud(request: Any, handler: Any) -> Any:
        if request.messages[-1].text == "skip":
            return AIMessage("SKIPPED")
        response = await handler(request)
        return ModelResponse(result=[AIMessage(response.result[0].text.upper())])

    model = scripted(say("done", usage=(5, 1)))
    app = graph(acts, agent(model, loud))
    final = acts.run(app, said("go"))
    assert ["go", "DONE"] == texts(final)
    [entry] = AgentGraphEngine(acts.saver.ledger).transcript(only_run(acts).agent_run_id)[1:]
    assert (entry.message.id, 5) == (final["messages"][-1].id, only_run(acts).tokens_in)
    assert "SKIPPED" == texts(acts.run(app, said("skip")))[-1]
    assert 1 == len(model.calls)


def test_a14_middlewares_stand_around_each_other_as_they_are_listed(acts: Acts) -> None:
    def mark(name: str) -> Any:
        @wrap_model_call(name=name)
        async def marked(request: Any, handler: Any) -> Any:
            response = await handler(request.override(messages=[*request.messages, HumanMessage(name)]))
            return AIMessage(f"{name}({response.result[0].text})")

        return marked

    model = scripted("x")
    final = acts.run(graph(acts, agent(model, mark("outer"), mark("inner"))), said("go"))
    assert (["go", "outer(inner(x))"], ["go", "outer", "inner"]) == (texts(final), sent(model))


def test_a14_old_tool_results_may_be_left_out_of_a_request(acts: Acts) -> None:
    """The history keeps them."""
    model = scripted(call("t", {"x": 1}), call("t", {"x": 2}), "done")
    edits = [shipped.ClearToolUsesEdit(trigger=0, keep=1)]
    node = agent(model, shipped.ContextEditingMiddleware(edits=edits), tools=[Notes().tool("t")])
    final = acts.run(graph(acts, node), said("go"))
    assert ["1!", "2!"] == [each.text for each in final["messages"] if isinstance(each, ToolMessage)]
    assert ["go", "", "[cleared]", "", "2!"] == sent(model, 2)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda request: request.override(tools=[Notes().tool("other")]), "does not have: ..other"),
        (lambda request: request.override(response_format=dict), "response_format"),
        (lambda request: request.override(model="acme:one"), "no chat model"),
    ],
)
def test_a14_what_the_engine_does_not_do_for_a_middleware_fails_the_call(acts: Acts, change: Any, told: str) -> None:
    model = scripted("done")
    node = agent(model, in_either_form("awaited", lambda request: [change(request)]))
    with pytest.raises(AgentRunFailed, match=told):
        acts.run(graph(acts, node), said("go"))
    assert [] == model.calls


@EITHER
def test_a14_what_a_middleware_waits_for_ends_with_the_graph(acts: Acts, written: str) -> None:
    """Cancelled, its call is lost, and nothing of it runs on."""
    if acts.form == "sync":
        pytest.skip("a sync graph cannot be cancelled")
    model = scripted(hangs())
    node = agent(model, in_either_form(written, lambda request: (each for each in [request, request])))
    app = graph(acts, node)

    async def act() -> None:
        running = asyncio.ensure_future(app.ainvoke(said("go"), CONFIG))
        while not model.calls:
            assert not running.done(), running
            await asyncio.wait({running}, timeout=0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        left = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        if left:
            await asyncio.wait(left, timeout=5)
        assert [] == [each for each in left if not each.done()]

    acts.loop.run_until_complete(act())
    assert ("cancelled", 1) == (str(only_run(acts).status), len(model.calls))


# -- what looks at messages


def test_a14_what_is_private_is_not_sent_now_or_later(acts: Acts) -> None:
    """Not in the second turn either, though the history holds it; what was decided is stored."""
    model = scripted(call("t", {"x": 1}), "done", "again")
    tool = Notes().tool("t", lambda x: "ask joe@example.org")
    pii = shipped.PIIMiddleware("email", apply_to_tool_results=True)
    app = graph(acts, agent(model, pii, tools=[tool]))
    acts.run(app, said("I am ann@example.org"))
    acts.run(app, said("and now?"))
    assert not [each for n in range(3) for each in sent(model, n) if "@" in str(each)]
    assert ["I am [REDACTED_EMAIL]", "", "ask [REDACTED_EMAIL]", "done", "and now?"] == sent(model, 2)


def test_a14_what_is_private_in_an_answer_is_neither_kept_nor_streamed(acts: Acts) -> None:
    """Its tokens are not shown before it was looked at, the answer is."""
    model = scripted("write to ann@example.org")
    app = graph(acts, agent(model, shipped.PIIMiddleware("email", apply_to_output=True)))
    parts = [part for _, part in acts.stream(app, said("go"), ["messages"])]
    shown = [each for each, _ in parts if isinstance(each, AIMessage | AIMessageChunk)]
    assert ["write to [REDACTED_EMAIL]"] == [each.text for each in shown]


def test_a14_what_must_not_be_sent_is_not(acts: Acts) -> None:
    model = scripted("done")
    with pytest.raises(AgentRunFailed, match="PIIDetectionError"):
        acts.run(graph(acts, agent(model, shipped.PIIMiddleware("email", strategy="block"))), said("ann@example.org"))
    assert [] == model.calls


class Last(AgentMiddleware[Any, Any]):
    """Sends the last messages alone, and says in answers how many there were."""

    def before_model(self, state: Any, runtime: Any) -> Any:
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *state["messages"][-2:]]}

    async def aafter_model(self, state: Any, runtime: Any) -> Any:
        *before, answer = state["messages"]
        return {"messages": [answer.model_copy(update={"content": f"{answer.text} ({len(before)})"})]}


def test_a14_hooks_of_a_middleware_change_what_is_sent_and_what_counts(acts: Acts) -> None:
    model = scripted("done")
    app = graph(acts, agent(model, Last(), system_prompt="Be kind."))
    assert ["a", "b", "c", "done (2)"] == texts(acts.run(app, said("a", "b", "c")))
    assert ["Be kind.", "b", "c"] == sent(model)


def test_a14_what_a_hook_has_decided_is_not_asked_again(acts: Acts) -> None:
    """The agent's own hooks stand around it; each decision is on record."""
    asked: list[str] = []

    class Notes(AgentMiddleware[Any, Any]):
        async def abefore_model(self, state: Any, runtime: Any) -> Any:
            asked.append("middleware")

    async def own(request: Any) -> None:
        asked.append("own")

    app = with_ledger(graph(acts, agent(scripted("done"), Notes(), hooks=Hooks(before_model=[own]))))
    acts.run(app, said("go"))
    [made] = AgentGraphEngine(acts.saver.ledger).operations(only_run(acts).agent_run_id)
    operation = acts.saver.database.read(lambda tx: operation_of(tx, made.operation_id))
    allowed = [{"hook": each, "decision": "allowed"} for each in (hook_name(Hook(call=own)), "Notes")]
    assert (["own", "middleware"], allowed) == (asked, operation.before)


@pytest.mark.parametrize(
    ("update", "told"), [({"jump_to": "end"}, "jump_to"), ({"todos": []}, "todos"), ("text", "no dict")]
)
def test_a14_a_hook_that_wants_more_than_messages_denies_the_call(acts: Acts, update: Any, told: str) -> None:
    class More(AgentMiddleware[Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> Any:
            return update

    model = scripted("done")
    with pytest.raises(AgentRunFailed, match=told):
        acts.run(graph(acts, agent(model, More())), said("go"))
    assert [] == model.calls


def test_a14_a_hook_of_a_middleware_calls_no_model(acts: Acts) -> None:
    """No call could be put on record there; it is refused before it is made."""
    judge = scripted("fine")

    class Judges(AgentMiddleware[Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> Any:
            judge.invoke("is it?")

    with pytest.raises(AgentRunFailed, match="Judges"):
        acts.run(graph(acts, agent(scripted("done"), Judges())), said("go"))
    assert [] == judge.calls


def test_a14_tools_of_a_middleware_are_the_agents(acts: Acts) -> None:
    notes = Notes()

    class Brings(AgentMiddleware[Any, Any]):
        def __init__(self) -> None:
            self.tools = [notes.tool("b")]

    app = graph(acts, agent(scripted(call("b", {"x": 1}), "done"), Brings()))
    assert (["go", "", "1!", "done"], [("b", 1)]) == (texts(acts.run(app, said("go"))), notes)


class Who(NamedTuple):
    name: str


def test_a14_a_middleware_is_given_the_graphs_runtime(acts: Acts) -> None:
    """Its context among it, wherever the middleware is asked."""
    seen: list[Any] = []

    class Looks(AgentMiddleware[Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            seen.append(runtime.context)

        async def aafter_model(self, state: Any, runtime: Any) -> None:
            seen.append(runtime.context)

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append(request.runtime.context)
            return await handler(request)

    builder: Any = StateGraph(MessagesState, context_schema=Who)
    node = agent(scripted("done"), Looks())
    app = builder.add_node(node).set_entry_point("support").compile(checkpointer=acts.saver)
    acts.run(app, said("go"), context=Who("ann"))
    assert 3 * [Who("ann")] == seen
