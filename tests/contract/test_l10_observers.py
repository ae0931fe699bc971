"""L10: observers are told after the commit; one that raises is told on, and what was committed stays."""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph_ext import LedgerSaver
from tests.support.apps import CONFIG, asks, fails, line, names, says, tried
from tests.support.crowd import together


def observed(backend: Any, **options: Any) -> tuple[LedgerSaver, list[Any]]:
    """A saver and the list of events that its observer was told of."""
    told: list[Any] = []
    saver = LedgerSaver(backend.url(), on_event=told.append, **options)
    return saver, told


def test_l10_an_observer_is_told_of_each_event_once_and_in_order(backend: Any, form: str) -> None:
    saver, told = observed(backend)
    app = line(saver, a=says("a"), b=fails(1))
    if form == "async":
        try:
            asyncio.run(app.ainvoke({"log": []}, CONFIG))
        except ValueError:
            asyncio.run(app.ainvoke(None, CONFIG))
    else:
        tried(app)
        tried(app, None)
    saver.close()

    assert backend.open().ledger.events(limit=1000) == told
    assert "run.succeeded" == told[-1].name


def test_l10_a_new_saver_tells_nothing_that_was_there_before(backend: Any) -> None:
    """Also when its first call brings a task's writes."""
    app = line(backend.open(), a=fails(9))
    tried(app)
    saver, told = observed(backend)
    tried(line(saver, a=fails(9)), None)
    saver.close()

    assert ["visit.failed", "run.failed"] == list(names(told))


def test_l10_it_is_told_after_the_commit(backend: Any) -> None:
    """What it reads in another connection has happened."""
    seen: list[bool] = []
    other = backend.open()
    saver = LedgerSaver(backend.url(), on_event=lambda event: seen.append(event in other.ledger.events(limit=1000)))
    tried(line(saver, a=says("a")))
    saver.close()

    assert seen
    assert all(seen)


def test_l10_one_that_raises_is_reported_once_and_undoes_nothing(backend: Any) -> None:
    failed: list[tuple[str, str]] = []

    def broken(event: Any) -> None:
        if event.name == "interrupt.requested":
            raise RuntimeError("observer")

    saver = LedgerSaver(
        backend.url(), on_event=broken, on_observer_error=lambda event, error: failed.append((event.name, str(error)))
    )
    tried(line(saver, ask=asks("sure?")))

    assert [("interrupt.requested", "observer")] == failed
    assert 1 == len(saver.ledger.interrupts(pending=True))
    saver.close()


def test_l10_without_a_handler_its_error_is_logged_without_payloads(backend: Any, caplog: Any) -> None:
    def broken(event: Any) -> None:
        raise RuntimeError("secret")

    saver = LedgerSaver(backend.url(), on_event=broken)
    tried(line(saver, a=says("a")))
    saver.close()

    assert "observer failed" in caplog.text
    assert "secret" not in caplog.text


def test_l10_threads_at_once_tell_each_event_once(backend: Any) -> None:
    """Also when an observer uses the saver itself."""
    told: list[Any] = []

    def on_event(event: Any) -> None:
        told.append(event.cursor)
        saver.get_tuple(CONFIG)

    saver = LedgerSaver(backend.url(), on_event=on_event)

    def turn(number: int) -> None:
        line(saver, a=says("a")).invoke({"log": []}, {"configurable": {"thread_id": f"t{number}"}})

    together(*(lambda number=number: turn(number) for number in range(6)))
    events = saver.ledger.events(limit=1000)
    saver.close()

    assert [event.cursor for event in events] == told
    assert 6 == list(names(events)).count("run.succeeded")
