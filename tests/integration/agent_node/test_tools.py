"""A11: LangGraph's own in the tools of an agent."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from langgraph_ext import AgentNode, canonical
from langgraph_ext.testing import ScriptedChatModel, call, calls
from tests.support.acted import Acts
from tests.support.agent_nodes import agent, check_history, graph, said, texts
from tests.support.reacting import Notes


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
