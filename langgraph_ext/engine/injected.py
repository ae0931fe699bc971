"""Arguments of tools that the engine fills in, and no model sees."""

from __future__ import annotations

from langchain_core.tools import InjectedToolArg

__all__ = ["InjectedIdempotencyKey"]


class InjectedIdempotencyKey(InjectedToolArg):
    """Marks the argument of a tool that is given the idempotency key of its call (rule A10).

    The key is text, the same each time this call is made, over retries, crashes and takeovers, and another for every
    other call. It stands in no schema that a model sees, and a value that a model supplies for it is dropped::

        def refund(order: str, key: Annotated[str, InjectedIdempotencyKey]) -> str: ...
    """
