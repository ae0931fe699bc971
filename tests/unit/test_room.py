"""Room: places in the queue go to those who wait, in their order, whoever gives up meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from langgraph_ext.database.room import Room


class Guests:
    """Coroutines that take a place and keep it until they are told to go."""

    def __init__(self, places: int) -> None:
        self.room = Room(places)
        self.inside: list[str] = []
        self.leave: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        """One after the other; those who find no place wait."""
        for name in names:
            self.leave[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._stay(name))
        await settled()

    async def _stay(self, name: str) -> None:
        async with self.room:
            self.inside.append(name)
            try:
                await self.leave[name].wait()
            finally:
                self.inside.remove(name)


async def settled() -> None:
    """Until all that is ready has run."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_places_are_given_in_the_order_of_coming() -> None:
    async def story() -> None:
        guests = Guests(2)
        await guests.come(*"abcd")
        assert list("ab") == guests.inside
        guests.leave["b"].set()
        await settled()
        assert list("ac") == guests.inside
        guests.leave["a"].set()
        guests.leave["c"].set()
        await settled()
        assert list("d") == guests.inside
        await guests.come("e")
        assert list("de") == guests.inside
        for each in "de":
            guests.tasks[each].cancel()
        await settled()

    asyncio.run(story())


@pytest.mark.parametrize("given", [False, True], ids=["while it waits", "when its place was just given"])
def test_who_gives_up_takes_no_place_with_it(given: bool) -> None:
    async def story() -> None:
        guests = Guests(1)
        await guests.come(*"abc")
        if given:
            guests.leave["a"].set()
            await asyncio.sleep(0)  # `a` goes, and gives its place to `b`, which has not run since
            assert [] == guests.inside
        guests.tasks["b"].cancel()
        guests.leave["a"].set()
        await settled()
        assert guests.tasks["b"].cancelled()
        assert ["c"] == guests.inside
        guests.leave["c"].set()
        await guests.come("d")
        assert ["d"] == guests.inside
        guests.tasks["d"].cancel()
        await settled()

    asyncio.run(story())


def test_who_comes_does_not_overtake_those_who_wait() -> None:
    """Not even in the moment between a place's being given and its being taken."""

    async def story() -> None:
        guests = Guests(1)
        await guests.come("a", "b")
        guests.leave["a"].set()
        await asyncio.sleep(0)
        await guests.come("c")
        assert ["b"] == guests.inside
        for each in "bc":
            guests.tasks[each].cancel()
        await settled()

    asyncio.run(story())


def test_who_is_closed_while_it_waits_takes_no_place_with_it() -> None:
    """A coroutine may end by something else than being cancelled."""

    async def story() -> None:
        guests = Guests(1)
        await guests.come("a")
        waiting = guests._stay("b")
        guests.leave["b"] = asyncio.Event()
        waiting.send(None)
        waiting.close()
        guests.leave["a"].set()
        await settled()
        await guests.come("c")
        assert ["c"] == guests.inside
        guests.tasks["c"].cancel()
        await settled()

    asyncio.run(story())
