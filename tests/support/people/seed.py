"""A seed: what it chooses, and its story from the beginning to the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.support.people.cast import Cast, Worked, make
from tests.support.people.clock import PEOPLE, Clock, Stand, wait_until
from tests.support.people.person import Act, Intent, intents
from tests.support.people.worker import Kill, Work

__all__ = ["Played", "Story", "play", "story_of"]

_LAST_POINT = {"before": 30, "after": 30, "between": 150}
"""Of a kind of points: about as many as a worker passes whom nobody disturbs, or fewer."""

_ATTACHED = 0.85
"""Of so many stories, the graph is attached."""

_CANCELLING = {(): 9, (0,): 1, (1,): 1, (0, 1): 2}
"""Who cancels the run, and how often as against the others."""


@dataclass(frozen=True, slots=True)
class Story:
    """What a seed has chosen."""

    seed: int
    form: str
    durability: str
    turns: int
    """What the run may use at first."""
    attached: bool
    """Else it has no budget, and no lease but those of its durable nodes."""
    kills: Sequence[Kill]
    """One for each worker but the last."""
    rests: Sequence[bool]
    """Whether the people may act before the next worker comes."""
    wanted: Sequence[list[Intent]]
    """What each person means to do."""


@dataclass(frozen=True, slots=True)
class Played:
    """A story at its end."""

    story: Story
    folder: str
    workers: Sequence[Worked]
    acts: Sequence[Act]

    @property
    def kills(self) -> int:
        """How many workers were killed."""
        return sum(worker.killed for worker in self.workers)

    def accepted(self, kind: str) -> int:
        """How many acts of a kind were accepted."""
        return sum(act.accepted and act.kind.startswith(kind) for act in self.acts)

    def told(self, found: Sequence[str]) -> str:
        """What was found, who did what, and how to play it alone."""
        story = self.story
        lines = [f"seed {story.seed}: python -m tests.support.people {story.seed}", *(f"  {each}" for each in found)]
        bounds = f"{story.turns} turns at first" if story.attached else "not attached"
        lines.append(f"  {story.form}, durability {story.durability}, {bounds}")
        for number, worker in enumerate(self.workers):
            died = f"died {story.kills[number].kind} {story.kills[number].at}" if worker.killed else "came to its end"
            lines.append(f"  worker {number} {died}; {worker.said}")
        lines += [f"  {act.person}: {act.kind} {act.said}: {act.code} {act.words}" for act in self.acts]
        return "\n".join(lines)


def story_of(seed: int) -> Story:
    """What a seed chooses."""
    dice = Random(seed)
    kinds = dice.choices(list(_LAST_POINT), k=dice.choice((1, 1, 2, 3)))
    (cancelling,) = dice.choices(list(_CANCELLING), list(_CANCELLING.values()))
    return Story(
        seed=seed,
        form=dice.choice(("sync", "async")),
        durability=dice.choice(("sync", "async")),
        turns=dice.randrange(1, 6),
        attached=dice.random() < _ATTACHED,
        kills=[Kill(kind, dice.randrange(1, 1 + _LAST_POINT[kind])) for kind in kinds],
        rests=[dice.random() < 0.3 for _ in kinds],
        wanted=[intents(seed, number, cancels=number in cancelling) for number in range(len(PEOPLE))],
    )


def play(story: Story, cast: Cast, folder: Path, empty: Path) -> Played:
    """Play a story, in a folder of its own.

    Raises:
        AssertionError: A process hangs.
    """
    folder.mkdir()
    make(str(folder), empty)
    cast.let_act(str(folder), list(story.wanted))
    workers: list[Worked] = []
    with Clock.of(str(folder)) as clock:
        for number, kill in enumerate((*story.kills, None)):
            given = (str(folder), story.seed, number, story.form, story.durability, story.turns, story.attached)
            workers.append(cast.let_work(Work(*given, kill)))
            if not workers[-1].killed:
                break
            if story.rests[number]:
                clock.stands(Stand.DEAD)
                wait_until(lambda: clock.all_have_acted, "the people have acted")
        clock.stands(Stand.OVER)
    return Played(story, str(folder), workers, cast.acted())
