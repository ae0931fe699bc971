"""Frame: the attempt that a durable body runs in, as the body sees it."""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass

from langgraph_ext.nodes.place import Place

__all__ = ["Frame", "entered", "frame", "left"]

_CURRENT: ContextVar[Frame | None] = ContextVar("langgraph_ext_frame", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One attempt of a durable body.

    A body gets it by a parameter `frame: Frame`, or by `frame()`.
    """

    attempt_id: str
    run_id: str
    node: str
    number: int
    """Which attempt of its visit, from 1."""
    epoch: int
    """The fencing epoch of the lease it runs under."""
    goes_on: bool
    """Whether it has paused before, and goes on behind an answer."""
    place: Place


def frame() -> Frame:
    """The attempt that the caller's durable body runs in.

    Raises:
        RuntimeError: The caller is in no durable body.
    """
    found = _CURRENT.get()
    if found is None:
        raise RuntimeError("frame() was called outside of a durable body; wrap the node with @durable")
    return found


def entered(found: Frame) -> Token[Frame | None]:
    """A body begins; what it calls finds its frame."""
    return _CURRENT.set(found)


def left(token: Token[Frame | None]) -> None:
    """The body has ended."""
    _CURRENT.reset(token)
