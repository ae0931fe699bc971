"""Calls of scripted models and tools, as a log keeps them: each begins before it does anything, and ends or does not.

Processes share a log by its path. Without one it is kept in memory, for this process.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from langgraph_ext.testing.effects import EffectLog
from langgraph_ext.testing.lines import alone, append, whole

__all__ = ["CallLog", "LogPath", "ScriptedCall", "calls_of"]

LogPath = str | PathLike[str] | EffectLog


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """One call of a scripted model or tool."""

    call_id: str
    kind: str
    """`model` or `tool`."""
    name: str
    """Of a model its role, of a tool its name."""
    place: int | str | None
    """Where in its script it was: a number from 0, or its key; None if the script had no step for it."""
    tried: int
    """The how-manieth call of the same request this is, from 1."""
    digest: str
    """Of its request: the same for the same one."""
    key: str | None
    """The name that its caller gave to it; None if its request tells what it is."""
    request: dict[str, Any]
    """What was asked, as JSON: of a model `messages`, `tools`, `tool_choice`, `stop`, `structured_output`, `kwargs`
    and `streamed`; of a tool `args` and `tool_call_id`."""
    pid: int
    """The process."""
    outcome: str | None = None
    """None of a call that has not ended; `answered`, `failed` (it raised), `left` (cancelled, or its stream was
    closed) or `refused` (the script had no step for it)."""
    error: str | None = None
    """The class of the exception that it raised."""

    @property
    def identity(self) -> str:
        """What makes it the same call again: its key, else its request."""
        return self.digest if self.key is None else f"key:{self.key}"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What a model was shown: `type` and `content` of each message, `tool_calls` and `tool_call_id` besides."""
        return list(self.request.get("messages", ()))

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were bound to a model; `request["tools"]` holds their schemas."""
        return [str(tool.get("function", tool).get("name")) for tool in self.request.get("tools", ())]

    @property
    def args(self) -> dict[str, Any]:
        """What a tool was called with."""
        return dict(self.request.get("args", {}))


def calls_of(path: LogPath, name: str | None = None, *, kind: str = "model") -> list[ScriptedCall]:
    """The calls on a log, of all processes, in the order in which they began.

    Args:
        path: The log, or an `EffectLog` on the same file.
        name: Only those of this role, or tool.
        kind: `"model"`, or `"tool"`.
    """
    return [each for each in CallLog(path).calls() if each.kind == kind and name in (None, each.name)]


class CallLog:
    """The calls of models and tools; threads and processes may share it.

    Args:
        path: A file; also one in which effects are recorded. None keeps the calls in memory.
    """

    def __init__(self, path: LogPath | None) -> None:
        given = path.path if isinstance(path, EffectLog) else path
        self.path = None if given is None else os.path.abspath(fspath(given))
        self._kept: list[dict[str, Any]] = []
        self._read = 0
        self._lock = threading.RLock()

    def __deepcopy__(self, memo: dict[int, Any]) -> CallLog:
        """Itself: copies of a model go on with the same script."""
        return self

    def begin(self, choose: Callable[[list[ScriptedCall]], dict[str, Any]]) -> ScriptedCall:
        """Put a call on record, when no other process does.

        Args:
            choose: Is given what is on record, and returns what the call is: `kind`, `name`, `place` and so on.
        """
        with self._lock, self._alone():
            chosen = choose(self.calls())
            begun = {"call_id": uuid.uuid4().hex, "pid": os.getpid(), **chosen}
            self._append({"begins": begun})
            return ScriptedCall(**begun)

    def end(self, call: ScriptedCall, outcome: str, error: BaseException | None = None) -> None:
        """Put on record how a call has ended."""
        ended = {"call_id": call.call_id, "outcome": outcome, "error": None if error is None else type(error).__name__}
        with self._lock, self._alone():
            self._append({"ends": ended})

    def calls(self) -> list[ScriptedCall]:
        """What is on record."""
        with self._lock:
            lines = [*self._lines()]
        ends = {line["ends"]["call_id"]: line["ends"] for line in lines if "ends" in line}
        begun = [line["begins"] for line in lines if "begins" in line]
        return [ScriptedCall(**{**each, **ends.get(each["call_id"], {})}) for each in begun]

    def _append(self, line: dict[str, Any]) -> None:
        if self.path is None:
            self._kept.append(line)
            return
        append(self.path, json.dumps(line, default=repr).encode(), "a call")

    def _lines(self) -> list[dict[str, Any]]:
        """All of them; of a file only what is new has to be read."""
        if self.path is None:
            return self._kept
        try:
            with open(self.path, "rb") as file:
                if os.fstat(file.fileno()).st_size < self._read:  # another file by now
                    self._kept, self._read = [], 0
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            self._kept, self._read = [], 0
            return []
        ended = new[: new.rfind(b"\n") + 1]
        self._read += len(ended)
        self._kept += [found for line in ended.split(b"\n") if (found := whole(line)) is not None]
        return self._kept

    def _alone(self) -> AbstractContextManager[None]:
        """Hold the file, if there is one: two processes that ask at once are the first and the second."""
        return nullcontext() if self.path is None else alone(self.path)
