"""E17, R02: when the history is summarised, and when a request is too large even so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.exceptions import ModelRateLimitError

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentRunRecord, AgentStatus, Compaction, Hooks, Limits, Replace, Retry
from langgraph_ext.errors import StoreError
from langgraph_ext.testing import ScriptedChatModel, call, calls, fails, say, tries
from tests.support.reacting import (
    Notes,
    agent,
    crash_at,
    history,
    operations,
    output_of,
    purposes,
    scripted,
    sent,
)

Engines = Callable[..., AgentGraphEngine]
SHORT = "Summary of the conversation so far:\n\nin short"
LONG = "word " * 80  # a hundred tokens


def long_results(*steps: Any, soft: int = 250, **more: Any) -> tuple[ScriptedChatModel, Any]:
    """A model, and an agent of it whose tool's results are long; its history is summarised above so many tokens."""
    model = scripted(*steps, by="request")
    tool = Notes().tool("t", lambda x: f"{x} {LONG}")
    return model, agent(model, tool, compaction=Compaction(soft_tokens=soft, **more))


def said(number: int) -> list[dict[str, Any]]:
    """So many messages of about a hundred tokens."""
    return [{"role": "user", "content": f"<{n}> {LONG}"} for n in range(number)]


def is_whole(messages: list[dict[str, Any]]) -> bool:
    """Whether each tool call has its result behind it, and each result its call before it."""
    open_calls: list[str] = []
    for each in messages:
        if each["type"] == "tool":
            if each["tool_call_id"] not in open_calls:
                return False
            open_calls.remove(each["tool_call_id"])
        elif open_calls:
            return False
        open_calls += [made["id"] for made in each.get("tool_calls", ())]
    return not open_calls


def test_e17_a_long_history_is_summarised_before_the_model_is_called(engine: AgentGraphEngine) -> None:
    """One episode, found again by the model operation that it is for; it takes no ticket, and is a model call."""
    model, spec = long_results(call("t", {"x": 1}), call("t", {"x": 2}), say("in short"), "done")
    run = engine.run(spec, "go")
    assert ("done", 3, 4) == (output_of(run), run.loops_used, run.model_calls)
    assert ["compaction:3:5"] == purposes(engine, run, "compaction")
    assert 3 == len(engine.tickets(run.agent_run_id))
    assert ("human", SHORT) == sent(model)[0]
    assert all(is_whole(each.messages) for each in model.calls)


def test_e17_below_the_limit_nothing_is_summarised(engine: AgentGraphEngine) -> None:
    _, spec = long_results(call("t", {"x": 1}), call("t", {"x": 2}), "done", soft=1000)
    run = engine.run(spec, "go")
    assert ("done", []) == (output_of(run), purposes(engine, run, "compaction"))


def test_e17_what_was_summarised_stays_in_the_transcript(engine: AgentGraphEngine) -> None:
    """The summary stands where it was written."""
    _, spec = long_results(call("t", {"x": 1}), call("t", {"x": 2}), say("in short"), "done")
    run = engine.run(spec, "go")
    kinds = ["input", "decision", "result", "decision", "result", "summary", "decision"]
    assert kinds == [kind for kind, _ in history(engine, run)]
    assert [("input", "go"), ("result", f"1 {LONG}"), ("summary", SHORT)] == [
        history(engine, run)[n] for n in (0, 2, 5)
    ]


def test_e17_a_summary_is_asked_for_with_all_that_it_covers_and_no_tools(engine: AgentGraphEngine) -> None:
    summaries = scripted("in short")
    _, spec = long_results(call("t", {"x": 1}), call("t", {"x": 2}), "done", model=summaries)
    output_of(engine.run(spec, "go"))
    [asked] = summaries.calls
    (kind, prompt), (_, text) = sent(summaries)
    assert ("system", []) == (kind, asked.tools)
    assert "Summarise" in prompt
    assert "Human: go" in text
    assert f"1 {LONG}" in text


def test_e17_summaries_have_the_roles_model_or_their_own_and_their_own_prompt(engine: AgentGraphEngine) -> None:
    """Written by their own, the main model is not asked for them."""
    summaries = scripted("in short")
    more = {"model": summaries, "system_prompt": "Shorten."}
    model, spec = long_results(call("t", {"x": 1}), call("t", {"x": 2}), "done", **more)
    run = engine.run(spec, "go")
    assert ("done", 3, 1) == (output_of(run), len(model.calls), len(summaries.calls))
    assert ("system", "Shorten.") == sent(summaries)[0]
    assert run.model_calls == 4


@pytest.mark.parametrize("soft", [60, 250, 420, 640])
def test_e17_a_cut_parts_no_call_from_its_result(engine: AgentGraphEngine, soft: int) -> None:
    """However many calls a decision has, and whatever the limit is."""
    many = [calls(*(call("t", {"x": 10 * n + m}) for m in range(3))) for n in range(3)]
    model = ScriptedChatModel(script=[*many, "done"], by=rounds_of)
    compaction = Compaction(soft_tokens=soft, model=ScriptedChatModel(script=say("in short")))
    run = engine.run(agent(model, Notes().tool("t", lambda x: f"{x} {LONG}"), compaction=compaction), "go")
    assert "done" == output_of(run)
    assert [] != purposes(engine, run, "compaction")
    assert all(is_whole(each.messages) for each in model.calls)


def test_e17_a_history_much_too_long_is_summarised_a_chunk_at_a_time(engine: AgentGraphEngine) -> None:
    """Each within the limit, each with the summary so far, and each committed before the next."""
    summaries = ScriptedChatModel(script=say("in short"))
    model = scripted("done")
    run = engine.run(agent(model, compaction=Compaction(soft_tokens=400, model=summaries)), said(12))
    assert "done" == output_of(run)
    found = purposes(engine, run, "compaction")
    assert 3 <= len(found)
    assert {"compaction:1"} == {each.rsplit(":", 1)[0] for each in found}
    assert all(len(each.messages[1]["content"]) <= 4 * 400 for each in summaries.calls)
    assert [False] + [True] * (len(found) - 1) == ["in short" in str(each.messages) for each in summaries.calls]
    seen = [
        n for n in range(12) if any(f"<{n}> {LONG}" in str(each.messages) for each in (*summaries.calls, *model.calls))
    ]
    assert list(range(12)) == seen
    assert ("human", SHORT) == sent(model)[0]


def test_e17_a_chunk_that_is_stored_is_not_asked_for_again(engines: Engines) -> None:
    summaries = ScriptedChatModel(script=say("in short"))
    spec = agent(["done"], compaction=Compaction(soft_tokens=400, model=summaries))
    first = engines()
    run = first.start(spec, said(12))
    left(first, run, "call-raw:", at=2)
    made = len(summaries.calls)
    engine = engines()
    assert "done" == output_of(engine.drive(run.agent_run_id, spec))
    assert 2 == made
    assert len(purposes(engine, run, "compaction")) == len(summaries.calls)


def left(engine: AgentGraphEngine, run: AgentRunRecord, kind: str, **more: Any) -> None:
    """Drive it until its worker dies at a commit."""
    crash_at(engine, kind, **more)
    with pytest.raises(StoreError):
        engine.drive(run.agent_run_id)


@pytest.mark.parametrize(
    "step", [fails(ValueError("no")), say(""), call("t", {"x": 1})], ids=["raises", "empty", "calls"]
)
def test_e17_a_summary_that_fails_ends_the_run(engine: AgentGraphEngine, step: Any) -> None:
    """What a model has to say of it is no summary if it is no text."""
    model, spec = long_results(call("t", {"x": 1}), call("t", {"x": 2}), "never", model=ScriptedChatModel(script=step))
    run = engine.run(spec, "go")
    assert (AgentStatus.FAILED, "compaction_failed") == (run.status, run.reason)
    assert (2, 2) == (len(model.calls), run.loops_used)


def test_e17_the_limit_of_model_calls_counts_summaries(engine: AgentGraphEngine) -> None:
    summaries = scripted("never")
    model = scripted(call("t", {"x": 1}), call("t", {"x": 2}), "never")
    tool = Notes().tool("t", lambda x: LONG)
    compaction = Compaction(soft_tokens=150, model=summaries)
    run = engine.run(agent(model, tool, compaction=compaction, limits=Limits(model_calls=2)), "go")
    assert (AgentStatus.EXHAUSTED, "model_calls_exhausted", []) == (run.status, run.reason, summaries.calls)


class Tagged(ScriptedChatModel):
    """Notes the tags that it is called with."""

    tags_seen: Any = None

    async def astream(self, input: Any, config: Any = None, **more: Any) -> Any:
        self.tags_seen.append((config or {}).get("tags"))
        async for chunk in super().astream(input, config, **more):
            yield chunk


def test_e17_summaries_are_not_streamed(engine: AgentGraphEngine) -> None:
    """They carry the tag by which LangGraph leaves them out; decisions do not."""
    summaries = Tagged(script=say("in short"), tags_seen=[])
    run = engine.run(agent(["done"], compaction=Compaction(soft_tokens=150, model=summaries)), said(3))
    assert "done" == output_of(run)
    assert ["nostream"] in summaries.tags_seen
    model = Tagged(script=["done"], tags_seen=[])
    output_of(engine.run(agent(model), "go"))
    assert [[]] == model.tags_seen


# -- the hard limit


def test_e17_a_request_above_the_hard_limit_ends_the_run(engine: AgentGraphEngine) -> None:
    """Nothing is sent; a message alone that is too large cannot be summarised."""
    model = scripted("never")
    run = engine.run(agent(model, compaction=Compaction(soft_tokens=50, hard_tokens=90)), said(1))
    assert (AgentStatus.FAILED, "context_window_exceeded") == (run.status, run.reason)
    assert ([], 0, 0) == (model.calls, run.model_calls, run.loops_used)
    assert "90" in (run.message or "")


def test_e17_what_a_summary_makes_small_enough_is_sent(engine: AgentGraphEngine) -> None:
    summaries = ScriptedChatModel(script=say("in short"))
    compaction = Compaction(soft_tokens=300, hard_tokens=400, model=summaries)
    assert "done" == output_of(engine.run(agent(["done"], compaction=compaction), said(8)))


@pytest.mark.parametrize(("size", "status"), [(4000, AgentStatus.FAILED), (40, AgentStatus.SUCCEEDED)])
def test_r02_a_hook_inflates_a_request_past_the_limit(engine: AgentGraphEngine, size: int, status: AgentStatus) -> None:
    """It is looked at behind the hooks, before anything is sent."""

    def inflates(request: Any) -> Replace:
        request["messages"][0]["data"]["content"] = "x" * size
        return Replace(request)

    model = scripted("done", by="request")
    spec = agent(model, compaction=Compaction(hard_tokens=500), hooks=Hooks(before_model=[inflates]))
    run = engine.run(spec, "go")
    assert status is run.status
    assert ("context_window_exceeded" if size > 500 else None) == run.reason
    assert (0 if size > 500 else 1) == len(model.calls) == run.model_calls


def test_r02_a_hook_may_make_a_request_small_enough(engine: AgentGraphEngine) -> None:
    def shortens(request: Any) -> Replace:
        request["messages"][0]["data"]["content"] = "x"
        return Replace(request)

    spec = agent(["done"], compaction=Compaction(hard_tokens=50), hooks=Hooks(before_model=[shortens]))
    assert "done" == output_of(engine.run(spec, LONG))


def test_e17_no_history_is_too_long_without_limits(engine: AgentGraphEngine) -> None:
    assert "done" == output_of(engine.run(agent(["done"]), said(50)))


def test_e17_an_agent_goes_on_for_long_in_a_window_of_one_size(engine: AgentGraphEngine) -> None:
    """However many rounds it has: no request is ever larger than the limit."""
    script = [call("t", {"x": n}) for n in range(7)]
    model = ScriptedChatModel(script=[*script, "done"], by=rounds_of)
    summaries = ScriptedChatModel(script=say("in short"))
    tool = Notes().tool("t", lambda x: f"{10 * x} {LONG}")
    run = engine.run(agent(model, tool, compaction=Compaction(soft_tokens=450, model=summaries)), "go")
    assert ("done", 8) == (output_of(run), run.loops_used)
    assert all(sum(len(str(m["content"])) for m in each.messages) <= 4 * 450 for each in model.calls)
    assert all(is_whole(each.messages) for each in model.calls)


def rounds_of(messages: Any) -> int:
    """How many decisions have been made, by what the last result shows."""
    found = [int(each.text.split()[0]) // 10 for each in messages if each.type == "tool"]
    return max(found) + 1 if found else 0


def test_e17_a_summary_may_be_tried_again(engine: AgentGraphEngine) -> None:
    """It is an operation as others are, if the spec has it called again."""
    summaries = ScriptedChatModel(script=tries(fails(ModelRateLimitError("busy")), say("in short")))
    compaction = Compaction(soft_tokens=150, model=summaries)
    run = engine.run(agent(["done"], compaction=compaction, retry=Retry(wait_seconds=0.0)), said(3))
    assert "done" == output_of(run)
    assert ["failed", "settled"] == [str(each.state) for each in operations(engine, run, "compaction")[0].calls]
