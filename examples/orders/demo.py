"""The demo: run the order batch, kill it twice, go on each time, and show what was kept and what was charged.

    python -m examples.orders.demo [--db PATH] [--keep] [--kill-after N]

Process 1 is killed with SIGKILL in the middle of the fan-out.  Process 2 goes on from the database and stops at the
approval.  Process 3 brings the answer, and is killed when the bank, a process of its own, has charged an order and has
not answered yet.  Process 4 finishes.  Meanwhile two more processes run the same batch undisturbed on a second
database, with a second bank, and the results are compared.

Exit status: 0 the kills fell where they should, nothing saved ran again, the bank has charged every order once, and
both runs ended alike; 1 otherwise; 2 wrong usage.
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
from examples.orders.charges import Books, Fates, fates, read_books
from examples.orders.facts import FanOut, Saved, database_bytes, fan_out, read_history, read_run, read_saved
from examples.orders.graph import Question
from examples.orders.processes import Ended, Files, behind_a_charge, in_the_fan_out, kill_worker, run_worker
from examples.orders.worklog import read_log
from langgraph_ext.demo.processes import DemoError, open_bank, run_tree

# A terminal says how wide it is; a pipe does not, and rich would break the tables at 80 columns.
_PIPE_COLUMNS = 120

HELD_CHARGE = 5
"""The charge whose answer the bank holds back, so that the second kill falls between the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What only those know who were there; the rest is read from files."""

    workers: tuple[Ended, Ended, Ended, Ended]
    """The killed, the asking, the charging and killed, and the finishing process."""
    at_kill: Saved
    """What the database held while no process of the run was alive, after the first kill."""
    books: Books
    """The same of both ledgers, after the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the demo claims at the end; every part of it is computed."""

    fan_out: FanOut
    charges: Fates
    complete: bool
    """The batch is finished and its state is that of the uninterrupted run."""
    same_report: bool
    sound: bool
    """Nothing in the ledger contradicts itself."""

    @property
    def good(self) -> bool:
        """Whether the run lived up to the promise."""
        kept = self.fan_out.hit and not self.fan_out.repeated and self.charges.hit and self.charges.once
        return kept and self.complete and self.same_report and self.sound

    def __str__(self) -> str:
        tasks, charges = self.fan_out, self.charges
        missed = "" if tasks.hit else " (not in the middle of the fan-out)"
        return (
            f"killed after {len(tasks.finished)} of {tasks.total} tasks{missed}, {len(tasks.saved)} of them saved; "
            f"{len(tasks.kept)} tasks were not run again; saved and run again: {len(tasks.repeated)}; "
            f"killed again with {len(charges.unrecorded)} orders charged and not recorded; "
            f"{len(charges.due)} orders to charge, {charges.times.total()} charges at the bank; "
            f"charged more than once: {len(charges.repeated)}; "
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
            told = [f"demo failed: {error}", *getattr(error, "__notes__", ())]
            console.print("\n".join(told), style="bold red", markup=False)
            return 1
        verdict = show(console, killed, undisturbed, story)
    console.print(f"verdict: {verdict}", style="bold green" if verdict.good else "bold red", soft_wrap=True)
    return 0 if verdict.good else 1


def run(console: Console, killed: Files, undisturbed: Files, *, kill_after: int) -> Story:
    """Run the batch twice: once with two kills, and once without."""
    with ThreadPoolExecutor(max_workers=1) as pool, open_bank(killed.charges, hold=(HELD_CHARGE,)) as bank:
        console.print(f"Process 1 starts; it is killed when {kill_after} tasks of the fan-out have ended ...")
        first = kill_worker(killed, bank, "start", moment=in_the_fan_out(killed, after=kill_after))
        at_kill = read_saved(killed.db)
        if at_kill.state.get("priced"):
            raise DemoError("the kill came too late: the fan-out was already collected in a checkpoint")
        console.print("Killed. Process 2 resumes; meanwhile the same batch runs undisturbed on a second database ...")
        other = pool.submit(_undisturbed, undisturbed)
        second = run_worker(killed, bank, "resume")
        asked = _question(second)
        console.print("Process 2 stopped at the approval and is gone.")
        console.print(tables.question(asked, _decide(asked)))
        console.print(f"Process 3 brings the answer and charges; the bank does not answer charge {HELD_CHARGE} ...")
        third = kill_worker(killed, bank, "answer", *_options(asked), moment=behind_a_charge(killed))
        books = read_books(killed.db, killed.charges)
        console.print("Killed behind that charge. Process 4 resumes, and asks the bank about what is in doubt ...")
        fourth = run_worker(killed, bank, "resume")
        other.result()
    return Story(workers=(first, second, third, fourth), at_kill=at_kill, books=books)


def show(console: Console, killed: Files, undisturbed: Files, story: Story) -> Verdict:
    """Print what happened and judge it."""
    workers, stop = story.workers, story.workers[-1].stop
    entries, state = read_log(killed.log), read_saved(killed.db)
    tasks = fan_out(entries, killed_pid=workers[0].pid, at_kill=story.at_kill)
    due = frozenset(order["order_id"] for order in state.state["free"] + state.state["approved"])
    charges = fates(story.books, killed.charges, due)
    run_id, sound = read_run(killed.db)
    console.print(f"$ langgraph-ext show {run_id[:13]}", style="bold", markup=False)
    console.print(run_tree(killed.db, run_id), highlight=False, markup=False, soft_wrap=True)
    for table in (
        tables.processes(workers),
        tables.nodes(entries, workers),
        tables.checkpoints(read_history(killed.db), workers),
        tables.totals(killed.report, undisturbed.report),
        tables.fates(tasks),
        tables.charges(charges),
    ):
        console.print(table)
    console.print(f"database: {database_bytes(killed.db) / 1024:,.0f} KiB ({killed.db.name})", markup=False)
    finished = stop is not None and stop["finished"]
    return Verdict(
        fan_out=tasks,
        charges=charges,
        complete=finished and state.comparable == read_saved(undisturbed.db).comparable,
        same_report=killed.report.read_bytes() == undisturbed.report.read_bytes(),
        sound=sound,
    )


def _undisturbed(files: Files) -> None:
    with open_bank(files.charges) as bank:
        asking = run_worker(files, bank, "start")
        run_worker(files, bank, "answer", *_options(_question(asking)))


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
