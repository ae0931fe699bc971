"""A1: agents whose models are named, and made by LangChain's `init_chat_model`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import langchain.chat_models
import pytest
from langchain_core.messages import HumanMessage

from langgraph_ext import AgentNode, LedgerSaver
from langgraph_ext.engine import Compaction
from langgraph_ext.errors import AdmissionError
from langgraph_ext.testing import ScriptedChatModel, call
from tests.support.acted import Acts
from tests.support.apps import graph_of
from tests.support.driver import Form
from tests.support.reacting import Notes


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, "sync", loop)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Models by the names that `init_chat_model` makes them of; what is none is raised or returned."""
    models: dict[str, Any] = {}

    def make(name: str) -> Any:
        if isinstance(models[name], Exception):
            raise models[name]
        return models[name]

    monkeypatch.setattr(langchain.chat_models, "init_chat_model", make)
    return models


def app_of(acts: Acts, node: AgentNode) -> Any:
    return graph_of(node).compile(checkpointer=acts.saver)


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def test_a1_a_model_may_be_named(acts: Acts, made: dict[str, Any]) -> None:
    """It is made once, when the node is, and called like any other."""
    made["acme:one"] = ScriptedChatModel(script=[call("t", {"x": 1}), "done"])
    app = app_of(acts, AgentNode(name="support", model="acme:one", tools=[Notes().tool("t")]))
    assert ["go", "", "1!", "done"] == [each.text for each in acts.run(app, said("go"))["messages"]]
    made["acme:one"].assert_exhausted()


def test_a1_a_model_that_writes_summaries_may_be_named(acts: Acts, made: dict[str, Any]) -> None:
    made["acme:small"] = ScriptedChatModel(script=["in short"])
    model = ScriptedChatModel(script=["done"])
    compaction = Compaction(soft_tokens=50, model="acme:small")
    app = app_of(acts, AgentNode(name="support", model=model, compaction=compaction))
    given = [HumanMessage("long " * 40), HumanMessage("longer " * 40), HumanMessage("and now?")]
    assert "done" == acts.run(app, {"messages": given})["messages"][-1].text
    made["acme:small"].assert_exhausted()


def test_a1_a_named_model_is_one_agent_whatever_makes_it(made: dict[str, Any]) -> None:
    """A run goes on in a process whose integration is newer; another name is another agent."""
    made.update({"acme:one": ScriptedChatModel(script=["a"]), "acme:two": ScriptedChatModel(script=["a"])})
    first = AgentNode(name="a", model="acme:one").release
    made["acme:one"] = ScriptedChatModel(script=["b", "c"])
    assert first.digest == AgentNode(name="a", model="acme:one").release.digest
    assert first.digest != AgentNode(name="a", model="acme:two").release.digest


def test_a1_a_model_that_cannot_be_made_is_told_by_its_name(made: dict[str, Any]) -> None:
    """Once, when the node is made; what a constructor says of its arguments is in the cause alone."""
    made["acme:unknown"] = ValueError("Unable to infer model provider for model='acme:unknown'.\n\nSupported: …")
    made["acme:missing"] = ImportError("Initializing it requires langchain-acme. Please install it")
    made["acme:keyless"] = RuntimeError("the key sk-secret is none")
    made["acme:unset"] = RuntimeError("pass one, or set `ACME_API_KEY` or ACME_TOKEN; not sk-secret")
    made["acme:odd"] = object()
    for name, told in (
        ("acme:unknown", "'acme:unknown' cannot be made: Unable to infer model provider for model='acme:unknown'"),
        ("acme:missing", "'acme:missing' cannot be made: .*requires langchain-acme"),
        ("acme:keyless", "'acme:keyless' cannot be made: RuntimeError; the cause says more"),
        (
            "acme:unset",
            "RuntimeError; see to ACME_API_KEY or ACME_TOKEN in the environment; the cause",
        ),
        ("acme:odd", "'acme:odd' gives a value of type object, and no chat model"),
    ):
        with pytest.raises(AdmissionError, match=told) as caught:
            AgentNode(name="a", model=name)
        assert ("model_not_made", {"model": name}) == (caught.value.code, caught.value.details)
        assert "sk-secret" not in str(caught.value)


def test_a1_langchain_itself_does_not_know_the_provider() -> None:
    """Nothing stands in for it here."""
    with pytest.raises(AdmissionError, match="model 'acme-large' cannot be made: Unable to infer"):
        AgentNode(name="a", model="acme-large")


def test_a1_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [each for each in sys.modules if each.partition(".")[0] == "langchain"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "langchain", None)
    with pytest.raises(AdmissionError, match=r"pip install 'langgraph-ext\[langchain\]'"):
        AgentNode(name="a", model="openai:gpt-5.5")
