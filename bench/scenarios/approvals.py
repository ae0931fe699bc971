"""Approvals: what a person has decided, given twice, badly, and before a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.scenarios.acting import Act
from bench.scenarios.cases import Case
from bench.scenarios.sides import Form, Side
from bench.scenarios.stage import Found, Stage, counted

__all__ = ["at_once", "killed_behind_it", "malformed"]

_BEGIN = "Pay the orders."

MALFORMED: tuple[Any, ...] = ("yes", {"decisions": []}, {"decisions": [{"type": "maybe"}]})


def at_once(side: Side, folder: Path, form: Form) -> Found:
    """Four payments wait for approval; two processes approve all of them at once."""
    case = Case(orders=("a", "b", "c", "d"), seconds=(0.3,), approval=True)
    stage = _asked(side, case, folder / side.name, form)
    seen = stage.play_at_once(Act(approve=True), Act(approve=True))
    ended = stage.seen(Act(look=True)).ended
    errors = [each.error for each in seen if each is not None and each.error is not None]
    told = f"executions per call: {', '.join(map(str, stage.times))}; "
    told += f"refused: {', '.join(errors)}" if errors else "neither was refused"
    return Found(
        told=told + ("" if ended else "; the turn did not end"),
        counts={"repeated": stage.repeated, "lost": stage.lost, "refused": len(errors), "ended": int(ended)},
        sound=(stage.repeated, stage.lost, ended) == (0, 0, True),
    )


def malformed(side: Side, folder: Path, form: Form) -> Found:
    """An approval that is none, in three shapes, each on a thread of its own; then a good one."""
    completed, early, errors = 0, 0, []
    for number, shape in enumerate(MALFORMED):
        case = Case(orders=("a", "b"), seconds=(0.0,), approval=True)
        stage = _asked(side, case, folder / f"{side.name}-{number}", form)
        early += sum(_answered(stage, shape).times)
        seen = stage.play(Act(approve=True))
        assert seen is not None, "nobody kills it"
        completed += seen.ended and stage.times == [1, 1]
        if seen.error is not None:
            errors.append(seen.error)
    told = f"{completed} of {len(MALFORMED)} threads completed"
    if errors:
        told += f"; the good answer ended with {', '.join(errors)}"
    return Found(
        told=told,
        counts={"completed": completed, "executed_early": early},
        sound=(completed, early) == (len(MALFORMED), 0),
    )


def killed_behind_it(side: Side, folder: Path, form: Form) -> Found:
    """Four payments are approved; the process is killed right after the second effect, and another one goes on."""
    case = Case(orders=("a", "b", "c", "d"), seconds=(0.15, 0.45, 0.75, 1.05), approval=True)
    stage = _asked(side, case, folder / side.name, form)
    stage.killed(Act(approve=True, kill_after=2))
    seen = stage.seen(Act(operator=True))
    told = f"{seen.asked_again} of 4 approvals asked for again; {counted(stage.repeated, 'payment')} made twice, "
    told += f"{stage.lost} lost, {stage.strange} of what was not approved; "
    told += "the turn ended" if seen.ended else f"the turn did not end ({seen.error or 'no error'})"
    told += f", after {counted(seen.doubts, 'question')}" if seen.doubts else ""
    return Found(
        told=told,
        counts={
            "asked_again": seen.asked_again,
            "repeated": stage.repeated,
            "lost": stage.lost,
            "not_approved": stage.strange,
            "ended": int(seen.ended),
            "questions": seen.doubts,
        },
        sound=(seen.asked_again, stage.repeated, stage.lost, stage.strange, seen.ended) == (0, 0, 0, 0, True),
    )


def _asked(side: Side, case: Case, folder: Path, form: Form) -> Stage:
    """A thread that waits for approvals."""
    stage = Stage(side, case, folder, form)
    assert stage.seen(Act(say=_BEGIN)).waits, f"{side.label}: it does not ask"
    return stage


def _answered(stage: Stage, answer: Any) -> Stage:
    stage.play(Act(answer=answer))
    return stage
