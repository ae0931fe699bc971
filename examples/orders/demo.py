"""The demo: run the order batch, kill it in the middle of the fan-out, resume it, answer it, and show what was kept.

    python -m examples.orders.demo [--db PATH] [--keep] [--kill-after N]

Process 1 is killed with SIGKILL.  Process 2 goes on from the database and stops at the approval.  Process 3 brings
the answer and finishes.  Meanwhile two more processes run the same batch undisturbed on a second database, and the
results are compared.

Exit status: 0 the kill fell into the fan-out, nothing saved ran again, and both runs ended alike; 1 otherwise;
2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from examples.orders import tables
from examples.orders.facts import FanOut, Saved, database_bytes, fan_out, read_history, read_run, read_saved
from examples.orders.graph import Question
from examples.orders.processes import DemoError, Ended, Files, kill_worker, run_tree, run_worker
from examples.orders.worklog import read_log

# A terminal says how wide it is; a pipe does not, and rich would break the tables at 80 columns.
_PIPE_COLUMNS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What only those know who were there; the rest is read from files."""

    workers: tuple[Ended, Ended, Ended]
    """The killed, the resuming and the answering process."""
    at_kill: Saved
    """What the database held while no process of the run was alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the demo claims at the end; every part of it is computed."""

    fan_out: FanOut
    complete: bool
    """The batch is finished and its state is that of the uninterrupted run."""
    same_report: bool
    sound: bool
    """Nothing in the ledger contradicts itself."""

    @property
    def good(self) -> bool:
        """Whether the run lived up to the promise."""
        return self.fan_out.hit and not self.fan_out.repeated and self.complete and self.same_report and self.sound

    def __str__(self) -> str:
        tasks = self.fan_out
        missed = "" if tasks.hit else " (not in the middle of the fan-out)"
        return (
            f"killed after {len(tasks.finished)} of {tasks.total} tasks{missed}, {len(tasks.saved)} of them saved; "
            f"{len(tasks.kept)} tasks were not run again; saved and run again: {len(tasks.repeated)}; "
            f"state complete: {self.complete}; same report as the uninterrupted run: {self.same_report}; "
            f"ledger sound: {self.sound}"
        )


def main() -> int:
    """Run the demo; returns the exit status."""
    args = _arguments()
    console = Console() if sys.stdout.isatty() else Console(width=_PIPE_COLUMNS)
    with _folder(args) as folder:
        killed = Files(args.db or folder / "orders.db")
        undisturbed = Files(killed.db.with_name(killed.db.stem + "-uninterrupted.db"))
        try:
            story = run(console, killed, undisturbed, kill_after=args.kill_after)
        except DemoError as error:
            console.print(f"demo failed: {error}", style="bold red", markup=False)
            return 1
        verdict = show(console, killed, undisturbed, story)
    console.print(f"verdict: {verdict}", style="bold green" if verdict.good else "bold red", soft_wrap=True)
    return 0 if verdict.good else 1


def run(console: Console, killed: Files, undisturbed: Files, *, kill_after: int) -> Story:
    """Run the batch twice: once with a kill, and once without."""
    console.print(f"Process 1 starts; it is killed when {kill_after} tasks of the fan-out have ended ...")
    first = kill_worker(killed, "start", after=kill_after)
    at_kill = read_saved(killed.db)
    if at_kill.state.get("priced"):
        raise DemoError("the kill came too late: the fan-out was already collected in a checkpoint")
    console.print("Killed. Process 2 resumes; meanwhile the same batch runs undisturbed on a second database ...")
    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(_undisturbed, undisturbed)
        second = run_worker(killed, "resume")
        asked = _question(second)
        console.print("Process 2 stopped at the approval and is gone. Process 3 brings the answer ...")
        console.print(tables.question(asked, _decide(asked)))
        third = run_worker(killed, "answer", *_options(asked))
        other.result()
    return Story(workers=(first, second, third), at_kill=at_kill)


def show(console: Console, killed: Files, undisturbed: Files, story: Story) -> Verdict:
    """Print what happened and judge it."""
    first, _, third = workers = story.workers
    entries = read_log(killed.log)
    tasks = fan_out(entries, killed_pid=first.pid, at_kill=story.at_kill)
    for table in (
        tables.processes(workers),
        tables.nodes(entries, workers),
        tables.fates(tasks),
        tables.checkpoints(read_history(killed.db), workers),
        tables.totals(killed.report, undisturbed.report),
    ):
        console.print(table)
    run_id, sound = read_run(killed.db)
    console.print(f"$ langgraph-ext show {run_id[:13]}", style="bold", markup=False)
    console.print(run_tree(killed.db, run_id), highlight=False, markup=False, soft_wrap=True)
    console.print(f"database: {database_bytes(killed.db) / 1024:,.0f} KiB ({killed.db.name})", markup=False)
    finished = third.stop is not None and third.stop["finished"]
    return Verdict(
        fan_out=tasks,
        complete=finished and read_saved(killed.db).state == read_saved(undisturbed.db).state,
        same_report=killed.report.read_bytes() == undisturbed.report.read_bytes(),
        sound=sound,
    )


def _undisturbed(files: Files) -> None:
    asking = run_worker(files, "start")
    run_worker(files, "answer", *_options(_question(asking)))


def _question(worker: Ended) -> Question:
    if worker.stop is None or worker.stop["question"] is None:
        raise DemoError(f"worker {worker.job!r} did not stop at the approval")
    return worker.stop["question"]


def _decide(asked: Question) -> list[str]:
    """The human of the demo: ship all but the most expensive order."""
    by_total = sorted(asked["orders"], key=lambda order: order["gross_cents"])
    return [order["order_id"] for order in by_total[:-1]]


def _options(asked: Question) -> list[str]:
    """The decision as a worker's command line."""
    return [option for order_id in _decide(asked) for option in ("--approve", order_id)]


@contextmanager
def _folder(args: argparse.Namespace) -> Iterator[Path]:
    """Where the files go: beside `--db`, or into a temporary folder."""
    if args.db is None and not args.keep:
        with tempfile.TemporaryDirectory(prefix="orders-demo-") as folder:
            yield Path(folder)
        return
    kept = args.db.parent if args.db else Path(tempfile.mkdtemp(prefix="orders-demo-"))
    print(f"files are kept in {kept}")
    yield kept


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples.orders.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--db", type=Path, help="a new file for the killed run's database; the others go beside it")
    parser.add_argument("--keep", action="store_true", help="keep the temporary folder and say where it is")
    parser.add_argument("--kill-after", type=int, default=7, metavar="N", help="kill when N tasks of the fan-out ended")
    args = parser.parse_args()
    if args.db is not None:
        args.db = args.db.resolve()
        _refuse_leftovers(parser, args.db)
    return args


def _refuse_leftovers(parser: argparse.ArgumentParser, db: Path) -> None:
    """Stop when the folder is missing or holds files of an earlier run, which would be counted with this one."""
    if not db.parent.is_dir():
        parser.error(f"--db: there is no folder {db.parent}")
    left = sorted(path.name for path in db.parent.iterdir() if path.name.startswith(db.stem))
    if left:
        parser.error(f"--db wants a new name; {db.parent} already holds {', '.join(left)}")


if __name__ == "__main__":
    sys.exit(main())
