"""The fork server: it has imported the scenario's module and opened nothing, and forks a child for each request.

It is started by `children.Children`, and talks to it in lines of JSON over one socket: it says once that it is ready,
or why not, and then answers each request with how the child ended. When the other side is gone, so are it and its
child. A child that is over is killed with all that it has started.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from inspect import isawaitable
from typing import Any

from langgraph_ext.database import open_database
from langgraph_ext.database.migrations import all_migrations
from langgraph_ext.database.queries import load_queries
from langgraph_ext.testing.effects import EffectLog
from langgraph_ext.testing.points import Kill, Watch, kill_myself, replace_connections
from langgraph_ext.testing.scenario import Scenario, load
from langgraph_ext.testing.states import states_of
from langgraph_ext.testing.tracebacks import readable

__all__ = ["main"]

_LOOK_SECONDS = 0.002
"""How often it looks whether the child has ended."""

Json = dict[str, Any]


def main(line: int, scenario: Json) -> None:
    """Serve until the other side is gone.

    Args:
        line: The file descriptor of the socket.
        scenario: The fields of a `Scenario`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other side decides what Ctrl-C means
    with socket.socket(fileno=line) as mine, mine.makefile("r", encoding="utf-8") as requests:
        try:
            function = load(Scenario(**scenario))
        except BaseException as error:  # noqa: BLE001 - told to the other side
            _print(readable(error))
            _flush()  # who hears of it reads at once what was printed
            _say(mine, {"failed": f"{type(error).__name__}: {error}"})
            return
        load_queries("sqlite")  # what every child would read again
        all_migrations()
        gc.freeze()
        _say(mine, {"ready": True})
        for request in requests:
            _say(mine, _run(mine, function, json.loads(request)))


def _say(line: socket.socket, message: Json) -> None:
    line.sendall(json.dumps(message).encode() + b"\n")


def _run(line: socket.socket, function: Callable[..., Any], request: Json) -> Json:
    """Fork a child, and wait for its end or for the time to be over."""
    pid = os.fork()
    if pid == 0:
        os.close(line.fileno())
        _be_the_child(function, request)
    deadline = time.monotonic() + request["timeout"]
    hangs = False
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        gone = bool(select.select([line], [], [], _LOOK_SECONDS)[0])  # the other side says nothing before the answer
        if gone or time.monotonic() >= deadline:
            hangs = not gone
            os.kill(pid, signal.SIGKILL)
            ended = os.waitpid(pid, 0)
            break
    _kill_group(pid)
    return {"exitcode": os.waitstatus_to_exitcode(ended[1]), "hangs": hangs}


def _kill_group(pid: int) -> None:
    """Kill what a child has started: it leads a group of its own."""
    with suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS then denies it
        os.killpg(pid, signal.SIGKILL)


# -- the child


def _be_the_child(function: Callable[..., Any], request: Json) -> None:
    """Run what was asked for, and end this process. What it prints goes into a file, and so does what it has to say."""
    code = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        output = _appending(request["output"])
        for standard in (1, 2):
            os.dup2(output, standard)
        report = _appending(request["report"])
        try:
            _tell(report, _outcome(function, request, report))
            code = 0
        except BaseException as error:  # noqa: BLE001 - told to the other side
            _print(readable(error))
            _tell(report, {"raised": f"{type(error).__name__}: {error}"})
        _flush()
    finally:
        os._exit(code)


def _appending(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _print(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _outcome(function: Callable[..., Any], request: Json, report: int) -> Json:
    """What a child that is not killed has to say."""
    if request["task"] == "prepare":
        database = open_database(request["database"])
        database.open()
        database.close()
        return {"returned": True}
    if request["task"] == "look":
        return {"returned": True, "states": states_of(request["database"], request["threads"], request["ignored"])}
    kill = None if request["kill"] is None else Kill(**request["kill"])

    def strike(told: str) -> None:
        _tell(report, {"struck": told})
        _flush()
        kill_myself()

    watch = Watch(request["database"], kill, strike)
    replace_connections(watch)
    result = function(f"sqlite:///{request['database']}", EffectLog(request["effects"]))
    if isawaitable(result):
        asyncio.run(_awaited(result))
    return {"returned": True, "committed": watch.committed if kill is None else [], "told": watch.told}


async def _awaited(result: Any) -> None:
    await result


def _tell(report: int, message: Json) -> None:
    os.write(report, json.dumps(message).encode() + b"\n")
