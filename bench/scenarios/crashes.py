"""Crashes: processes that are killed in the middle of tools and models, and those that go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.scenarios.acting import Act, Seen
from bench.scenarios.cases import Case, pays
from bench.scenarios.sides import Form, Side
from bench.scenarios.stage import Found, Stage, counted
from langgraph_ext.testing import call, calls, exits, say, tries

__all__ = ["after_the_second", "all_at_once", "limited", "workers"]

_BEGIN = "Pay the orders."
_CRASHES = 4
_LIMIT = 3
_MOST_PROCESSES = 8


def after_the_second(side: Side, folder: Path, form: Form) -> Found:
    """Four tools, one acting after the other; killed right after the second effect."""
    case = Case(orders=("a", "b", "c", "d"), seconds=(0.15, 0.45, 0.75, 1.05))
    return _killed_after(side, case, folder, form, 2)


def all_at_once(side: Side, folder: Path, form: Form) -> Found:
    """Eight tools that act at the same moment; killed right after the last effect."""
    return _killed_after(side, Case(orders=tuple("abcdefgh"), seconds=(0.3,)), folder, form, 8)


def _killed_after(side: Side, case: Case, folder: Path, form: Form, effect: int) -> Found:
    stage = Stage(side, case, folder / side.name, form)
    stage.killed(Act(say=_BEGIN, kill_after=effect))
    seen = stage.seen(Act(operator=True))
    told = f"{counted(stage.repeated, 'effect')} repeated, {stage.lost} lost; {_end(seen)}"
    return Found(
        told=told + _asked(seen),
        counts={"repeated": stage.repeated, "lost": stage.lost, "ended": int(seen.ended), "questions": seen.doubts},
        sound=(stage.repeated, stage.lost, seen.ended) == (0, 0, True),
    )


def _end(seen: Seen) -> str:
    return "the turn ended" if seen.ended else f"the turn did not end ({seen.error or 'no error'})"


def _asked(seen: Seen) -> str:
    return f", after {counted(seen.doubts, 'question')}" if seen.doubts else ""


def dies_first(case: Case) -> list[Any]:
    """A model during whose first call the process is killed."""
    [first, *rest] = pays(case)
    return [tries(exits("middle", first), first), *rest]


def workers(side: Side, folder: Path, form: Form) -> Found:
    """A thread is left by a process that was killed; two workers resume it at once, and another time three."""
    told: list[str] = []
    counts: dict[str, int] = {}
    sound = True
    for number in (2, 3):
        case = Case(orders=("a", "b", "c", "d"), seconds=(0.3,), script=dies_first)
        stage = Stage(side, case, folder / f"{side.name}-{number}", form)
        stage.killed(Act(say=_BEGIN))
        seen = [each for each in stage.play_at_once(*[Act(operator=True)] * number) if each is not None]
        ended = stage.seen(Act(look=True)).ended
        told.append(f"{number} workers: {counted(stage.repeated, 'duplicate')}" + _refused(seen))
        counts |= {f"duplicates_{number}": stage.repeated, f"ended_{number}": int(ended)}
        sound &= (stage.repeated, stage.lost, ended) == (0, 0, True)
    return Found(told="; ".join(told), counts=counts, sound=sound)


def _refused(seen: list[Seen]) -> str:
    errors = [each.error for each in seen if each.error is not None]
    return f" ({len(errors)} refused: {', '.join(sorted(set(errors)))})" if errors else ""


def dies_often(case: Case) -> list[Any]:
    """A model during whose first calls the process is killed, and which asks for one payment after the other then."""
    steps = [calls(call("pay", {"order": order})) for order in case.orders]
    return [tries(*[exits("middle", steps[0])] * _CRASHES, steps[0]), *steps[1:], say("done")]


def limited(side: Side, folder: Path, form: Form) -> Found:
    """At most three calls of the model; the process is killed in the middle of one, up to four times."""
    case = Case(orders=tuple("abcdef"), seconds=(0.0,), script=dies_often, model_calls=_LIMIT)
    stage = Stage(side, case, folder / side.name, form)
    seen, crashes = stage.play(Act(say=_BEGIN)), 0
    while seen is None and crashes < _MOST_PROCESSES:
        crashes += 1
        seen = stage.play(Act(operator=True))
    over = max(0, stage.dispatches - _LIMIT)
    told = f"{counted(stage.dispatches, 'dispatch', 'dispatches')}, {over} over the limit; "
    told += counted(crashes, "crash", "crashes")
    if seen is not None and seen.error is not None:
        told += f", then the turn ended with {seen.error}"
    return Found(
        told=told,
        counts={"dispatches": stage.dispatches, "crashes": crashes},
        sound=stage.dispatches <= _LIMIT and seen is not None and stage.repeated == 0,
    )
