"""A4, A5, A8: a chat through an agent node: its turns go on with one history, and each stores what it has added."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage

from langgraph_ext import AgentGraphEngine, AgentNode, LedgerSaver
from langgraph_ext.database import Tx
from langgraph_ext.engine import Compaction, contexts, windows
from langgraph_ext.engine.sent import LastSent
from langgraph_ext.testing import ScriptedChatModel, call, say
from tests.support.acted import Acts
from tests.support.apps import CONFIG, graph_of
from tests.support.driver import Form
from tests.support.reacting import Notes

_TABLES = ("agent_run", "agent_task", "agent_operation", "agent_call", "agent_message", "agent_member", "agent_commit")


@pytest.fixture
def acts(saver: LedgerSaver, form: Form, loop: asyncio.AbstractEventLoop) -> Acts:
    return Acts(saver, form, form, loop)


def turn_of(messages: list[Any]) -> str:
    """Which turn a model is asked in, and whether its tool has answered: by what it is sent."""
    humans = [each for each in messages if each.type == "human" and each.text.startswith("turn")]
    return f"{humans[-1].text}:{messages[-1].type}"


def chatting(saver: LedgerSaver, turns: int, **more: Any) -> tuple[Any, ScriptedChatModel]:
    """A chat in which each turn calls a tool."""
    script: dict[str, Any] = {}
    for turn in range(turns):
        script[f"turn {turn:03}:human"] = call("t", {"x": turn})
        script[f"turn {turn:03}:tool"] = say(f"answer {turn:03}")
    model = ScriptedChatModel(script=script, by=turn_of)
    node = AgentNode(name="support", model=model, tools=[Notes().tool("t")], **more)
    return graph_of(node).compile(checkpointer=saver), model


def chat(acts: Acts, app: Any, *turns: int, config: Any = CONFIG) -> Any:
    final = None
    for turn in turns:
        final = acts.run(app, {"messages": [HumanMessage(f"turn {turn:03}")]}, config)
    return final


def stored(acts: Acts) -> int:
    """Bytes of all that the engine's tables hold."""

    def count(tx: Tx) -> int:
        total = 0
        for table in _TABLES:
            names = [row["name"] for row in tx._execute(f"PRAGMA table_info({table})", {}).fetchall()]
            length = " + ".join(f"coalesce(length({name}), 0)" for name in names)
            total += tx._execute(f"SELECT coalesce(sum({length}), 0) AS n FROM {table}", {}).fetchall()[0]["n"]
        return total

    return int(acts.saver.database.transact(count))


def test_a5_what_a_turn_stores_does_not_grow_with_the_chat(acts: Acts) -> None:
    """The history stands once: turn 40 stores as much as turn 10, and its model is sent all of it."""
    app, model = chatting(acts.saver, 40)
    sizes = [0]
    for turn in range(40):
        chat(acts, app, turn)
        sizes.append(stored(acts))
    early, late = sizes[15] - sizes[10], sizes[40] - sizes[35]
    assert late <= 1.1 * early
    last = [each["content"] for each in model.calls[-1].messages]
    assert 4 * 40 - 1 == len(last)
    assert ["turn 000", "", "0!", "answer 000", "turn 001"] == last[:5]


def test_a5_each_turn_is_an_agent_run_with_its_own_part_of_the_transcript(acts: Acts) -> None:
    app, _ = chatting(acts.saver, 3)
    final = chat(acts, app, 0, 1, 2)
    engine = AgentGraphEngine(acts.saver.ledger)
    runs = list(reversed(engine.runs()))
    parts = [[entry.message for entry in engine.transcript(run.agent_run_id)] for run in runs]
    assert [4, 4, 4] == list(map(len, parts))
    assert [each.id for each in final["messages"]] == [each.id for part in parts for each in part]


def test_a4_a_fork_of_a_chat_has_a_history_of_its_own(acts: Acts) -> None:
    """What came later on the other branch is not in it; both go on."""
    app, model = chatting(acts.saver, 4)
    chat(acts, app, 0)
    seen = app.get_state(CONFIG) if acts.form == "sync" else acts.loop.run_until_complete(app.aget_state(CONFIG))
    chat(acts, app, 1)
    fork = chat(acts, app, 2, config=seen.config)
    sent = [each["content"] for each in model.calls[-1].messages]
    assert ["turn 000", "", "0!", "answer 000", "turn 002", "", "2!"] == sent
    assert 8 == len(fork["messages"])
    chat(acts, app, 3)
    sent = [each["content"] for each in model.calls[-1].messages]
    assert "turn 001" not in sent
    assert ["turn 000", "turn 002", "turn 003"] == [text for text in sent if text.startswith("turn")]


def test_a4_a_conversation_that_was_changed_is_what_the_state_says(acts: Acts) -> None:
    """A message that was removed from the state is not sent any more."""
    app, model = chatting(acts.saver, 3)
    final = chat(acts, app, 0, 1)
    removed = [RemoveMessage(id=each.id) for each in final["messages"][:4]]
    if acts.form == "sync":
        app.update_state(CONFIG, {"messages": removed})
    else:
        acts.loop.run_until_complete(app.aupdate_state(CONFIG, {"messages": removed}))
    chat(acts, app, 2)
    sent = [each["content"] for each in model.calls[-1].messages]
    assert ["turn 001", "", "1!", "answer 001", "turn 002", "", "2!"] == sent


def test_e17_a_summary_of_a_chat_serves_its_later_turns(acts: Acts) -> None:
    """The history is compacted once, and not in each turn anew."""
    summaries = ScriptedChatModel(script=["what was said"], by=lambda _: 0)
    app, model = chatting(acts.saver, 12, compaction=Compaction(soft_tokens=300, model=summaries))
    chat(acts, app, *range(12))
    assert 0 < len(summaries.calls) < 8
    assert max(len(each.messages) for each in model.calls) < 25


class Spoiling(ScriptedChatModel):
    """Rewrites what it is sent, once it has answered."""

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        answer = super()._generate(messages, *args, **kwargs)
        for each in messages:
            each.content = "spoilt"
        return answer

    async def _agenerate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        answer = await super()._agenerate(messages, *args, **kwargs)
        for each in messages:
            each.content = "spoilt"
        return answer


def test_a5_what_a_model_makes_of_what_it_was_sent_is_not_sent_to_the_next(acts: Acts) -> None:
    model = Spoiling(script=["one", "two", "three"], by=lambda messages: len(messages) // 2)
    app = graph_of(AgentNode(name="support", model=model)).compile(checkpointer=acts.saver)
    chat(acts, app, 0, 1, 2)
    sent = [each["content"] for each in model.calls[-1].messages]
    assert ["turn 000", "one", "turn 001", "two", "turn 002"] == sent


@pytest.mark.parametrize("forgets", [False, True])
def test_a5_a_turn_reads_of_its_history_what_is_new(acts: Acts, forgets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of it where nothing is known of it, as in another process; the model is sent the same."""
    app, model = chatting(acts.saver, 12)
    chat(acts, app, *range(10))
    read: list[str] = []
    made_of = contexts._message_of

    def counted(row: Any, context_id: str) -> Any:
        read.append(row["kind"])
        return made_of(row, context_id)

    monkeypatch.setattr(contexts, "_message_of", counted)
    if forgets:
        monkeypatch.setattr(windows, "last_sent", lambda database: LastSent())
    chat(acts, app, 10)
    # Read are: what the turn before has added last, the turn's message, its call and result; and what the node returns.
    assert (40 + 1 + 2 + 3 if forgets else 1 + 1 + 2 + 3) == len(read)
    assert [f"turn {each:03}" for each in range(11)] == [
        each["content"] for each in model.calls[-1].messages if each["type"] == "human"
    ]
