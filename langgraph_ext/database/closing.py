"""Closing: objects that are used under `with` or `async with`, and closed at its end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["Closing"]


class Closing:
    """Closed at the end of a `with` or `async with`, however it ends."""

    def close(self) -> None:
        """Close it. May be called twice."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """As `close`, without holding the event loop."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
