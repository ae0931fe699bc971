"""A RunLedger in one of its two forms: `reader.visits(…)` is `ledger.visits(…)`, or `avisits` on an event loop."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Any

from langgraph_ext import RunLedger
from langgraph_ext.ledger import Event
from tests.support.driver import Form


class Reader:
    """Calls each method of a ledger in the given form and returns what it answers."""

    def __init__(self, ledger: RunLedger, form: Form, loop: asyncio.AbstractEventLoop) -> None:
        self.ledger, self.form, self.loop = ledger, form, loop

    def __getattr__(self, name: str) -> Any:
        if self.form == "sync":
            return getattr(self.ledger, name)
        method = getattr(self.ledger, f"a{name}")
        return lambda *args, **kwargs: self.loop.run_until_complete(method(*args, **kwargs))

    def follow(self, *args: Any, count: int | None = None, **kwargs: Any) -> list[Event]:
        """What `follow` gives, `count` events at most; it is closed then."""
        if self.form == "sync":
            events = self.ledger.follow(*args, **kwargs)
            try:
                return list(islice(events, count))
            finally:
                events.close()
        return self.loop.run_until_complete(self._afollow(count, *args, **kwargs))

    async def _afollow(self, count: int | None, *args: Any, **kwargs: Any) -> list[Event]:
        events, found = self.ledger.afollow(*args, **kwargs), []
        try:
            async for event in events:
                found.append(event)
                if len(found) == count:
                    break
        finally:
            await events.aclose()
        return found
