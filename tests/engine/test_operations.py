"""E18, E23, E28: calls that end in ways that are no answer, and hooks around them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from langgraph_ext.engine import conditions
from langgraph_ext.engine.operation_changes import Begin
from langgraph_ext.engine.outcomes import Complete, Runtime, Wait
from langgraph_ext.engine.states import AgentStatus, OperationState
from tests.support.agents import Stub, Told, Yielded, phase
from tests.support.bench import Bench

TASK = "id-000002"


async def one_call(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
    """Calls a tool, and gives back its outcome."""
    known = runtime.operations.get("t")
    if known is None or not known.state.ended:
        begin = Begin(agent_task_id=TASK, purpose="t", kind="tool", name="t", request={})
        yield Wait(continuation=phase("a"), condition=conditions.operations_ended("t"), changes=(begin,))
    yield Complete(output=runtime.operations["t"].outcome, continuation=phase("completed"))


async def outcome_of(bench: Bench, answer: Any, **options: Any) -> tuple[Any, Stub]:
    """What becomes of a call."""
    program = Stub(answer=answer, behaviours={"told": Told(one_call)}, **options)
    tree = await asyncio.wait_for(bench.drive(bench.start("told"), program), 10)
    assert AgentStatus.SUCCEEDED is tree.root.status
    return tree.root.output, program


async def test_e22_a_call_that_raises_has_failed_and_nothing_else_has(bench: Bench) -> None:
    async def answer(operation: Any, number: int) -> Any:
        raise ValueError("no such order")

    outcome, _ = await outcome_of(bench, answer)
    assert {"error": {"code": "call_failed", "message": "ValueError: no such order"}} == outcome


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot say")


@pytest.mark.parametrize("error", [FileNotFoundError("\udcff.txt"), Speechless()], ids=["half a character", "none"])
async def test_e22_an_error_whose_text_cannot_be_stored_is_a_failure_of_its_call(
    bench: Bench, error: Exception
) -> None:
    """And not of whoever drives it, now and each time after."""

    async def answer(operation: Any, number: int) -> Any:
        raise error

    outcome, _ = await outcome_of(bench, answer)
    assert "call_failed" == outcome["error"]["code"]
    assert type(error).__name__ in outcome["error"]["message"]


@pytest.mark.parametrize("raw", [None, 1, {}, {"value": 1, "error": 2}, {"error": "e"}], ids=str)
@pytest.mark.parametrize("hooks", [True, False])
async def test_e22_an_answer_that_is_no_outcome_is_a_failure_of_its_call(bench: Bench, raw: Any, hooks: bool) -> None:
    async def answer(operation: Any, number: int) -> Any:
        return raw

    outcome, _ = await outcome_of(bench, answer, hooks=hooks)
    assert "call_failed" == outcome["error"]["code"]


@pytest.mark.parametrize("depth", [248, 252])
async def test_e2_what_can_be_stored_can_be_committed_however_deep_it_is(bench: Bench, depth: int) -> None:
    nested: Any = 1
    for _ in range(depth):
        nested = [nested]

    async def answer(operation: Any, number: int) -> Any:
        return {"value": nested}

    outcome, _ = await outcome_of(bench, answer)
    assert {"value": nested} == outcome


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), 2**80], ids=["object", "set", "nan", "long"])
async def test_e22_an_answer_that_cannot_be_stored_is_a_failure_of_its_call(bench: Bench, value: Any) -> None:
    """And not of the driver; the call is not made again."""

    async def answer(operation: Any, number: int) -> Any:
        return {"value": value}

    outcome, program = await outcome_of(bench, answer)
    assert "call_failed" == outcome["error"]["code"]
    assert 1 == program.asked["call t"]


async def test_e9_a_call_that_ends_as_if_it_were_cancelled_stops_nobody(bench: Bench) -> None:
    """A library's cancelled future inside a tool is that tool's failure."""

    async def answer(operation: Any, number: int) -> Any:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    outcome, program = await outcome_of(bench, answer)
    assert "call_failed" == outcome["error"]["code"]
    assert 1 == program.asked["call t"]


@pytest.mark.parametrize("hooks", [True, False])
async def test_e23_another_try_is_of_the_same_operation(bench: Bench, hooks: bool) -> None:
    async def answer(operation: Any, number: int) -> Any:
        if number == 1:
            raise TimeoutError("slow")
        return {"value": number}

    outcome, program = await outcome_of(bench, answer, pause=0.0, hooks=hooks)
    assert {"value": 2} == outcome
    assert [(1, "failed"), (2, "settled")] == bench.all("SELECT number, state FROM agent_call ORDER BY number")
    assert (1, 2, int(hooks)) == tuple(program.asked[f"{what} t"] for what in ("before", "call", "after"))


async def test_e18_what_is_denied_is_never_dispatched(bench: Bench) -> None:
    async def answer(operation: Any, number: int) -> Any:
        raise AssertionError("it was called")

    outcome, program = await outcome_of(bench, answer, deny=True)
    assert {"before t": 1} == dict(program.asked)
    assert "denied" == outcome["error"]["code"]
    assert OperationState.COMPLETED is bench.operation("id-000001", "t").state
    assert [] == bench.all("SELECT * FROM agent_call")
