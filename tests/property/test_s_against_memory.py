"""The same random operations on LedgerSaver and on InMemorySaver give the same answers.

Where the two differ on purpose, InMemorySaver is corrected by `tests.support.reference.Reference`, which says why:

- What you put is what you get: values are a checkpoint's own, whatever `new_versions` says and whatever other
  checkpoints use the same versions (InMemorySaver looks values up by version).
- `list` goes by checkpoint id over all namespaces and threads (InMemorySaver goes namespace by namespace).
- Reads hide an answer that was taken, and what a graph's task wrote beside an error that nobody handles (S12).
- InMemorySaver lacks `delete_for_runs`, `copy_thread` and `prune`.

Most values that change are stored as large ones, in strands (S2): here, a few bytes are enough for that.

Not among the operations, as LangGraph never does it: a value that changes while its version stays the same and is not
listed as new, and parents that form a circle.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as check_machine

from tests.support.build import NULL_TASK, VERSIONS
from tests.support.changes import HOW, Change
from tests.support.ciphers import NEWER
from tests.support.faults import full
from tests.support.growing import check_strands, made_small
from tests.support.world import CHANNELS, DROP, KEEP, SPACES, World

SEEDS = 2000 if os.environ.get("LANGGRAPH_EXT_TEST_FULL") == "1" else 60

FAILED_ONCE = {555}
"""Stories that showed a defect."""
STEPS = 60

# Mostly one place, one task and few channels: operations must meet each other to be interesting.
THREADS = ["t", "t", "t", "t'%_"]
PLACES = [("t", "")] * 4 + [(thread, ns) for thread in ("t", "t'%_") for ns in SPACES]
TASKS = ["t1", "t1", "t2", NULL_TASK]
PATHS = ["", "~b", "~a", "~é"]
FORMS = ["sync", "async"]
KINDS = ["keep_latest", "keep two", "sweep", "runs", "runs", "thread", "delete", "delete_all"]
LISTED = ["changed", "changed", "all", "none"]
RUN_IDS = ["r1", "r2", "r'3"]
TAGS = [None, True, 1, 1.0, "1", "", "x'y", [1], {"x": 1}]
SPECIAL = ["__error__", "__error__", "__interrupt__", "__resume__", "__scheduled__", "__error_source_node__"]
PLAIN = [
    None,
    True,
    False,
    0,
    1,
    1.5,
    -1,
    2**63,
    1e300,
    "",
    "x",
    "é🙂",
    "nul\0",
    b"",
    b"\0\xff",
    [],
    {},
    [1, [2]],
    {"k": 0},
]

places, threads = st.sampled_from(PLACES), st.sampled_from(THREADS)
forms, savers, picks = st.sampled_from(FORMS), st.integers(0, 1), st.integers(0, 11)
values = st.sampled_from(PLAIN) | st.integers(0, 99) | st.text(max_size=3)
values |= st.builds(Change, how=st.sampled_from(HOW), word=st.text("abc", max_size=30), at=st.integers(0, 20))
change = st.just(KEEP) | st.just(KEEP) | st.just(DROP) | values | values
run_ids, tags = st.sampled_from(RUN_IDS), st.sampled_from(TAGS)
answers = st.lists(st.integers(0, 9), max_size=3) | st.integers(0, 9)
writes = (
    st.tuples(st.sampled_from(CHANNELS), values)
    | st.tuples(st.sampled_from(SPECIAL), values)
    | st.tuples(st.just("__resume__"), answers)
)
puts = st.fixed_dictionaries(
    {
        "new": picks,
        "above": picks,
        "changes": st.fixed_dictionaries(dict.fromkeys(CHANNELS, change)),
        "listed": st.sampled_from(LISTED),
        "run_id": st.none() | run_ids,
        "tag": tags,
    }
)
calls = st.fixed_dictionaries(
    {
        "pick": picks,
        "batch": st.lists(writes, max_size=4),
        "task": st.sampled_from(TASKS),
        "path": st.sampled_from(PATHS),
        "in_graph": st.booleans(),
    }
)
filters = st.fixed_dictionaries({}, optional={"tag": tags, "run_id": st.none() | run_ids, "step": picks})


class AgainstMemory(RuleBasedStateMachine):
    """Random operations on a World; every step compares all there is."""

    @initialize(kind=st.sampled_from(sorted(VERSIONS)))
    def begin(self, kind: str) -> None:
        self.world = World(VERSIONS[kind])

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()

    @rule(form=forms, which=savers, place=places, some=st.lists(puts, min_size=1, max_size=4))
    def put(self, form: str, which: int, place: Any, some: list[dict[str, Any]]) -> None:
        for each in some:
            self.world.put(form, which, place, **each)

    @rule(form=forms, which=savers, place=places, some=st.lists(calls, min_size=1, max_size=4))
    def put_writes(self, form: str, which: int, place: Any, some: list[dict[str, Any]]) -> None:
        for each in some:
            self.world.write(form, which, place, **each)

    @rule(
        form=forms,
        which=savers,
        what=st.sampled_from(KINDS),
        some=st.lists(threads, max_size=2),
        runs=st.lists(run_ids, max_size=2),
    )
    def take_away(self, form: str, which: int, what: str, some: list[str], runs: list[str]) -> None:
        self.world.take_away(form, which, what=what, threads=some, runs=runs)

    @rule(form=forms, which=savers, source=threads, copy=threads)
    def copy_thread(self, form: str, which: int, source: str, copy: str) -> None:
        self.world.copy(form, which, source=source, target=copy)

    @rule(form=forms, which=savers)
    def reopen(self, form: str, which: int) -> None:
        self.world.reopen(form, which)

    @rule(
        form=forms,
        which=savers,
        place=places,
        ns=st.sampled_from([None, *SPACES]),
        pick=st.none() | picks,
        wanted=st.none() | filters,
        limit=st.none() | st.integers(0, 4),
    )
    def look(self, form: str, which: int, place: Any, ns: Any, pick: Any, wanted: Any, limit: Any) -> None:
        self.world.look(form, which, place, ns=ns, pick=pick, wanted=wanted, limit=limit)

    @precondition(lambda self: hasattr(self, "world"))
    @invariant()
    def all_is_the_same(self) -> None:
        self.world.compare()


@pytest.mark.timeout(900)  # when it fails, Hypothesis needs minutes to find the shortest story
def test_s1_random_operations_agree_with_inmemorysaver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is put, written, deleted, copied, pruned and reopened, both savers tell the same (S1 to S5, S12)."""
    made_small(monkeypatch)
    steps = 30 if full() else 12  # long stories are below
    check_machine(
        AgainstMemory, settings=settings(stateful_step_count=steps, suppress_health_check=[HealthCheck.too_slow])
    )


class Dice(random.Random):
    """Draws the arguments of World's operations: long stories, dense and without shrinking."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.growth = random.Random(seed)
        """Apart, so that the stories are those of before there were values that grow."""

    def value(self) -> Any:
        plain = self.choice([*PLAIN, self.randrange(99), "".join(self.choices("aé🙂'\0", k=3))])
        if (of := self.growth).random() < 0.5:
            return plain
        return Change(of.choice(HOW), "".join(of.choices("abcdef", k=of.randrange(40))), of.randrange(20))

    def a_put(self) -> dict[str, Any]:
        options = [KEEP, KEEP, DROP, self.value(), self.value()]
        return {
            "new": self.randrange(12),
            "above": self.randrange(12),
            "changes": {channel: self.choice(options) for channel in CHANNELS},
            "listed": self.choice(LISTED),
            "run_id": self.choice([None, *RUN_IDS]),
            "tag": self.choice(TAGS),
        }

    def a_write(self) -> tuple[str, Any]:
        channel = self.choice([*CHANNELS, self.choice(SPECIAL), "__resume__"])
        numbers = [self.randrange(9) for _ in range(self.randrange(4))]
        return channel, self.choice([numbers, 1]) if channel == "__resume__" else self.value()

    def a_call(self) -> dict[str, Any]:
        return {
            "pick": self.randrange(12),
            "batch": [self.a_write() for _ in range(self.randrange(5))],
            "task": self.choice(TASKS),
            "path": self.choice(PATHS),
            "in_graph": self.random() < 0.5,
        }

    def a_look(self) -> dict[str, Any]:
        wanted = {"tag": self.choice(TAGS), "run_id": self.choice([None, *RUN_IDS]), "step": self.randrange(12)}
        return {
            "ns": self.choice([None, *SPACES]),
            "pick": self.choice([None, self.randrange(12)]),
            "wanted": self.choice([None, dict(self.sample(sorted(wanted.items()), self.randrange(3)))]),
            "limit": self.choice([None, self.randrange(5)]),
        }


@pytest.fixture
def world(seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A World whose versions are ints, floats or texts, by the seed, and whose values are large at a few bytes."""
    made_small(monkeypatch)
    made = World(VERSIONS[sorted(VERSIONS)[seed % len(VERSIONS)]], memory=(0, 2_000, 1_000_000)[seed // 3 % 3])
    yield made
    made.close()


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=() if seed in FAILED_ONCE or seed < 20 else pytest.mark.slow)
        for seed in sorted({*range(SEEDS), *FAILED_ONCE})
    ],
)
def test_s1_long_random_stories_agree_with_inmemorysaver(world: World, seed: int) -> None:
    """As above, for longer and denser threads than Hypothesis makes: many forks, many writes, some deletes."""
    tell(world, Dice(seed))


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed < 8 else pytest.mark.slow) for seed in range(SEEDS)]
)
def test_s6_long_random_stories_agree_under_encryption(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And at the end, with all of it sealed anew."""
    made_small(monkeypatch)
    world = World(VERSIONS[sorted(VERSIONS)[seed % len(VERSIONS)]], memory=(0, 2_000)[seed // 3 % 2], encryption=NEWER)
    try:
        for saver in world.savers:
            saver.database.sealer.seal_with("2025")  # type: ignore[union-attr]
        tell(world, Dice(seed))
        world.savers[0].database.sealer.seal_with("2026")  # type: ignore[union-attr]
        world.savers[0].reencrypt()
        world.compare()
    finally:
        world.close()


def tell(world: World, dice: Dice) -> None:
    """One story."""
    for _ in range(STEPS):
        who = dice.choice(FORMS), dice.randrange(2)
        step = dice.random()
        if step < 0.45:
            world.put(*who, dice.choice(PLACES), **dice.a_put())
        elif step < 0.75:
            world.write(*who, dice.choice(PLACES), **dice.a_call())
        elif step < 0.83:
            some, runs = dice.sample(THREADS, dice.randrange(3)), dice.sample(RUN_IDS, dice.randrange(3))
            world.take_away(*who, what=dice.choice(KINDS[:-2]), threads=some, runs=runs)
        elif step < 0.86:
            world.copy(*who, source=dice.choice(THREADS), target=dice.choice(THREADS))
        elif step < 0.89:
            world.reopen(*who)
        world.look(*who, dice.choice(PLACES), **dice.a_look())
    world.compare()
    check_strands(world.folder / "runs.db", trimmed=True)
    assert world.versions_used > STEPS // 4
