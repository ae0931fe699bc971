"""Questions, listed and answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

import typer

from langgraph_ext import canonical
from langgraph_ext.cli.ending import exits_with_code, say
from langgraph_ext.cli.options import DatabaseOption, JsonOption, NoPayloadsOption
from langgraph_ext.cli.place import opened, run_id_of
from langgraph_ext.cli.plain import iso, plain
from langgraph_ext.cli.printing import Printer, print_json
from langgraph_ext.cli.questions import answer_shown_by, shown_by
from langgraph_ext.cli.story import Shown
from langgraph_ext.errors import ConflictError, InvalidArgument
from langgraph_ext.ledger import RunLedger
from langgraph_ext.ledger.records import Interrupt
from langgraph_ext.render import Column, Fit, Line, table

__all__ = ["answer", "interrupts"]

_COLUMNS = (
    Column("INTERRUPT", "label"),
    Column("STATUS", "status"),
    Column("ASKED"),
    Column("THREAD"),
    Column("NODE"),
    Column("QUESTION"),
    Column("ANSWER"),
)

_PAYLOADS = ("value", "answer")


def interrupts(
    thread: Annotated[str | None, typer.Option("--thread", metavar="T", help="Only questions of this thread.")] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Only questions of this run (its id, or its beginning).")
    ] = None,
    pending: Annotated[bool, typer.Option("--pending", help="Only questions that wait for an answer.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="At most so many questions.")
    ] = 100,
    no_payloads: NoPayloadsOption = False,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """List questions and their answers, the oldest first."""
    with exits_with_code(), opened(db) as ledger:
        run_id = None if run is None else run_id_of(ledger, run)
        found = ledger.interrupts(thread_id=thread, run_id=run_id, pending=True if pending else None, limit=limit)
        if as_json:
            print_json({"interrupts": [_as_json(each, payloads=not no_payloads) for each in found]})
            return
        if not found:
            say("no interrupts")
            return
        printer = Printer()
        printer.lines(_lines(found, printer.fit, payloads=not no_payloads))


def answer(
    said: Annotated[
        list[str],
        typer.Argument(metavar="[INTERRUPT_ID] VALUE", help="The question's id, and the answer as JSON."),
    ],
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="T", help="The thread that asks; without an id, its only pending question."),
    ] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="WHO", help="Who answers, for the record.")] = None,
    db: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer a question. The first answer counts: the same again changes nothing, another one is refused.

    Its task takes the answer when the run is gone on with: app.invoke(ledger.resume_command(thread_id), config).
    """
    with exits_with_code(), opened(db) as ledger:
        *ids, value = said
        if len(ids) > 1 or not (ids or thread):
            raise InvalidArgument(
                "pass INTERRUPT_ID VALUE, or --thread T VALUE; langgraph-ext interrupts lists the ids"
            )
        interrupt_id = ids[0] if ids else _only_pending(ledger, thread or "")
        (found,) = ledger.answer({interrupt_id: _value(value)}, thread_id=thread, by=by)
        if as_json:
            print_json({"interrupt": plain(found)})
            return
        printer = Printer()
        printer.lines(_lines([found], printer.fit, payloads=True))


def _value(text: str) -> Any:
    try:
        return canonical.decode(text.encode())
    except ValueError:
        raise InvalidArgument("VALUE is not JSON; quote it for the shell: 'true', '\"yes\"', '{\"ok\": 1}'") from None


def _only_pending(ledger: RunLedger, thread_id: str) -> str:
    found = ledger.interrupts(thread_id=thread_id, pending=True, limit=2)
    if len(found) == 1:
        return found[0].interrupt_id
    code = "answer_ambiguous" if found else "interrupt_not_pending"
    raise ConflictError(
        f"thread {thread_id!r}: {'several questions are' if found else 'no question is'} pending; langgraph-ext "
        f"interrupts --thread {thread_id!r} lists them",
        code=code,
    )


def _as_json(question: Interrupt, *, payloads: bool) -> dict[str, Any]:
    fields: dict[str, Any] = plain(question)
    return fields if payloads else {name: part for name, part in fields.items() if name not in _PAYLOADS}


def _lines(questions: Iterable[Interrupt], to: Fit, *, payloads: bool) -> Iterator[Line]:
    asked = shown_by(payloads=payloads, only_ascii=to.only_ascii)
    answered = answer_shown_by(payloads=payloads, only_ascii=to.only_ascii)
    return table(_COLUMNS, [_row(each, asked, answered) for each in questions], to)


def _row(question: Interrupt, asked: Shown, answered: Callable[[Interrupt], str]) -> tuple[str, ...]:
    at = iso(question.requested_at, digits=0)
    node, said = question.node or "", answered(question) if question.answer_type else ""
    by = f" by {question.answered_by}" if question.answered_by else ""
    return question.interrupt_id, question.status, at, question.thread_id, node, asked(question), f"{said}{by}"
