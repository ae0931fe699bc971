"""The command `show`: a run as a tree."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from langgraph_ext.cli.agents import agent_nodes, agent_story_of, as_lines, beside, children_of
from langgraph_ext.cli.agents import as_json as agent_as_json
from langgraph_ext.cli.budget import usage_notes
from langgraph_ext.cli.ending import exits_with_code
from langgraph_ext.cli.options import DatabaseOption, JsonOption, NoPayloadsOption, RunArgument
from langgraph_ext.cli.place import opened, run_id_of
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import Printer, print_json
from langgraph_ext.cli.questions import effects_of, interrupts_of, shown_by
from langgraph_ext.cli.story import run_node
from langgraph_ext.render import draw

__all__ = ["show"]


def show(
    run: RunArgument,
    transcript: Annotated[
        bool, typer.Option("--transcript", help="Of a run of the engine: its messages, too, in their order.")
    ] = False,
    no_payloads: NoPayloadsOption = False,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run as a tree: its visits in order, their outcomes, errors, attempts, effects and questions; what it used.

    Behind a visit stands when it ended, counted from the start of the run. Of a run of the engine, and of those that
    agent nodes have started: tasks, what they have called, the slots of each decision, what they ask, and what to do
    about calls in doubt.
    """
    with exits_with_code(), opened(db) as ledger:
        run_id = run_id_of(ledger, run)
        found = ledger.run(run_id)
        if (story := agent_story_of(ledger, found, transcript=transcript)) is not None:
            if as_json:
                print_json({"run": plain(found)} | agent_as_json(story, payloads=not no_payloads))
                return
            printer = Printer()
            printer.lines(as_lines(story, printer, now=datetime.now(UTC), payloads=not no_payloads, database=db))
            return
        visits = ledger.visits(run_id, inherited=True)
        questions, effects = interrupts_of(ledger, run_id), effects_of(ledger, run_id)
        attempts, usage = ledger.attempts(run_id), ledger.usage(run_id)
        stories = children_of(ledger, run_id, transcript=transcript)
        if as_json:
            asked, done = plain(questions), plain(effects)
            if no_payloads:
                asked, done = _without("answer", _without("value", asked)), _without("receipt", done)
            told = {"run": plain(found), "usage": plain(usage), "visits": plain(visits), "attempts": plain(attempts)}
            told["agents"] = [agent_as_json(each, payloads=not no_payloads) for _, each in stories]
            print_json(told | {"interrupts": asked, "effects": done})
            return
        printer = Printer()
        shown = shown_by(payloads=not no_payloads, only_ascii=printer.fit.only_ascii)
        now, used = datetime.now(UTC), tuple(usage_notes(usage))
        agents = agent_nodes(stories, printer, now=now, payloads=not no_payloads)
        tree = run_node(found, visits, questions, effects, attempts, agents=agents, used=used, now=now, shown=shown)
        printer.lines(draw(tree, printer.fit))
        for _, each in stories:
            printer.lines(beside(each, printer, payloads=not no_payloads, database=db))


def _without(name: str, records: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{field: part for field, part in each.items() if field != name} for each in records]
