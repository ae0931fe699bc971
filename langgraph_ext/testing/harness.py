"""The crash harness: a scenario, killed at every durable boundary and gone on with, must end as if nothing had been.

    undisturbed, twice ──▶ boundaries ──▶ for each: fresh database ─▶ killed there ─▶ gone on with ─▶ compared

Each run is a process of its own on a database of its own, made empty and with all tables before.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from os import PathLike, fspath
from pathlib import Path

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing.children import Children, Files
from langgraph_ext.testing.endings import Ignored
from langgraph_ext.testing.kills import Chosen
from langgraph_ext.testing.points import POINTS, Point
from langgraph_ext.testing.problems import AtMost
from langgraph_ext.testing.progress import OnProgress
from langgraph_ext.testing.report import CrashReport
from langgraph_ext.testing.scenario import Loading, find_scenario
from langgraph_ext.testing.work import Limits, Work

__all__ = ["crash_at_every_commit"]


def crash_at_every_commit(
    target: str,
    *,
    db: str | PathLike[str],
    points: Sequence[Point] = POINTS,
    only: tuple[int, str] | None = None,
    at_most: AtMost = 1,
    ignore_facts: Collection[str] = (),
    ignore_state: Collection[str] = (),
    timeout_seconds: float = 30.0,
    resumes: int = 1,
    max_broken: int = 10,
    workers: int = 1,
    on_progress: OnProgress | None = None,
    path: Sequence[str] | None = None,
) -> CrashReport:
    """Kill a scenario at each of its durable boundaries, go on with it, and report what was not as it should be.

    The scenario is a function `(db_url, effects)`, plain or `async`, that starts its run or, if the database holds it
    already, goes on with it, and returns when the run has ended. It opens its saver on `db_url`, and writes what it
    does to the outside world into `effects`, an `EffectLog`. It is called in processes of its own: undisturbed, twice;
    then, for each transaction that this commits and each point, on a fresh database in a process that kills itself
    there (SIGKILL), and again in a new process, which must return. Afterwards each effect has happened as often as
    allowed, with the same facts as undisturbed, and none is missing, nor in doubt in the ledger; `RunLedger.verify`
    finds nothing; the newest run of each thread stands as undisturbed, and the values at the head of the thread are the
    same. Facts and values that differ between the two undisturbed runs are not compared (`report.varying`). Nothing
    committed, or nobody killed, is a finding as well.

    Args:
        target: `"module:function"`; `f"{__name__}:scenario"` for one in the module that calls this, also in a script.
        db: Where the databases are made: this file for the undisturbed run, files beside it for the others. Those with
            findings are kept. A database that was not made by this function is refused.
        points: `"before"`: all statements are done, not committed. `"inside"`: between any two statements. `"after"`:
            committed, and nobody was told.
        only: Repeat one kill: the boundary and point of a finding, such as `(3, "inside:2")` or `(3, "after")`.
        at_most: How often an effect may happen: a number for all, or numbers by key (else once); None: any number.
        ignore_facts: Names of facts of effects that are not compared; `["*"]`: none is.
        ignore_state: Names of channels whose values are not compared; `["*"]`: none is.
        timeout_seconds: How long a process may run; one that takes longer is killed, and a finding.
        resumes: In how many processes the scenario may be gone on with until it returns, if it raises or dies.
        max_broken: Stop after so many kills with findings.
        workers: How many kills are tried at once, each by a server of its own. More than one only if runs of the
            scenario do not disturb each other: no fixed port, no file but those of the harness.
        on_progress: Called before the first kill and behind each, by one thread at a time.
        path: Where its module is found, as `sys.path`; by default the caller's.

    Returns:
        The report; `report.assert_sound()` in a test.

    Raises:
        InvalidArgument: The target cannot be loaded, the database is no new SQLite file, or an argument means nothing.
    """
    Loading.end_here()
    if not hasattr(os, "fork"):
        raise InvalidArgument("the crash harness forks processes, which this system cannot; use Linux or macOS")
    started = time.monotonic()
    scenario = find_scenario(target)
    chosen = Chosen.of(points, only)
    files = Files(_new_file(db))
    if timeout_seconds <= 0 or min(resumes, max_broken, workers) < 1:
        raise InvalidArgument("timeout_seconds, resumes, max_broken and workers must be greater than 0")
    if isinstance(ignore_facts, str) or isinstance(ignore_state, str):
        raise InvalidArgument("ignore_facts and ignore_state are collections of names, not one text")
    files.remove()
    limits = Limits(
        at_most=at_most,
        timeout_seconds=timeout_seconds,
        resumes=resumes,
        max_broken=max_broken,
        ignored=Ignored(facts=ignore_facts, channels=ignore_state),
    )
    found_in = sys.path if path is None else path
    with ExitStack() as stack:
        children = [
            stack.enter_context(Children(scenario, path=found_in, timeout_seconds=timeout_seconds))
            for _ in range(workers)
        ]
        work = Work(workers=children, files=files, limits=limits, on_progress=on_progress)
        work.do(chosen)
    return CrashReport(
        scenario=str(scenario),
        boundaries=work.boundaries,
        kills=work.struck.count(True),
        not_reached=work.struck.count(False),
        left_out=work.left_out,
        findings=tuple(work.findings),
        ended=dict(work.ended),
        varying=work.varying,
        seconds=time.monotonic() - started,
    )


def _new_file(db: str | PathLike[str]) -> Path:
    """The absolute path; a database that lies there is one of ours, and will be made anew."""
    named = fspath(db)
    if named.startswith(("postgresql://", "postgres://")):
        raise InvalidArgument("the crash harness needs a new SQLite file; PostgreSQL is not supported yet")
    named = named.removeprefix("sqlite:///")
    if "://" in named or named.startswith("file:") or named in ("", ":memory:"):
        raise InvalidArgument("the crash harness needs a new SQLite file that survives a killed process; pass a path")
    files = Files(Path(os.path.abspath(named)))
    if not files.database.parent.is_dir():
        raise InvalidArgument(f"the folder {str(files.database.parent)!r} is not there; make it, or name another file")
    if files.database.exists() and not files.effects.exists():
        raise InvalidArgument(f"{str(files.database)!r} is there already, and not from a crash test; name a new file")
    return files.database
