"""Problems: what is wrong with how a run ended, compared with the undisturbed one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from langgraph_ext.testing.children import Ended
from langgraph_ext.testing.differences import Flat, differing, short
from langgraph_ext.testing.endings import Ending, Varying

__all__ = ["AtMost", "Problem", "problems_of_end", "problems_of_ending"]

Problem = tuple[str, str]
"""A code and what was wrong."""

AtMost = int | None | Mapping[str, int | None]
"""How often an effect may happen: for all, or by key (else once); None: any number of times."""


def problems_of_end(ended: Ended, timeout_seconds: float) -> Iterator[Problem]:
    """What is wrong with how a process ended that nobody killed."""
    if ended.hangs:
        yield "hangs", f"the scenario had not returned after {timeout_seconds:g} s"
    elif ended.raised is not None:
        yield "raised", f"the scenario raised {ended.raised}"
    elif not ended.returned:
        how = f"signal {-ended.exitcode}" if ended.exitcode < 0 else f"exit code {ended.exitcode}"
        yield "died", f"the process ended with {how} before the scenario returned"


def problems_of_ending(found: Ending, undisturbed: Ending, varying: Varying, at_most: AtMost) -> Iterator[Problem]:
    """What is wrong outside, in the ledger, and in the state of the threads."""
    yield from _of_counts(found, undisturbed, at_most)
    yield from _of_facts(found, undisturbed, varying)
    for finding in found.findings:
        yield f"ledger:{finding.code}", finding.message
    yield from _of_doubts(found, undisturbed)
    yield from _of_runs(found, undisturbed)
    yield from _of_states(found, undisturbed, varying)


def _of_counts(found: Ending, undisturbed: Ending, at_most: AtMost) -> Iterator[Problem]:
    for key, times in found.effects.items():
        allowed = at_most.get(key, 1) if isinstance(at_most, Mapping) else at_most
        if allowed is not None and len(times) > allowed:
            yield "effect_repeated", f"effect {key!r} happened {len(times)} times, {allowed} allowed"
        if key not in undisturbed.effects:
            yield "effect_unexpected", f"effect {key!r} happened, and does not in the undisturbed run"
    for key in undisturbed.effects:
        if key not in found.effects:
            yield "effect_missing", f"effect {key!r} did not happen"


def _of_facts(found: Ending, undisturbed: Ending, varying: Varying) -> Iterator[Problem]:
    """How often is counted elsewhere, so what was the same several times is the same as once."""
    for key in found.effects.keys() & undisturbed.effects.keys():
        ignored = {path for each, path in varying.facts if each == key}
        happened = _kinds(found.effects[key], ignored)
        expected = _kinds(undisturbed.effects[key], ignored)
        others = [each for each in happened if each not in expected]
        lacking = [each for each in expected if each not in happened]
        if others:
            like = (lacking or expected)[0]
            paths = list(differing(others[0], like))
            yield (
                "effect_differs",
                f"effect {key!r} happened {_with(others[0], paths)}; undisturbed {_with(like, paths)}",
            )
        elif lacking:
            yield "effect_differs", f"effect {key!r} did not happen {_with(lacking[0], list(lacking[0]))}"


def _kinds(times: Sequence[Flat], ignored: Collection[str]) -> list[dict[str, str]]:
    kinds: list[dict[str, str]] = []
    for facts in times:
        kept = {path: value for path, value in facts.items() if path not in ignored}
        if kept not in kinds:
            kinds.append(kept)
    return kinds


def _with(facts: Flat, paths: Sequence[str]) -> str:
    named = [f"{path}={short(facts[path])}" for path in paths if path in facts]
    return f"with {', '.join(named)}" if named else f"without {', '.join(paths)}"


def _of_doubts(found: Ending, undisturbed: Ending) -> Iterator[Problem]:
    for (node_path, name), count in found.doubts.items():
        if count > undisturbed.doubts.get((node_path, name), 0):
            yield "effect_in_doubt", f"effect {name!r} of {node_path!r} is left in doubt; undisturbed it is not"


def _of_runs(found: Ending, undisturbed: Ending) -> Iterator[Problem]:
    for thread_id in sorted({*found.statuses, *undisturbed.statuses}):
        stands = found.statuses.get(thread_id, "missing")
        expected = undisturbed.statuses.get(thread_id, "missing")
        if stands != expected:
            yield "run_status", f"the run of thread {thread_id!r} is {stands}; undisturbed it is {expected}"


def _of_states(found: Ending, undisturbed: Ending, varying: Varying) -> Iterator[Problem]:
    """One for each thread, of its first difference. A run that stands differently has another state for that reason."""
    for thread_id in sorted(found.states.keys() & undisturbed.states.keys()):
        if found.statuses[thread_id] != undisturbed.statuses[thread_id]:
            continue
        mine, theirs = found.states[thread_id], undisturbed.states[thread_id]
        paths = [path for path in differing(mine, theirs) if (thread_id, path) not in varying.states]
        if paths:
            path, more = paths[0], f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
            stands, expected = short(mine.get(path)), short(theirs.get(path))
            yield (
                "state_differs",
                f"{path!r} in the state of thread {thread_id!r} is {stands}; undisturbed it is {expected}{more}",
            )
