"""Owners: who holds a lease, told so precisely that another process of the host can see whether it is gone.

An owner is one invocation in one process. That a process is gone is known only where its id means the same thing: on
the same boot of the same host, in the same pid namespace. There, no process of that id is proof; so is one that began
at another moment, because ids are given out again, and one that has died and was not collected yet (a zombie).
Everywhere else, and whenever the system does not say, an owner counts as living: its lease ends when it expires.
"""

from __future__ import annotations

import os
import socket
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path

from langgraph_ext import canonical
from langgraph_ext.database.forks import Ancestry, process_exists

__all__ = ["Owner", "is_gone"]

_PROC = Path("/proc")

_DEAD = frozenset("ZXx")
"""States of a process that runs no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One invocation in one process."""

    host: str
    boot_id: str
    """Which boot of the host; "" where the system does not tell, as on macOS. So are the next and `started`."""
    pid_ns: str
    """The namespaces in which pid and start mean something."""
    pid: int
    started: str
    """When the process began, in clock ticks since the boot (`/proc/<pid>/stat`, field 22)."""
    invocation_id: str

    @classmethod
    def here(cls, invocation_id: str) -> Owner:
        """An invocation in this process, which is looked up once: a forked child is another one."""
        return replace(_this_process(os.getpid(), Ancestry.forks, _PROC), invocation_id=invocation_id)

    @classmethod
    def from_text(cls, text: str) -> Owner:
        """The owner that `to_text` wrote; what newer code says besides is passed over."""
        found = canonical.decode(text.encode())
        return cls(**{field.name: found[field.name] for field in fields(cls)})

    def to_text(self) -> str:
        """Canonical JSON."""
        return canonical.encode(asdict(self), where="owner").decode()

    def is_same(self, other: Owner) -> bool:
        """Whether it is the same invocation in the same process; the host may have got another name meanwhile."""
        return self.invocation_id == other.invocation_id and self._process == other._process

    def is_neighbour(self, other: Owner) -> bool:
        """Whether it is, or was, an invocation of the same process."""
        return self._process == other._process and (self.boot_id != "" or self.host == other.host)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host!r} (invocation {self.invocation_id!r})"

    @property
    def _process(self) -> tuple[str, str, int, str]:
        return self.boot_id, self.pid_ns, self.pid, self.started


@lru_cache(maxsize=1)
def _this_process(pid: int, forks: int, proc: Path) -> Owner:
    """This process as an owner, without an invocation; a process of another number or ancestry is another one."""
    found = _look_up("self")
    return Owner(
        host=socket.gethostname(),
        boot_id=_text(proc / "sys/kernel/random/boot_id"),
        pid_ns=" ".join(filter(None, (_link("self/ns/pid"), _link("self/ns/time")))),
        pid=pid,
        started="" if found is None else found.started,
        invocation_id="",
    )


def is_gone(owner: Owner) -> bool:
    """Whether it is known that the owner's process no longer exists. If in doubt, it does."""
    here = Owner.here("")
    if (owner.host, owner.boot_id, owner.pid_ns) != (here.host, here.boot_id, here.pid_ns):
        return False
    if not process_exists(owner.pid):
        return True
    found = _look_up(str(owner.pid)) if _proc_is_ours() else None
    if found is None:
        return False
    return found.is_dead or (owner.started != "" and found.started != owner.started)


@dataclass(frozen=True, slots=True)
class _Process:
    """What `/proc` says of a process."""

    started: str
    is_dead: bool


def _look_up(name: str) -> _Process | None:
    """A process in `/proc`; None if it is not shown there."""
    told = _text(_PROC / name / "stat").rpartition(")")[2].split()  # from field 3 on: a name may hold anything
    if len(told) < 20:
        return None
    state, threads, started = told[0], told[17], told[19]
    # A process whose first thread has ended looks dead while others run on.
    return _Process(started=started, is_dead=state in _DEAD and int(threads) <= 1)


def _proc_is_ours() -> bool:
    """Whether `/proc` counts processes as this process does, and not as another pid namespace."""
    return _link("self") == str(os.getpid())


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _link(name: str) -> str:
    try:
        return os.readlink(_PROC / name)
    except OSError:
        return ""
