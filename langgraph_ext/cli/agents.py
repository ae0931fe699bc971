"""Agent runs of the engine: what `show` tells of one, and the command that resolves a call in doubt.

The engine is loaded when it is first needed: the other commands do without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

import langgraph_ext
from langgraph_ext import canonical
from langgraph_ext.cli.agent_story import (
    AgentStory,
    Shown,
    agent_node,
    doubt_node,
    operation_node,
    transcript_node,
)
from langgraph_ext.cli.ending import exits_with_code
from langgraph_ext.cli.options import DatabaseOption, JsonOption, RunArgument
from langgraph_ext.cli.place import is_locked, opened, run_id_of
from langgraph_ext.cli.plain import plain
from langgraph_ext.cli.printing import Printer, print_json
from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.agent_threads import thread_of
from langgraph_ext.ledger.records import Run
from langgraph_ext.render import Line, Node, draw, payload

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_core.messages import BaseMessage

    from langgraph_ext.engine.records import TranscriptEntry

__all__ = [
    "agent_nodes",
    "agent_story_of",
    "as_json",
    "as_lines",
    "beside",
    "children_of",
    "resolve_operation",
]

_PAGE = 1000
_COLUMNS = 60
"""Of a payload, as everywhere in `show`."""


def agent_story_of(ledger: RunLedger, run: Run, *, transcript: bool) -> AgentStory | None:
    """What there is to tell of a run of the engine; None if it is none, or nobody has the keys to what it holds."""
    if is_locked(ledger.database):
        return None
    if run.thread_id != thread_of(run.run_id):  # where the engine keeps those that no graph drives
        return None
    with langgraph_ext.AgentGraphEngine(ledger) as engine:
        try:
            found = engine.get_run(run.run_id)
        except NotFound:
            return None
        return AgentStory(
            run=found,
            tasks=engine.tasks(run.run_id),
            operations=engine.operations(run.run_id),  # before the slots, some of which may name newer ones
            slots=engine.slots(run.run_id),
            tickets=engine.tickets(run.run_id),
            doubts=engine.doubts(run.run_id),
            requests=engine.requests(run.run_id),
            transcript=list(_entries(engine, run.run_id)) if transcript else None,
        )


def _entries(engine: langgraph_ext.AgentGraphEngine, run_id: str) -> Iterator[TranscriptEntry]:
    after = 0
    while page := engine.transcript(run_id, after=after, limit=_PAGE):
        yield from page
        after = page[-1].seq


def children_of(ledger: RunLedger, run_id: str, *, transcript: bool) -> list[tuple[str, AgentStory]]:
    """What there is to tell of the agent runs that a run's attempts have started, each with its attempt."""
    stories = [(each, agent_story_of(ledger, each, transcript=transcript)) for each in ledger.children(run_id)]
    return [(child.parent_attempt_id or "", story) for child, story in stories if story is not None]


def agent_nodes(
    stories: Iterable[tuple[str, AgentStory]], printer: Printer, *, now: datetime, payloads: bool
) -> dict[str, list[Node]]:
    """They as trees, by attempt."""
    found: dict[str, list[Node]] = {}
    shown = _shown(printer, payloads)
    for attempt_id, story in stories:
        found.setdefault(attempt_id, []).append(agent_node(story, now=now, shown=shown))
    return found


def as_lines(
    story: AgentStory, printer: Printer, *, now: datetime, payloads: bool, database: str | None
) -> Iterator[Line]:
    """The story as trees: the agent run, and what stands beside it."""
    yield from draw(agent_node(story, now=now, shown=_shown(printer, payloads)), printer.fit)
    yield from beside(story, printer, payloads=payloads, database=database)


def beside(story: AgentStory, printer: Printer, *, payloads: bool, database: str | None) -> Iterator[Line]:
    """The transcript, if it is told; each doubt, whole, with what to do about it."""
    if story.transcript is not None:
        yield from draw(transcript_node(story.transcript, _shown(printer, payloads)), printer.fit)
    for doubt in story.doubts:
        yield from draw(doubt_node(story.run.agent_run_id, doubt, database), printer.uncut)


def _shown(printer: Printer, payloads: bool) -> Shown:
    """How a payload is shown."""

    def shown(value: object) -> str:
        return payload(value, columns=_COLUMNS, only_ascii=printer.fit.only_ascii) if payloads else ""

    return shown


def as_json(story: AgentStory, *, payloads: bool) -> dict[str, Any]:
    """The story for programs, with whole payloads or without any."""
    told: dict[str, Any] = {
        "agent_run": plain(story.run),
        "tasks": plain(story.tasks),
        "operations": plain(story.operations),
        "slots": [plain(each) | {"result": _message(each.result)} for each in story.slots],
        "tickets": plain(story.tickets),
        "doubts": [each.operation_id for each in story.doubts],
        "requests": plain(story.requests),
    }
    if story.transcript is not None:
        told["transcript"] = [plain(each) | {"message": _message(each.message)} for each in story.transcript]
    return told if payloads else _without_payloads(told)


def _message(message: BaseMessage | None) -> dict[str, Any] | None:
    """A message as langchain-core's `message_to_dict` writes it."""
    return None if message is None else {"type": message.type, "data": message.model_dump()}


def _without_payloads(told: dict[str, Any]) -> dict[str, Any]:
    left = dict(told)
    left["agent_run"] = _without(told["agent_run"], "input", "output")
    calls = [[_without(call, "partial") for call in each["calls"]] for each in told["operations"]]
    operations = [_without(each, "request", "outcome") for each in told["operations"]]
    left["operations"] = [each | {"calls": made} for each, made in zip(operations, calls, strict=True)]
    left["slots"] = [_without(each, "result", "decision") for each in told["slots"]]
    left["requests"] = [_without(each, "payload", "answer") for each in told["requests"]]
    if "transcript" in told:
        left["transcript"] = [_without(each, "message") for each in told["transcript"]]
    return left


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: part for name, part in fields.items() if name not in names}


def resolve_operation(
    run: RunArgument,
    operation: Annotated[str, typer.Argument(metavar="OPERATION_ID", help="The call's operation, as show prints it.")],
    result: Annotated[
        str | None, typer.Option("--result", metavar="JSON", help="It happened, and the tool would have returned this.")
    ] = None,
    did_not_happen: Annotated[bool, typer.Option("--did-not-happen", help="Nothing was done.")] = False,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a tool call of an agent run came to that is in doubt, after looking it up outside. Once.

    The agent run goes on when it is driven again: with the result, or by calling the tool then.
    """
    with exits_with_code(), opened(db) as ledger:
        run_id, told = run_id_of(ledger, run), _said(result, did_not_happen=did_not_happen)
        with langgraph_ext.AgentGraphEngine(ledger) as engine:
            found = engine.resolve(run_id, operation, **told)
        if as_json:
            print_json({"operation": plain(found)})
            return
        printer = Printer()
        printer.lines(draw(operation_node(found), printer.fit))


def _said(result: str | None, *, did_not_happen: bool) -> dict[str, Any]:
    """What the options say of a call, as the engine's `resolve` takes it."""
    if (result is None) != did_not_happen:
        raise InvalidArgument("pass --result JSON or --did-not-happen, one of them")
    if result is None:
        return {"happened": False}
    try:
        return {"happened": True, "result": canonical.decode(result.encode())}
    except ValueError:
        raise InvalidArgument("--result is not JSON; quote it for the shell: --result '\"paid\"'") from None
