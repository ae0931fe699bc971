"""E14, E15, E16, E23, A9, A12 and R03 with a real client: ChatOpenAI, over HTTP, against a scripted server.

Each server checks, when its block is left, that OpenAI would have taken every request (tests/support/real_client.py).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langgraph_ext import AgentGraphEngine
from langgraph_ext.engine import AgentRunRecord, AgentSpec, AgentStatus, CallRecord, Deadlines, Retry
from tests.support.completions import Answer, Ending, Refusal, Request, calls, cuts, refuses, says, stalls
from tests.support.real_client import Adder, agent_at, answered, serving, shown, told_by

AGAIN = Retry(calls=2, wait_seconds=0.01)


@pytest.fixture
def adder() -> Adder:
    return Adder()


def run_in(form: str, engine: AgentGraphEngine, spec: AgentSpec) -> AgentRunRecord:
    return engine.run(spec, "go") if form == "sync" else asyncio.run(engine.arun(spec, "go"))


def model_calls(engine: AgentGraphEngine, run: AgentRunRecord) -> list[tuple[CallRecord, ...]]:
    """The calls of each model operation; each of these has had one ticket."""
    found = [each for each in engine.operations(run.agent_run_id) if each.kind == "model"]
    assert [each.operation_id for each in found] == [each.operation_id for each in engine.tickets(run.agent_run_id)]
    return [each.calls for each in found]


def failed(run: AgentRunRecord) -> tuple[AgentStatus, str | None, Any]:
    return run.status, run.reason, run.output


def test_a_text_is_streamed(engine: AgentGraphEngine, form: str) -> None:
    """Both forms stream, so that a model that has fallen silent is noticed."""
    with serving(says("two  words", usage=(7, 2))) as server:
        run = run_in(form, engine, agent_at(server.url, system_prompt="Be brief."))
    assert (AgentStatus.SUCCEEDED, "two  words") == (run.status, run.output)
    [request] = server.requests
    assert (True, {"include_usage": True}) == (request["stream"], request["stream_options"])
    assert [("system", "Be brief."), ("user", "go")] == shown(request)


def test_e14_streamed_calls_are_executed_and_their_results_sent_back(
    engine: AgentGraphEngine, form: str, adder: Adder
) -> None:
    """Several in one decision, in fragments, beside a text; each has one tool message, in their order."""
    three = [("add", {"a": n, "b": 10}) for n in range(3)]
    script = (calls(*three, text="let me see"), calls(("add", {"a": 3, "b": 10})), says("done"))
    with serving(*script) as server:
        run = run_in(form, engine, agent_at(server.url, adder.tool))
    assert ("done", 3, 3) == (run.output, run.loops_used, run.model_calls)
    assert [(n, 10) for n in range(4)] == sorted(adder)
    ids = [f"call_1_{n}" for n in range(3)]
    assert [(ids, ids), (["call_2_0"], ["call_2_0"])] == answered(server.requests[-1]["messages"])
    decision = [("assistant", "let me see"), *(("assistant", f'add {{"a": {n}, "b": 10}}') for n in range(3))]
    assert [("user", "go"), *decision, *(("tool", str(n + 10)) for n in range(3))] == shown(server.requests[1])


@pytest.mark.parametrize("given", [[None, None, None], ["x", "x", "x"], ["", "x", None]])
def test_a9_ids_that_are_missing_or_repeated_are_assigned(
    engine: AgentGraphEngine, adder: Adder, given: list[str | None]
) -> None:
    """Once: every request, and every reader, is told the same."""
    script = (calls(*[("add", {"a": n, "b": 0}) for n in range(3)], ids=given), calls(("add", {"a": 3, "b": 0})))
    with serving(*script, says("done")) as server:
        run = engine.run(agent_at(server.url, adder.tool), "go")
    [(ids, results), *_], [again, _] = (answered(each["messages"]) for each in server.requests[1:])
    assert (3, ids, (ids, ids)) == (len(set(ids)), results, again)
    assert [*ids, "call_2_0"] == [each.call_id for each in engine.slots(run.agent_run_id)]
    assert ["0", "1", "2", "3"] == [each.result.text for each in engine.slots(run.agent_run_id) if each.result]
    assert {"x"} & set(given) == {"x"} & set(ids)


def test_a9_assigned_ids_fit_whatever_ids_look_like_here(
    engines: Callable[..., AgentGraphEngine], adder: Adder
) -> None:
    """OpenAI takes no more than 40 characters."""
    made = iter(range(1_000))
    engine = engines(ids=lambda: f"{next(made):05}: {'long ' * 20}")
    with serving(calls(("add", {"a": 1, "b": 0}), ("add", {"a": 2, "b": 0}), ids=[None, ""]), says("done")) as server:
        assert "done" == engine.run(agent_at(server.url, adder.tool), "go").output


def test_a12_usage_is_on_record(engine: AgentGraphEngine, adder: Adder) -> None:
    with serving(calls(("add", {"a": 1, "b": 1}), usage=(20, 7)), says("done", usage=(40, 3))) as server:
        run = engine.run(agent_at(server.url, adder.tool), "go")
    assert (60, 10) == (run.tokens_in, run.tokens_out)
    found = [(each.tokens_in, each.tokens_out, each.tokens_estimated) for [each] in model_calls(engine, run)]
    assert [(20, 7, False), (40, 3, False)] == found


def test_a12_usage_that_is_not_told_is_estimated(engine: AgentGraphEngine) -> None:
    with serving(says("word " * 100)) as server:
        run = engine.run(agent_at(server.url, model={"stream_usage": False}, system_prompt="Be brief. " * 40), "go")
    [[found]] = model_calls(engine, run)
    assert (True, run.tokens_in, run.tokens_out) == (found.tokens_estimated, found.tokens_in, found.tokens_out)
    assert (True, True) == (90 <= run.tokens_in <= 150, 110 <= run.tokens_out <= 160)


@pytest.mark.parametrize(("form", "asked", "own"), [("sync", 0.3, 0.01), ("async", 0.05, 0.3)])
def test_e23_a_server_that_asks_to_wait_is_waited_for(
    engine: AgentGraphEngine, form: str, asked: float, own: float
) -> None:
    """Another call of the same operation and ticket; not before the server's time, nor before that of the spec."""
    came: list[float] = []

    def replying(request: Request) -> Answer | Refusal:
        came.append(time.monotonic())
        return says("done") if len(came) > 1 else refuses(429, "slow down", retry_after=asked)

    with serving(replying, replying) as server:
        run = run_in(form, engine, agent_at(server.url, retry=Retry(calls=2, wait_seconds=own)))
    assert ("done", 1, 2) == (run.output, run.loops_used, run.model_calls)
    assert 0.3 <= came[1] - came[0] < 5
    [[refused, answer]] = model_calls(engine, run)
    assert ("failed", "settled") == (refused.state, answer.state)
    assert refused.error is not None
    assert ("call_failed", True) == (refused.error["code"], "slow down" in refused.error["message"])


@pytest.mark.parametrize(("status", "retry"), [(429, None), (500, None), (400, AGAIN), (401, AGAIN)])
def test_e23_what_is_not_to_be_tried_again_fails_the_run(
    engine: AgentGraphEngine, status: int, retry: Retry | None
) -> None:
    """Without `retry`, everything; with it, what will not get better."""
    with serving(refuses(status, "no such luck")) as server:
        run = engine.run(agent_at(server.url, retry=retry), "go")
    assert (AgentStatus.FAILED, "model_call_failed", None) == failed(run)
    assert (0, 1, True) == (run.loops_used, run.model_calls, "no such luck" in str(run.message))


CALLING = calls(("add", {"a": 1, "b": 1}), ("add", {"a": 2, "b": 2}), text="let me see")


@pytest.mark.parametrize("how", ["closed", "ended", "error"])
def test_r03_a_stream_that_breaks_off_is_no_answer(engine: AgentGraphEngine, adder: Adder, how: Ending) -> None:
    """At any of its pieces: no tool runs, what came is kept with its call, and the operation is called again."""
    pieces = range(1, 13)  # up to the last of the second call's arguments
    retry = Retry(calls=13, wait_seconds=0.0)
    with serving(*(cuts(n, CALLING, how=how) for n in pieces), says("done")) as server:
        run = engine.run(agent_at(server.url, adder.tool, retry=retry), "go")
    assert ("done", [], 1, 13) == (run.output, adder, run.loops_used, run.model_calls)
    [[*broken, answer]] = model_calls(engine, run)
    assert [*["failed"] * 12, "settled"] == [each.state for each in (*broken, answer)]
    came = [each.partial["data"] for each in broken]
    assert ["", "let ", "let me ", *["let me see"] * 9] == [each["content"] for each in came]
    assert [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8] == [len(each["tool_call_chunks"]) for each in came]
    written = [[piece["args"] for piece in came[-1]["tool_call_chunks"] if piece["index"] == n] for n in (0, 1)]
    assert ['{"a": 1, "b": 1}', '{"a": 2, "b": 2}'] == ["".join(each) for each in written]
    assert [[("user", "go")]] == [*{str(shown(each)): shown(each) for each in server.requests}.values()]


@pytest.mark.parametrize(("form", "how"), [("sync", "closed"), ("async", "ended"), ("async", "error")])
def test_r03_without_another_call_a_broken_stream_fails_the_run(
    engine: AgentGraphEngine, form: str, adder: Adder, how: Ending
) -> None:
    """What came is kept all the same, and is nobody's answer."""
    with serving(cuts(6, CALLING, how=how)) as server:
        run = run_in(form, engine, agent_at(server.url, adder.tool))
    assert ((AgentStatus.FAILED, "model_call_failed", None), []) == (failed(run), adder)
    [[broken]] = model_calls(engine, run)
    assert ["", '{"a": '] == [each["args"] for each in broken.partial["data"]["tool_call_chunks"]]
    assert ["input"] == [each.kind for each in engine.transcript(run.agent_run_id)]


STALLS = [  # pieces until it stalls, deadlines, how long until it is given up, what is said of that, what has come
    (0, {"model_seconds": 0.2}, 0.2, "said nothing for 0.2 s", None),
    (1, {"model_seconds": 0.4, "model_idle_seconds": 0.1}, 0.4, "said nothing for 0.4 s", ""),
    (3, {"model_seconds": 1.0, "model_idle_seconds": 1.3}, 1.3, "said nothing more for 1.3 s", "a b "),
]


@pytest.mark.parametrize(("pieces", "deadlines", "seconds", "told", "came"), STALLS)
def test_e23_a_stream_that_stalls_is_given_up(
    engine: AgentGraphEngine, pieces: int, deadlines: dict[str, Any], seconds: float, told: str, came: str | None
) -> None:
    """By the deadline of the first output, or of each later one; a piece that says nothing is no output."""
    begun = time.monotonic()
    with serving(stalls(pieces, says("a b c"), 60), says("done")) as server:
        run = engine.run(agent_at(server.url, deadlines=Deadlines(**deadlines), retry=AGAIN), "go")
    assert ("done", 1, 2) == (run.output, run.loops_used, run.model_calls)
    assert seconds <= time.monotonic() - begun < 30
    [[stalled, _]] = model_calls(engine, run)
    assert stalled.error is not None
    assert ("deadline_exceeded", True) == (stalled.error["code"], told in stalled.error["message"])
    assert came == (stalled.partial and stalled.partial["data"]["content"])


def test_e23_a_stream_that_is_slow_is_not_given_up(engine: AgentGraphEngine) -> None:
    with serving(stalls(3, says("a b c"), 0.3)) as server:
        run = engine.run(agent_at(server.url, deadlines=Deadlines(model_seconds=0.2, model_idle_seconds=10.0)), "go")
    assert ("a b c", 1) == (run.output, run.model_calls)


def test_a9_a_decision_that_is_cut_off_runs_none_of_its_calls(engine: AgentGraphEngine, adder: Adder) -> None:
    """Those that had come whole included; the model is told so of each."""
    cut_off = calls(("add", {"a": 1, "b": 1}), ("add", '{"a": 2, "b'), finish_reason="length")
    with serving(cut_off, calls(("add", {"a": 3, "b": 3})), says("done")) as server:
        run = engine.run(agent_at(server.url, adder.tool), "go")
    assert ("done", [(3, 3)], 3) == (run.output, adder, run.loops_used)
    assert [True, True] == [text.startswith("response_truncated: ") for text in told_by(server.requests[1])]


UNREADABLE = [
    *('{"a": 1, "b', "oh no", "[1, 2]", '{"a": NaN, "b": 1}', '{"a": 1e999, "b": 1}', '{"a": "\\ud800", "b": 1}'),
    '{"a": 123456789012345678901234567890, "b": 1}',  # more than is stored
]


def test_e15_arguments_that_are_no_json_are_rejected(engine: AgentGraphEngine, adder: Adder) -> None:
    """Each by itself; the others go on, and what was written is sent back in a form that every server can read."""
    asked = [("add", text) for text in [*UNREADABLE, "[" * 5_000 + "]" * 5_000]]
    with serving(calls(("add", {"a": 1, "b": 1}), *asked), says("done")) as server:
        run = engine.run(agent_at(server.url, adder.tool), "go")
    assert ("done", [(1, 1)]) == (run.output, adder)
    told = told_by(server.requests[1])
    assert ["2", *["tool_arguments_invalid: the arguments are not the JSON of an object"] * len(asked)] == told
    sent = [call["function"]["arguments"] for call in server.requests[1]["messages"][1]["tool_calls"]]
    assert ['{"a": 1, "b": 1}', *(json.dumps({"not_json": text}) for _, text in asked)] == sent
    decision = engine.transcript(run.agent_run_id)[1].message
    assert isinstance(decision, AIMessage)
    assert [text for _, text in asked] == [each["args"] for each in decision.invalid_tool_calls]


def test_e15_arguments_that_cannot_be_stored_are_rejected_without_a_stream(
    engine: AgentGraphEngine, adder: Adder
) -> None:
    """A client that does not stream has read them itself."""
    asked: list[tuple[str, Any]] = [
        ("add", {"a": 1, "b": 1}),
        *(("add", text) for text in UNREADABLE if text[0] == "{"),
    ]
    with serving(calls(*asked), says("done")) as server:
        run = engine.run(agent_at(server.url, adder.tool, model={"disable_streaming": True}), "go")
    assert ("done", [(1, 1)], False) == (run.output, adder, bool(server.requests[0].get("stream")))
    assert len(asked) == len(told_by(server.requests[1]))


@pytest.mark.parametrize("name", ["multi_tool_use.parallel", "ädd", "a" * 65])
def test_e15_a_tool_that_there_is_not_is_rejected(engine: AgentGraphEngine, adder: Adder, name: str) -> None:
    """The model is told its name, but it is not sent back as a name that OpenAI refuses."""
    with serving(calls((name, {"a": 1}), ("add", {"a": 1, "b": 1}), (name, "{")), says("done")) as server:
        run = engine.run(agent_at(server.url, adder.tool), "go")
    assert ("done", [(1, 1)]) == (run.output, adder)
    unknown = f"tool_unknown: there is no tool {name!r}; there are: add"
    assert [unknown, "2", unknown] == told_by(server.requests[1])


class City(BaseModel):
    name: str
    people: int


def test_e16_an_answer_that_does_not_fit_is_corrected(engine: AgentGraphEngine, form: str) -> None:
    """What is wrong with it is sent back as the user's; each correction takes a ticket; only the last one counts."""
    fits = '{"name": "Rome", "people": 2800000}'
    with serving(says("Rome"), says('{"name": "Rome"}'), says(fits)) as server:
        run = run_in(form, engine, agent_at(server.url, system_prompt="Be brief.", output_schema=City))
    assert ({"name": "Rome", "people": 2_800_000}, 3, 3) == (run.output, run.loops_used, run.model_calls)
    assert [1, 1, 1] == [len(each) for each in model_calls(engine, run)]
    (_, prompt), *history = shown(server.requests[-1])
    assert (True, True) == (prompt.startswith("Be brief."), '"people"' in prompt)
    assert ["user", "assistant", "user", "assistant", "user"] == [role for role, _ in history]
    assert ["go", "Rome", '{"name": "Rome"}'] == [history[n][1] for n in (0, 1, 3)]
    assert "/people" in history[4][1]


class FirstWord(AsyncCallbackHandler):
    """Notes when a model has said something."""

    def __init__(self) -> None:
        self.said = asyncio.Event()

    async def on_llm_new_token(self, token: object, **kwargs: Any) -> None:
        if token:
            self.said.set()


def test_r03_a_worker_that_ends_within_a_stream_leaves_the_model_call_to_the_next(
    engines: Callable[..., AgentGraphEngine], adder: Adder
) -> None:
    """That call is made again, of the same operation and with the same request, and nothing else is."""
    first, second = engines(), engines()
    script = (calls(("add", {"a": 1, "b": 1})), stalls(3, says("half an answer"), 60), says("done"))

    async def interrupted(spec: AgentSpec, heard: FirstWord) -> str:
        run = await first.astart(spec, "go")
        driving = asyncio.create_task(first.adrive(run.agent_run_id))
        while len(server.requests) < 2:
            await asyncio.sleep(0.001)
        heard.said.clear()
        await asyncio.wait_for(heard.said.wait(), 30)
        driving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driving
        return run.agent_run_id

    with serving(*script) as server:
        heard = FirstWord()
        spec = agent_at(server.url, adder.tool, model={"callbacks": [heard]})
        run_id = asyncio.run(interrupted(spec, heard))
        run = second.drive(run_id, spec)
    assert ("done", [(1, 1)], 2, 3) == (run.output, adder, run.loops_used, run.model_calls)
    assert [["settled"], ["interrupted", "settled"]] == [
        [call.state for call in each] for each in model_calls(second, run)
    ]
    assert server.requests[1] == server.requests[2]


KEPT = """
import sys
from langgraph_ext import AgentGraphEngine
from tests.support.completions import completions, says
from tests.support.real_client import agent_at

with completions(*map(says, "abc"), keeps=True) as server, AgentGraphEngine(sys.argv[1]) as engine:
    spec = agent_at(server.url)
    print(*(engine.run(spec, "go").output for _ in "abc"))
"""


def test_sync_calls_may_share_a_client_that_keeps_its_connections(tmp_path: Path) -> None:
    """As clients do with every server but those of these tests."""
    argv = [sys.executable, "-c", KEPT, str(tmp_path / "agents.db")]
    root = Path(__file__).parents[3]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, cwd=root)
    assert ("a b c\n", "") == (ran.stdout, ran.stderr)
