"""A15: an agent node in a notebook: a real kernel, whose cells run in a loop, and which is restarted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

CELLS = '''
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from langgraph_ext import AgentNode, LedgerSaver
from langgraph_ext.testing import ScriptedChatModel, call

def pay(order: str) -> str:
    """Pay."""
    with open("effects", "a") as file:
        print("pay", order, file=file)
    return f"paid {order}"

model = ScriptedChatModel(script=[call("pay", {"order": "a"}), "It is paid."])
builder = StateGraph(MessagesState)
builder.add_node(AgentNode(name="clerk", model=model, tools=[pay], interrupt_on={"pay": True}))
builder.add_edge(START, "clerk")
app = builder.compile(checkpointer=LedgerSaver("runs.db"))
config = {"configurable": {"thread_id": "t"}}
approve = Command(resume={"decisions": [{"type": "approve"}]})
'''


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or importlib.util.find_spec("ipykernel") is None,
    reason="no notebooks here: pip install nbclient ipykernel, which are no part of the extra dev",
)
@pytest.mark.parametrize("cell", ["(await app.ainvoke({}, config))", "app.invoke({}, config)"], ids=["async", "sync"])
def test_a15_asked_in_one_kernel_and_answered_in_the_next(tmp_path: Path, cell: str) -> None:
    asks = cell.format('{"messages": [HumanMessage("Pay a.")]}')
    assert "approval" in told(tmp_path, CELLS, f'{asks}["__interrupt__"][0].value["kind"]')
    assert "It is paid." in told(tmp_path, CELLS, f'{cell.format("approve")}["messages"][-1].text')
    assert "pay a\n" == (tmp_path / "effects").read_text()


def told(folder: Path, *cells: str) -> str:
    """What the last of these cells showed, in a kernel of their own."""
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    return str(notebook.cells[-1].outputs[-1]["data"]["text/plain"])
