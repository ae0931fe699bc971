"""Children: processes that run a scenario, forked off a server that has imported its module."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing.differences import Flat
from langgraph_ext.testing.points import Kill
from langgraph_ext.testing.scenario import Scenario

__all__ = ["Children", "Ended", "Files"]

_IMPORT_SECONDS = 120.0
"""How long a module may take to be imported."""

_GRACE_SECONDS = 10.0
"""How much longer than a child the server may take to say that it has ended."""

_END_SECONDS = 2.0
"""How long the server may take to end."""

_PROGRAM = """\
import json, sys
line, sys.path[:], scenario = json.loads(sys.argv.pop())
from langgraph_ext.testing.server import main
main(line, scenario)
"""

_OUTPUT = 4000
"""Characters of what a child printed that are kept, from its end, in whole lines."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one run of a scenario, which lie beside each other."""

    database: Path

    @property
    def again(self) -> Files:
        """The files of the second undisturbed run."""
        return Files(self.database.with_name(f"{self.database.stem}-again{self.database.suffix}"))

    @property
    def effects(self) -> Path:
        """Its effect log; where it lies, the database was made by the harness."""
        return self._beside(".effects")

    @property
    def output(self) -> Path:
        """What its processes printed."""
        return self._beside(".output")

    @property
    def report(self) -> Path:
        """What its processes had to say."""
        return self._beside(".report")

    def at(self, kill: Kill) -> Files:
        """The files of the run that is killed there."""
        name = f"{self.database.stem}-{kill.boundary}-{str(kill).replace(':', '-')}{self.database.suffix}"
        return Files(self.database.with_name(name))

    def remove(self) -> None:
        """Remove them all."""
        own = (self.effects, self.output, self.report)
        for each in (self.database, self._beside("-wal"), self._beside("-shm"), *own):
            each.unlink(missing_ok=True)

    def _beside(self, end: str) -> Path:
        return self.database.with_name(self.database.name + end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a child ended."""

    exitcode: int
    """Negative: the signal."""
    hangs: bool
    """Whether it had to be killed because its time was over."""
    said: dict[str, Any]
    output: str

    @property
    def returned(self) -> bool:
        """Whether the scenario returned."""
        return "returned" in self.said

    @property
    def struck(self) -> bool:
        """Whether it killed itself."""
        return "struck" in self.said

    @property
    def killed_at(self) -> str:
        """What the transaction is in which it killed itself, in words; empty if it did not get so far."""
        return str(self.said["struck"])

    @property
    def raised(self) -> str | None:
        """Type and message of what the scenario raised."""
        return self.said.get("raised")

    @property
    def committed(self) -> list[int]:
        """Of a run without a kill: how many statements each transaction had."""
        return list(self.said.get("committed", ()))

    @property
    def told(self) -> list[str]:
        """As `committed`: what each was, in words."""
        return list(self.said.get("told", ()))


class Children:
    """A server and its children, one at a time; ended by `with`.

    Args:
        scenario: What they run.
        path: Where they look for modules, as `sys.path`.
        timeout_seconds: How long a child may run.

    Raises:
        InvalidArgument: The scenario cannot be loaded; a note holds what was printed meanwhile.
    """

    def __init__(self, scenario: Scenario, *, path: Sequence[str], timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._line, theirs = socket.socketpair()
        arguments = json.dumps([theirs.fileno(), list(path), asdict(scenario)])
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, arguments],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for this process, which then ends the server
            )
        self._answers = self._line.makefile("r", encoding="utf-8")
        try:
            try:
                answer = self._heard(_IMPORT_SECONDS)
            except RuntimeError as error:
                answer = {"failed": str(error)}
            if "failed" in answer:
                failed = InvalidArgument(f"scenario {str(scenario)!r} cannot be loaded: {answer['failed']}")
                if said := self._said().rstrip():
                    failed.add_note(said)
                raise failed
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def prepare(self, files: Files) -> None:
        """Make an empty database, with all its tables."""
        ended = self._asked({"task": "prepare", **_named(files)}, files)
        assert ended.returned, f"no database could be made:\n{ended.output}"

    def run(self, files: Files, kill: Kill | None = None) -> Ended:
        """Let the scenario start or go on, in a process that kills itself as told."""
        request = {"task": "run", "kill": None if kill is None else asdict(kill), **_named(files)}
        return self._asked(request, files)

    def look(self, files: Files, threads: Sequence[str], ignored: Sequence[str]) -> dict[str, Flat]:
        """The states of these threads, without the channels of those names."""
        ended = self._asked({"task": "look", "threads": threads, "ignored": ignored, **_named(files)}, files)
        assert ended.returned, f"no state could be read:\n{ended.output}"
        states: dict[str, Flat] = ended.said["states"]
        return states

    def _asked(self, request: dict[str, Any], files: Files) -> Ended:
        files.report.unlink(missing_ok=True)
        self._line.sendall(json.dumps({**request, "timeout": self._timeout_seconds}).encode() + b"\n")
        answer = self._heard(self._timeout_seconds + _GRACE_SECONDS)
        said: dict[str, Any] = {}
        for line in files.report.read_text("utf-8").splitlines() if files.report.exists() else ():
            said |= json.loads(line)
        files.report.unlink(missing_ok=True)
        output = _end_of(files.output.read_text("utf-8", "replace")) if files.output.exists() else ""
        return Ended(exitcode=answer["exitcode"], hangs=answer["hangs"], said=said, output=output)

    def _heard(self, seconds: float) -> dict[str, Any]:
        self._line.settimeout(seconds)
        try:
            answer = self._answers.readline()
        except TimeoutError:
            raise RuntimeError(f"the process said nothing in {seconds:g} s") from None
        finally:
            self._line.settimeout(None)
        if not answer:
            raise RuntimeError(f"the process ended with {self._server.wait()}")
        told: dict[str, Any] = json.loads(answer)
        return told

    def _said(self) -> str:
        """What importing the module printed."""
        self._printed.seek(0)
        return _end_of(self._printed.read().decode("utf-8", "replace"))

    def stop(self) -> None:
        """Let a thread that waits for a child go on at once, with a RuntimeError, and the server end."""
        with suppress(OSError):  # the server may have gone before
            self._line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the server, and its child if one runs."""
        self._answers.close()
        self._line.close()
        try:
            self._server.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it is still importing
            self._server.kill()
            self._server.wait()
        self._printed.close()


def _end_of(text: str) -> str:
    if len(text) <= _OUTPUT:
        return text
    _, _, whole = text[-_OUTPUT:].partition("\n")
    return f"… {len(text) - len(whole)} characters before …\n{whole}"


def _named(files: Files) -> dict[str, str]:
    return {each: str(getattr(files, each)) for each in ("database", "effects", "output", "report")}
