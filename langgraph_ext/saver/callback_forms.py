"""Callback forms: one handler whose callbacks are awaited by async code, and called by sync code.

LangChain asks a handler for a callback by its name, and awaits what is a coroutine function. But what an async callback
raises under a sync model is logged and lost; and a sync one holds an event loop up. So a callback that may refuse, and
waits for a commit, gives out its async form to LangChain's async manager alone, and its sync form to everybody else.

LangChain does not say who asks: that is read off the caller's frame. Where the function of that name is gone some day,
all get the sync form, which is sound and blocks; a test notices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import manager

__all__ = ["EitherForm"]

_AWAITS = "_ahandle_event_for_handler"
"""The function of LangChain's that looks a callback up, and awaits it if it is a coroutine function."""


class EitherForm:
    """A callback in two forms, as an attribute of a handler's class."""

    def __init__(self, called: Callable[..., None], awaited: Callable[..., Any]) -> None:
        self._called, self._awaited = called, awaited

    def __get__(self, handler: Any, owner: type) -> Any:
        """The form that whoever looks it up has a use for."""
        code = sys._getframe(1).f_code
        is_awaited = code.co_name == _AWAITS and code.co_filename == manager.__file__
        return (self._awaited if is_awaited else self._called).__get__(handler, owner)
