"""The saver that `langgraph dev` opens, once for each of its loops."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph_ext import LedgerSaver


@asynccontextmanager
async def make() -> AsyncIterator[LedgerSaver]:
    """On the file in the folder that the test named."""
    async with LedgerSaver(f"{os.environ['RUNS']}/runs.db") as saver:
        yield saver
