"""A worker: one process that takes the batch as far as it gets, then says on stdout where it stopped.

    python -m examples.orders.worker start  --bank URL --db orders.db --log work.log --report report.json
    python -m examples.orders.worker resume  (as start)
    python -m examples.orders.worker answer  (as start)  --approve NL-2044

Exit status: 0 the batch is finished or waits for an answer, 1 a node failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from examples.orders.graph import OrdersState, Question, Shop, build
from examples.orders.worklog import WorkLog
from langgraph_ext import LedgerSaver, with_ledger
from langgraph_ext.demo.payments import Payments

HERE = Path(__file__).parent
THREAD = "orders-2026-11-28"

# LangGraph saves a task's result on the thread pool that also runs the tasks.  With fewer threads than tasks no
# result would be saved before the last task has begun, and a kill would cost the whole fan-out.
THREADS = 64


class Stop(TypedDict):
    """Where a worker stopped."""

    question: Question | None
    """What a human has to answer, or None."""
    finished: bool


def main() -> None:
    """Run one worker, as its command line says."""
    args = _arguments()
    shop = Shop(prices=HERE / "prices.csv", report=args.report, payments=Payments(args.bank))
    print(json.dumps(run(args.db, args.log, shop, _input(args.job, args.approve))))


def run(db: Path, log: Path, shop: Shop, given: OrdersState | Command[Any] | None) -> Stop:
    """Open the database, go on from its last checkpoint and stop at a question or at the end."""
    config: RunnableConfig = {
        "configurable": {"thread_id": THREAD},
        "max_concurrency": THREADS,
        "callbacks": [WorkLog(log)],
    }
    with LedgerSaver(db) as saver:
        app = with_ledger(build().compile(checkpointer=saver))
        app.invoke(given, config, context=shop, durability="sync")
        state = app.get_state(config)
    return Stop(
        question=state.interrupts[0].value if state.interrupts else None,
        finished=not state.next and not state.tasks,
    )


def _input(job: str, approved: list[str]) -> OrdersState | Command[Any] | None:
    if job == "start":
        return {"source": str(HERE / "orders.csv")}
    return Command(resume=approved) if job == "answer" else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples.orders.worker", description="Run one process of the order batch.")
    parser.add_argument("job", choices=["start", "resume", "answer"])
    parser.add_argument("--bank", required=True, help="the URL of the payment server")
    parser.add_argument("--db", type=Path, required=True, help="the run's database")
    parser.add_argument("--log", type=Path, required=True, help="the work log to append to")
    parser.add_argument("--report", type=Path, required=True, help="the report to write")
    parser.add_argument("--approve", metavar="ORDER", action="append", default=[], help="an order to ship (answer)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
