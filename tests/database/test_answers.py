"""Answers: a future whose task goes on at once; in all else a future."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from langgraph_ext.database.loops import Answer


def run(story: Any) -> Any:
    return asyncio.run(story, debug=True)


def test_the_task_has_gone_on_when_settle_returns() -> None:
    async def story() -> list[str]:
        said: list[str] = []
        answer = Answer(loop=asyncio.get_running_loop())

        async def waiter() -> None:
            said.append(await answer)

        def settle() -> None:
            answer.settle("answered", None)
            said.append("settled")

        task = asyncio.create_task(waiter())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(settle)
        await task
        return said

    assert ["answered", "settled"] == run(story())


def test_an_error_is_raised_where_it_is_awaited_and_in_the_tasks_own_context() -> None:
    name = contextvars.ContextVar("name", default="none")

    async def story() -> str:
        answer = Answer(loop=asyncio.get_running_loop())

        async def waiter() -> str:
            name.set("waiter")
            with pytest.raises(KeyError, match="gone"):
                await answer
            return name.get()

        task = asyncio.create_task(waiter())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(answer.settle, None, KeyError("gone"))
        return await task + name.get()

    assert "waiternone" == run(story())


def test_one_that_was_settled_before_or_twice_or_has_several_waiters_is_a_future() -> None:
    async def story() -> list[Any]:
        loop = asyncio.get_running_loop()
        early, late = Answer(loop=loop), Answer(loop=loop)
        early.settle(1, None)
        early.settle(2, None)
        waiters = [asyncio.ensure_future(asyncio.wait_for(asyncio.shield(late), 5)) for _ in range(3)]
        await asyncio.sleep(0)
        loop.call_soon(late.settle, 3, None)
        return [await early, *await asyncio.gather(*waiters)]

    assert [1, 3, 3, 3] == run(story())


def test_a_cancelled_wait_ends_and_a_later_answer_is_dropped() -> None:
    async def story() -> bool:
        answer = Answer(loop=asyncio.get_running_loop())
        task = asyncio.ensure_future(_await(answer))
        await asyncio.sleep(0)
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError):
            await task
        answer.settle("late", None)
        return answer.cancelled()

    assert run(story())


async def _await(answer: Answer) -> Any:
    return await answer


@pytest.mark.parametrize("after", [True, False])
def test_ctrl_c_around_the_answer_loses_no_task(after: bool) -> None:
    """It comes when the answer is there and the task has not gone on, or just before: a later turn makes up for it."""

    class Interrupted(Answer):
        def set_result(self, result: Any) -> None:
            if after:
                super().set_result(result)
            raise KeyboardInterrupt

    loop = asyncio.new_event_loop()
    answer = Interrupted(loop=loop)
    task = loop.create_task(_await(answer))
    loop.run_until_complete(asyncio.sleep(0))
    loop.call_soon(answer.settle, "answered", None)
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(asyncio.sleep(1))
    if not after:
        loop.call_soon(Answer.set_result, answer, "answered")
        loop.call_soon(answer._go_on)

    assert "answered" == loop.run_until_complete(asyncio.wait_for(task, 5))
    loop.close()
