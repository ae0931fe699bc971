"""A worker: one process that takes the case as far as it gets, then says on stdout where it stopped.

    python -m langgraph_ext.demo.worker start   --bank URL --db returns.db [--model NAME]
    python -m langgraph_ext.demo.worker resume  (as start)
    python -m langgraph_ext.demo.worker approve --db returns.db     the person: approves what is asked, and runs nothing

Exit status: 0 the case is closed or waits for an answer, 1 a node failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from langgraph_ext import AgentGraphEngine, LedgerSaver, with_ledger
from langgraph_ext.demo.graph import build
from langgraph_ext.demo.payments import Payments
from langgraph_ext.demo.story import CENTS, ORDER
from langgraph_ext.errors import LangGraphExtError
from langgraph_ext.testing import ScriptedChatModel, call

CASE = {
    "order": ORDER,
    "cents": CENTS,
    "messages": [HumanMessage(f"The lamp of order {ORDER} arrived broken. I want my money back.", id="complaint")],
}
CONFIG: RunnableConfig = {"configurable": {"thread_id": "case-1"}}


def scripted() -> BaseChatModel:
    """A model that needs no key: it looks up, refunds and says so."""
    refund = call("refund", {"order": ORDER, "cents": CENTS})
    return ScriptedChatModel(script=[call("find_order", {"order": ORDER}), refund, "Your money is on its way back."])


def go_on(db: Path, bank: str, model: str | None, given: Any) -> dict[str, Any]:
    """Open the database, go on from its last checkpoint, and stop at a question or at the end."""
    with LedgerSaver(db) as saver:
        app: Any = with_ledger(build(Payments(bank), model or scripted()).compile(checkpointer=saver))
        final = app.invoke(given, CONFIG, durability="sync")
    asked = [each.value for each in final.get("__interrupt__", ())]
    return {"question": asked[0] if asked else None, "said": final["messages"][-1].text}


def approve(db: Path) -> dict[str, Any]:
    """Approve everything that is asked. The process that goes on with the case need not be this one."""
    with LedgerSaver(db) as saver:
        engine = AgentGraphEngine(saver.ledger)
        requests = [each for run in engine.runs() for each in engine.requests(run.agent_run_id, pending=True)]
        for each in requests:
            decisions = [{"type": "approve"} for _ in each.payload["action_requests"]]
            engine.answer(each.agent_run_id, each.request_id, {"decisions": decisions})
        return {"approved": [action for each in requests for action in each.payload["action_requests"]]}


def main() -> None:
    """Run one worker, as its command line says."""
    parser = argparse.ArgumentParser(prog="langgraph_ext.demo.worker", description="Run one process of the case.")
    parser.add_argument("job", choices=["start", "resume", "approve"])
    parser.add_argument("--db", type=Path, required=True, help="the run's database")
    parser.add_argument("--bank", help="the URL of the payment server")
    parser.add_argument("--model", help='a chat model, such as "openai:gpt-5-mini" (extra langchain)')
    args = parser.parse_args()
    if args.bank is None and args.job != "approve":
        parser.error(f"{args.job} needs --bank")
    try:
        if args.job == "approve":
            done = approve(args.db)
        else:
            done = go_on(args.db, args.bank, args.model, CASE if args.job == "start" else None)
    except LangGraphExtError as error:
        sys.exit(f"{type(error).__name__}: {error}")
    sys.stdout.write(json.dumps(done))


if __name__ == "__main__":
    main()
