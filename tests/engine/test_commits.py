"""E1 to E5, E31: the one way in which the engine writes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import langgraph_ext.engine
from langgraph_ext.engine.applying import Applying, Ref
from langgraph_ext.engine.commits import Held, commit
from langgraph_ext.engine.control import Succeed
from langgraph_ext.engine.operation_changes import Allow, Begin, Dispatch
from langgraph_ext.engine.states import AgentStatus
from langgraph_ext.engine.task_changes import Activate, EndTask, GoOn
from langgraph_ext.errors import ConflictError, LangGraphExtError, LeaseError
from langgraph_ext.ledger import leases
from langgraph_ext.testing import FixedClock, fixed_ids
from tests.support.agents import Stub, phase
from tests.support.bench import Bench, Traces, commit_of, traced

ENGINE = Path(langgraph_ext.engine.__path__[0])
ONLY_PREPARE = ("activation", "conditions", "driver", "operations", "outcomes", "program", "rows", "working")
"""Modules that hold no change: whatever they want to write goes through a commit."""


def calls_in(module: str) -> list[ast.Call]:
    tree = ast.parse((ENGINE / f"{module}.py").read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def is_tx(node: ast.AST) -> bool:
    return (isinstance(node, ast.Name) and node.id == "tx") or (isinstance(node, ast.Attribute) and node.attr == "tx")


# -- E1


@pytest.mark.parametrize("module", ONLY_PREPARE)
def test_e1_what_drives_and_prepares_writes_nothing_itself(module: str) -> None:
    """Behaviours, loops of operations and the driver hold no statement that writes."""
    written = [
        ast.unparse(call)
        for call in calls_in(module)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("run", "apart") and is_tx(call.func.value)
    ]
    assert [] == written


async def test_e1_a_whole_run_writes_in_commits_alone(benches: Callable[..., Bench]) -> None:
    """Of all transactions of a worker, those that write are commits, and the lease that is given back."""
    traces: Traces = []
    bench = benches(store=traced(traces))
    root = bench.start("rounds", {"rounds": 2})
    tree = await bench.drive(root)

    assert AgentStatus.SUCCEEDED is tree.root.status
    writing = {name for name, trace, _ in traces if any(verb == "run" for verb, _, _ in trace)}
    assert {"commit", "_leave"} == writing


# -- E2


@pytest.fixture
def held(bench: Bench) -> Held:
    """The lease of a new root, whose task is ready: `id-000001` and `id-000002`."""
    return bench.hold(bench.start("rounds", {"rounds": 1}))


ROOT, TASK = "id-000001", "id-000002"
ACTIVATE = Activate(agent_task_id=TASK)


def refusal(act: Callable[[], Any]) -> str:
    """The code of what it raises."""
    with pytest.raises(LangGraphExtError) as refused:
        act()
    return refused.value.code


@pytest.mark.parametrize("who", ["this call", "another call"])
def test_e2_a_transaction_that_is_run_again_finds_its_own_commit(bench: Bench, held: Held, who: str) -> None:
    """So whoever put a call on record under it makes that call, and nobody else does."""
    wanted = commit_of(held, ACTIVATE, key="k")

    def committed(tx: Any) -> Any:
        tx.repeated = who == "this call"
        return commit(tx, wanted, held, now_us=1, ids=lambda: "id")

    assert not bench.database.transact(commit, wanted, held, now_us=1, ids=lambda: "id").again
    assert (who == "another call") is bench.database.transact(committed).again


def test_e2_the_same_commit_again_is_its_first_result(bench: Bench, held: Held) -> None:
    """Under the key and the digest that are on record, nothing is written, and the first answer is given."""
    bench.commit(held, ACTIVATE, key="a")
    begin = Begin(agent_task_id=TASK, purpose="p", kind="tool", name="t", request={})
    first = bench.commit(held, begin, GoOn(agent_task_id=TASK, continuation=phase("x")), key="b")
    before = bench.everything()
    again = bench.commit(held, begin, GoOn(agent_task_id=TASK, continuation=phase("x")), key="b")

    assert (False, True) == (first.again, again.again)
    assert first.result == again.result
    assert before == bench.everything()


def test_e2_one_key_names_one_commit(bench: Bench, held: Held) -> None:
    bench.commit(held, ACTIVATE, key="a")
    before = bench.everything()
    ends = EndTask(agent_task_id=TASK, output=1)

    assert "idempotency_conflict" == refusal(lambda: bench.commit(held, ends, key="a"))
    assert before == bench.everything()


def test_e2_a_row_that_has_moved_is_a_revision_conflict(bench: Bench, held: Held) -> None:
    """The expected revision is looked at before any change, and nothing is written."""
    before = bench.everything()
    stale = {Ref.task(TASK): 7}

    assert "revision_conflict" == refusal(lambda: bench.commit(held, ACTIVATE, key="a", expected=stale))
    assert before == bench.everything()
    assert not bench.commit(held, ACTIVATE, key="a", expected={Ref.task(TASK): 0}).again


def test_e2_a_row_that_is_not_there_is_a_revision_conflict(bench: Bench, held: Held) -> None:
    assert "revision_conflict" == refusal(lambda: bench.commit(held, Dispatch(operation_id="none", number=1)))


def test_e2_the_epoch_comes_before_the_key(bench: Bench, held: Held) -> None:
    """Who has lost the lease is not even told what it has committed itself."""
    bench.commit(held, ACTIVATE, key="a")
    bench.take_over("id-000001")

    assert "lease_lost" == refusal(lambda: bench.commit(held, ACTIVATE, key="a"))


def test_e2_the_key_comes_before_the_revisions(bench: Bench, held: Held) -> None:
    """A commit that is repeated expects what was there before it, and is answered all the same."""
    expected = {Ref.task(TASK): 0}
    bench.commit(held, ACTIVATE, key="a", expected=expected)

    assert bench.commit(held, ACTIVATE, key="a", expected=expected).again
    ends = EndTask(agent_task_id=TASK, output=1)
    assert "idempotency_conflict" == refusal(lambda: bench.commit(held, ends, key="a", expected=expected))


def test_e2_the_revisions_come_before_the_changes(bench: Bench, held: Held) -> None:
    """A change that its scope would refuse is not reached when a row has moved."""
    bench.write("UPDATE agent_run SET status = 'closing', reason = 'stopped'")

    assert "scope_closed" == refusal(lambda: bench.commit(held, ACTIVATE))
    assert "revision_conflict" == refusal(lambda: bench.commit(held, ACTIVATE, expected={Ref.task(TASK): 7}))


def test_e2_neither_epoch_nor_time_nor_expectation_is_in_the_digest(bench: Bench, held: Held) -> None:
    """The next owner of the lease, at another time, finds what was committed."""
    first = bench.commit(held, ACTIVATE, key="a", expected={Ref.task(TASK): 0})
    later = bench.take_over("id-000001")
    again = bench.commit(later, ACTIVATE, key="a", expected={Ref.task(TASK): 99})

    assert held.epoch < later.epoch
    assert (True, first.result) == (again.again, again.result)


def test_e2_the_order_of_keys_is_not_in_the_digest(held: Held) -> None:
    one, other = (
        commit_of(held, GoOn(agent_task_id=TASK, continuation=continuation), key="a")
        for continuation in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one.digest == other.digest
    assert one.digest != commit_of(held, GoOn(agent_task_id=TASK, continuation={"a": 1}), key="a").digest


def test_e2_a_failing_change_takes_all_of_its_commit_with_it(bench: Bench, held: Held) -> None:
    bench.commit(held, ACTIVATE)
    before = bench.everything()
    begin = Begin(agent_task_id=TASK, purpose="p", kind="tool", name="t", request={})

    assert "revision_conflict" == refusal(lambda: bench.commit(held, begin, Dispatch(operation_id="none", number=1)))
    assert before == bench.everything()


@pytest.mark.parametrize(
    ("under_way", "ends"), [(False, "succeeded"), (True, "running")], ids=["nothing under way", "a call under way"]
)
def test_e2_a_commit_may_follow_in_the_same_transaction(
    bench: Bench, held: Held, under_way: bool, ends: AgentStatus
) -> None:
    """Under its own key; one that comes too early is left to whoever looks next, and takes nothing along."""
    bench.commit(held, ACTIVATE, key="a")
    if under_way:
        begin = Begin(agent_task_id=TASK, purpose="p", kind="tool", name="t", request={}, dispatch=True)
        bench.commit(held, begin, key="b")
    end = commit_of(held, Succeed(agent_run_id=ROOT, output=1), key="end")
    bench.commit(held, EndTask(agent_task_id=TASK, output=1), key="result", then=end)

    assert ("succeeded", ends) == (bench.task(ROOT).state, bench.tree(ROOT).root.status)
    assert ["result"] + ([] if under_way else ["end"]) == bench.commit_keys()[-1 if under_way else -2 :]


def test_e2_where_what_follows_fails_nothing_of_both_is_written(bench: Bench, held: Held) -> None:
    bench.commit(held, ACTIVATE, key="a")
    before = bench.everything()
    wrong = commit_of(held, Dispatch(operation_id="none", number=1), key="end")
    ends = EndTask(agent_task_id=TASK, output=1)

    assert "revision_conflict" == refusal(lambda: bench.commit(held, ends, key="result", then=wrong))
    assert before == bench.everything()


# -- E3


@pytest.mark.parametrize("rounds", [1, 3])
async def test_e3_every_commit_locks_its_rows_first_and_in_order(benches: Callable[..., Bench], rounds: int) -> None:
    """Of each commit of a whole run: the lease, the key, the root's row, then agent runs, tasks and operations by id;
    only then is anything written."""
    traces: Traces = []
    bench = benches(store=traced(traces))
    await bench.drive(bench.start("rounds", {"rounds": rounds}), Stub(hooks=True))

    commits = [(trace, args[0]) for name, trace, args in traces if name == "commit"]
    assert len(commits) > 6
    for trace, wanted in commits:
        locks = wanted.locks
        assert Ref.agent_run(wanted.root_id) == locks[0]
        assert sorted(locks, key=lambda ref: ref.level) == locks
        gets = [("agent_run_get", "agent_run_id"), ("agent_task_get", "agent_task_id")]
        gets.append(("agent_operation_get", "operation_id"))
        expected: list[Any] = [("get", "lease_get"), ("get", "agent_commit_get")]
        expected += [("get", gets[ref.level - 1][0], {gets[ref.level - 1][1]: ref.row_id}) for ref in locks]
        found = [step if len(want) == 3 else step[:2] for step, want in zip(trace, expected, strict=False)]
        assert expected == found, wanted.key


async def test_e3_every_row_that_a_commit_changes_is_declared_or_below_its_root(
    benches: Callable[..., Bench],
) -> None:
    """What a commit changes of its tree it has locked by name; the task that an operation wakes, and what a closing
    scope cancels, are below the root's row, which every commit of a tree locks before all others."""
    traces: Traces = []
    bench = benches(store=traced(traces))
    await bench.drive(bench.start("rounds", {"rounds": 2}))

    undeclared = set()
    for name, trace, args in traces:
        if name != "commit":
            continue
        named = {ref.row_id for ref in args[0].locks}
        for verb, query, params in trace:
            row = params.get("agent_task_id") or params.get("operation_id") or params.get("agent_run_id")
            if verb == "run" and query.startswith("agent_") and row is not None and row not in named:
                undeclared.add(query)
    assert undeclared <= {"agent_operation_insert", "agent_task_wake"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Touch:
    """A change that touches rows and writes nothing."""

    refs: tuple[Ref, ...]

    def rows(self) -> tuple[Ref, ...]:
        return self.refs

    def apply(self, at: Applying) -> None:
        """Nothing."""


def test_e3_the_root_comes_first_and_then_rows_by_level_and_id(held: Held) -> None:
    """Whoever declares what first: "a-child" is an agent run whose id is smaller than its root's."""
    refs = [Ref.operation("a"), Ref.task("z"), Ref.agent_run("a-child"), Ref.task("c"), Ref.operation("Z")]
    one, other = (commit_of(held, _Touch(refs=tuple(each)), key="k") for each in (refs, refs[::-1]))

    assert one.locks == other.locks
    levels = [("id-000001", 1), ("a-child", 1), ("c", 2), ("z", 2), ("Z", 3), ("a", 3)]
    assert levels == [(ref.row_id, ref.level) for ref in one.locks]


# -- E4, E5


def test_e4_a_logical_key_finds_its_id_again(bench: Bench, held: Held) -> None:
    """A second intent under one purpose is the first one, whatever it would send."""
    bench.commit(held, ACTIVATE)
    begins = [Begin(agent_task_id=TASK, purpose="p", kind="tool", name="t", request={"n": n}) for n in (1, 2)]
    first, again = (bench.commit(held, begin).result["operations"]["p"] for begin in begins)

    assert first == again
    assert {"n": 1} == bench.operation("id-000001", "p").request


def test_e4_parameters_are_not_part_of_an_identity(benches: Callable[..., Bench]) -> None:
    """Two tries with other requests, in two databases, give their operations the same ids."""
    found = []
    for n in (1, 2):
        bench = benches(f"runs-{n}")
        held = bench.hold(bench.start("rounds", {"rounds": n}))
        begin = Begin(agent_task_id=TASK, purpose="p", kind="tool", name="t", request={"n": n})
        bench.commit(held, ACTIVATE)
        found.append(bench.commit(held, begin).result["operations"])
    assert found[0] == found[1]


def test_e4_a_key_of_a_start_finds_the_run_again(bench: Bench) -> None:
    """The same key and digest are the same run; another input or definition is a conflict, and writes nothing."""
    first = bench.start("echo", {"a": 1, "b": 2}, key="k")
    before = bench.everything()

    assert first == bench.start("echo", {"b": 2, "a": 1}, key="k")
    with pytest.raises(ConflictError) as refused:
        bench.start("echo", {"a": 2}, key="k")
    assert "idempotency_conflict" == refused.value.code
    assert before == bench.everything()
    assert first != bench.start("echo", {"a": 1, "b": 2})


DOOR = {"engine", "records"}
"""What callers meet: defaults for clock and ids, and times as they are given out."""


@pytest.mark.parametrize("module", sorted(path.stem for path in ENGINE.glob("*.py") if path.stem not in DOOR))
def test_e5_nothing_below_the_door_knows_a_clock_or_makes_ids(module: str) -> None:
    """Time and ids are given; only the engine's door has defaults for them."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse((ENGINE / f"{module}.py").read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            imported.add(node.module.partition(".")[0])
    assert set() == imported & {"time", "uuid", "random", "secrets", "datetime"}


def test_e5_ids_are_made_in_commits_alone() -> None:
    """They are asked for where an intent is written: by a change in its commit, and by the start of a run.

    The door makes the id of a run, by which a transaction that is run again knows it.
    """
    makers = {
        path.stem
        for path in ENGINE.glob("*.py")
        if any(
            isinstance(call.func, ast.Attribute | ast.Name)
            and (call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id) == "ids"
            for call in calls_in(path.stem)
        )
    }
    assert {"beginning", "engine", "starting"} == makers


async def test_e5_the_same_clock_and_ids_write_the_same_rows(benches: Callable[..., Bench]) -> None:
    found = []
    for name in ("one", "other"):
        bench = benches(name, clock_us=FixedClock(), ids=fixed_ids("x"))
        await bench.drive(bench.start("rounds", {"rounds": 2}))
        found.append(bench.everything())
    assert found[0] == found[1]


async def test_e5_a_commit_reads_the_clock_once(benches: Callable[..., Bench]) -> None:
    """All times of one commit are the same, and those of later ones later."""
    bench = benches()

    async def takes_a_second(operation: Any, number: int) -> Any:
        bench.clock.advance(1)
        return {"value": 1}

    root = bench.start("rounds", {"rounds": 1})
    await bench.drive(root, Stub(answer=takes_a_second))
    ((begun, ended),) = bench.all("SELECT started_us, ended_us FROM agent_call")
    assert 1_000_000 == ended - begun


async def test_an_agent_task_of_one_step_takes_at_most_three_commits(benches: Callable[..., Bench]) -> None:
    """Without a model: its start, its result, with which it is activated, the end of its run."""
    traces: Traces = []
    bench = benches(store=traced(traces))
    tree = await bench.drive(bench.start("echo", {"a": 1}))

    assert {"a": 1} == tree.root.output
    commits = 1 + sum(name == "commit" for name, _, _ in traces)  # with its start
    assert commits <= 3
    assert ["task-result", "terminal"] == [key.partition(":")[0] for key in bench.commit_keys()]


async def test_a_tree_that_ends_with_its_output_is_a_commit_less(benches: Callable[..., Bench]) -> None:
    """As agents of nodes do, with both keys on record."""
    traces: Traces = []
    bench = benches(store=traced(traces))
    root = bench.start("echo", {"a": 1})
    tree = await bench.driver(root, bench.hold(root), ends_at_once=True).drive()

    assert ({"a": 1}, "succeeded") == (tree.root.output, tree.root.status)
    assert 1 == sum(name == "commit" for name, _, _ in traces)
    assert ["task-result", "terminal"] == [key.partition(":")[0] for key in bench.commit_keys()]


# -- E31


def changes_of_all_kinds(operation_id: str) -> list[Any]:
    return [
        ACTIVATE,
        GoOn(agent_task_id=TASK, continuation=phase("x")),
        EndTask(agent_task_id=TASK, output=1),
        Begin(agent_task_id=TASK, purpose="q", kind="tool", name="t", request={}),
        Allow(operation_id=operation_id, request={}, before=[], needs_ticket=True),
        Dispatch(operation_id=operation_id, number=1),
    ]


def test_e31_f02_a_commit_of_an_old_epoch_writes_nothing(bench: Bench, held: Held) -> None:
    """Whatever it is: the context, revisions and tickets stay as they are."""
    bench.commit(held, ACTIVATE)
    begin = Begin(agent_task_id=TASK, purpose="p", kind="model", name="m", request={})
    operation_id = bench.commit(held, begin).result["operations"]["p"]
    bench.take_over("id-000001")
    before = bench.everything()

    for change in changes_of_all_kinds(operation_id):
        with pytest.raises(LeaseError) as lost:
            bench.commit(held, change)
        assert "lease_lost" == lost.value.code
    assert before == bench.everything()


def test_e31_a_lease_that_was_given_back_commits_nothing(bench: Bench, held: Held) -> None:
    bench.database.transact(leases.release, held.thread_id, held.epoch, now_us=bench.clock())
    assert "lease_lost" == refusal(lambda: bench.commit(held, ACTIVATE))


def test_e31_a_lease_of_another_thread_is_no_lease_of_this_tree(bench: Bench, held: Held) -> None:
    """However live it is."""
    other = bench.hold(bench.start("echo"))
    before = bench.everything()
    wanted = commit_of(held, ACTIVATE, key="a")
    with pytest.raises(LeaseError) as lost:
        bench.database.transact(commit, wanted, other, now_us=bench.clock(), ids=bench.store.ids)

    assert "lease_lost" == lost.value.code
    assert before == bench.everything()
