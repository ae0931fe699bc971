"""E24 to E26, T01 to T03: units of the loop limit, as they are planned and as they are counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from langgraph_ext.engine import conditions
from langgraph_ext.engine.commits import Held
from langgraph_ext.engine.control import Close
from langgraph_ext.engine.granting import ConsumeTicket, ReleaseTicket
from langgraph_ext.engine.operation_changes import Allow, Begin, Dispatch
from langgraph_ext.engine.outcomes import Complete, Progress, Runtime, Wait
from langgraph_ext.engine.requests import Answer, requests_of
from langgraph_ext.engine.rows import AgentRun, Operation, Ticket
from langgraph_ext.engine.states import AgentStatus, OperationState, TicketState
from langgraph_ext.engine.tickets import DEADLINE, EXHAUSTED, Decision, Planned, plan
from langgraph_ext.errors import ConflictError
from tests.support.agents import Stub, Told, Yielded, phase
from tests.support.bench import Bench, opened
from tests.support.faults import full

NOW = 1_000


def agent_run(agent_run_id: str = "root", **columns: Any) -> AgentRun:
    """An agent run as it would be read; below `root`, unless it is that."""
    row: dict[str, Any] = dict.fromkeys(AgentRun._fields)
    row.update(agent_run_id=agent_run_id, root_id="root", parent_id=None if agent_run_id == "root" else "root")
    row.update(status=AgentStatus.RUNNING, consumed=0, reserved=0, loop_limit=100)
    return AgentRun(**{**row, **columns})


def ticket(state: TicketState, operation_id: str = "o") -> Ticket:
    return Ticket(
        operation_id=operation_id, agent_run_id="local", root_id="root", state=state, reason=None, requested_seq=1
    )


# -- the planner

CHECKS: dict[str, Planned] = {
    "has": Planned(Decision.HAS),
    "root closing": Planned(Decision.SHUT, "root"),
    "root late": Planned(Decision.CLOSE, "root", DEADLINE),
    "root consumed": Planned(Decision.CLOSE, "root", EXHAUSTED),
    "local closing": Planned(Decision.SHUT, "local"),
    "local late": Planned(Decision.CLOSE, "local", DEADLINE),
    "local consumed": Planned(Decision.CLOSE, "local", EXHAUSTED),
    "root reserved": Planned(Decision.WAIT),
    "local reserved": Planned(Decision.WAIT),
}
"""What may be the case, in the order of E24 behind the lease, and what is decided then."""


def level(name: str, true: set[str]) -> AgentRun:
    """A level of which some of the checks are true."""
    counted = {"consumed": 2} if f"{name} consumed" in true else {"consumed": 1}
    counted["reserved"] = 2 - counted["consumed"] if f"{name} reserved" in true else 0
    return agent_run(
        name,
        loop_limit=2,
        deadline_us=NOW if f"{name} late" in true else NOW + 1,
        status=AgentStatus.CLOSING if f"{name} closing" in true else AgentStatus.RUNNING,
        **counted,
    )


@given(st.sets(st.sampled_from(sorted(CHECKS))))
def test_e24_the_first_check_that_holds_decides(true: set[str]) -> None:
    """In the order: a ticket it has; the root closing, late, consumed; the same locally; reserved-full; reserve."""
    has = ticket(TicketState.RESERVED) if "has" in true else None
    expected = next((planned for name, planned in CHECKS.items() if name in true), Planned(Decision.RESERVE))
    assert expected == plan(level("root", true), level("local", true), has, now_us=NOW)


@given(st.sets(st.sampled_from(sorted(name for name in CHECKS if not name.startswith("local")))))
def test_e24_a_root_that_asks_is_looked_at_once(true: set[str]) -> None:
    root = level("root", true)
    has = ticket(TicketState.CONSUMED) if "has" in true else None
    expected = next((planned for name, planned in CHECKS.items() if name in true), Planned(Decision.RESERVE))
    assert expected == plan(root, root, has, now_us=NOW)


@pytest.mark.parametrize("status", [each for each in AgentStatus if each is not AgentStatus.RUNNING])
def test_e24_a_scope_that_has_ended_grants_nothing(status: AgentStatus) -> None:
    planned = plan(agent_run(), agent_run("local", status=status), None, now_us=NOW)
    assert Planned(Decision.SHUT, "local") == planned


@pytest.mark.parametrize(("state", "has"), [("waiting", False), ("reserved", True), ("consumed", True)])
def test_e24_a_request_that_waits_is_planned_again_and_one_that_was_granted_is_not(state: str, has: bool) -> None:
    planned = plan(agent_run(), agent_run(), ticket(TicketState(state)), now_us=NOW)
    assert (Decision.HAS if has else Decision.RESERVE) is planned.decision


class Counted:
    """The planner's levels, and tickets that are counted as the rows would be."""

    def __init__(self, root: int, locals_: list[int]) -> None:
        self.limits = {"root": root, **{f"a{n}": limit for n, limit in enumerate(locals_)}}
        self.tickets: dict[str, tuple[str, TicketState]] = {}

    def run(self, name: str) -> AgentRun:
        own = [state for scope, state in self.tickets.values() if name in ("root", scope)]
        sums = {state: own.count(state) for state in TicketState}
        counted = {"consumed": sums[TicketState.CONSUMED], "reserved": sums[TicketState.RESERVED]}
        return agent_run(name, loop_limit=self.limits[name], **counted)

    def ask(self, operation_id: str, scope: str) -> Decision:
        held = self.tickets.get(operation_id)
        has = None if held is None else ticket(held[1], operation_id)
        decision = plan(self.run("root"), self.run(scope), has, now_us=NOW).decision
        states = {Decision.RESERVE: TicketState.RESERVED, Decision.WAIT: TicketState.WAITING}
        if decision in states:
            self.tickets[operation_id] = (scope, states[decision])
        return decision

    def settle(self, operation_id: str, state: TicketState) -> None:
        scope, held = self.tickets[operation_id]
        if held is TicketState.RESERVED:
            self.tickets[operation_id] = (scope, state)


STEPS = st.lists(st.tuples(st.sampled_from(["ask", "consume", "release"]), st.integers(0, 2), st.integers(0, 7)))


@given(st.integers(0, 6), st.lists(st.integers(0, 4), min_size=3, max_size=3), STEPS)
def test_e24_what_is_planned_never_exceeds_a_limit(root: int, limits: list[int], steps: list[Any]) -> None:
    """0 <= consumed + reserved <= limit, on both levels, whatever is asked, consumed and released in whatever order."""
    counted = Counted(root, limits)
    for step, scope, operation in steps:
        known = sorted(counted.tickets)
        if step == "ask":
            counted.ask(f"o{scope}{operation}", f"a{scope}")
        elif known:
            target = TicketState.CONSUMED if step == "consume" else TicketState.RELEASED
            counted.settle(known[operation % len(known)], target)
        for name, limit in counted.limits.items():
            now = counted.run(name)
            assert 0 <= now.consumed + now.reserved <= limit


# -- rows


class Asking:
    """A held root whose operations ask for tickets by hand, by names; its agent runs are named as well."""

    def __init__(
        self, bench: Bench, *, limit: int, children: dict[str, int] | None = None, on_limit: str | None = None
    ) -> None:
        self.bench = bench
        limits = None if on_limit is None else {"on_limit": on_limit}
        self.root = bench.start("rounds", {"rounds": 1}, loop_limit=limit, limits=limits)
        self.held: Held = bench.hold(self.root)
        self.tasks = {"root": bench.task(self.root).agent_task_id}
        self.names = {self.root: "root"}
        for name, local in (children or {}).items():
            self.names[f"{self.root}-{name}"] = name
            self.tasks[name] = bench.child(self.root, f"{self.root}-{name}", loop_limit=local)
        self.operations: dict[str, str] = {}

    def ask(self, name: str, of: str = "root") -> str:
        """Begin an operation of an agent run and ask for its ticket; its state then, or `closed` with who closed."""
        begin = Begin(agent_task_id=self.tasks[of], purpose=name, kind="model", name="m", request={})
        self.operations[name] = self.bench.commit(self.held, begin).result["operations"][name]
        allow = Allow(operation_id=self.operations[name], request={}, before=[], needs_ticket=True)
        result = self.bench.commit(self.held, allow).result
        return f"closed {self.names[result['closed']['agent_run_id']]}" if "closed" in result else self.state(name)

    def consume(self, name: str, reason: str = "decision") -> Any:
        return self.bench.commit(self.held, ConsumeTicket(operation_id=self.operations[name], reason=reason)).result

    def release(self, name: str) -> Any:
        return self.bench.commit(self.held, ReleaseTicket(operation_id=self.operations[name])).result

    def decide(self, decision: dict[str, Any]) -> None:
        """What a person says of the limit that is asked about."""
        [request] = self.bench.database.read(requests_of, self.root, pending=True)
        answer = Answer(
            agent_run_id=request.agent_run_id, request_id=request.request_id, answer={"decisions": [decision]}
        )
        self.bench.commit(self.held, answer)

    def state(self, name: str) -> str:
        """Of its ticket."""
        return str(self.bench.tree(self.root).tickets[self.operations[name]].state)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Consumed and reserved of each agent run; that they are the tickets' sums is seen to."""
        tree = self.bench.tree(self.root)
        found = {}
        for each in tree.runs.values():
            own = [t.state for t in tree.tickets.values() if each.is_root or t.agent_run_id == each.agent_run_id]
            found[self.names[each.agent_run_id]] = (each.consumed, each.reserved)
            assert (each.consumed, each.reserved) == (own.count(TicketState.CONSUMED), own.count(TicketState.RESERVED))
        return found

    def status(self, of: str = "root") -> str:
        agent_run_id = next(each for each, name in self.names.items() if name == of)
        return str(self.bench.tree(self.root).runs[agent_run_id].status)


def code_of(act: Callable[[], Any]) -> str:
    with pytest.raises(ConflictError) as refused:
        act()
    return refused.value.code


def test_e24_a_ticket_is_granted_in_the_commit_that_permits_the_call(bench: Bench) -> None:
    """And counted on both levels; the first call is on record with it."""
    asking = Asking(bench, limit=5, children={"a": 3})
    assert "reserved" == asking.ask("m", of="a")
    assert {"root": (0, 1), "a": (0, 1)} == asking.counts()
    assert [(1, "open")] == bench.all("SELECT number, state FROM agent_call")


def test_e24_consumed_tickets_carry_the_roots_new_count(bench: Bench) -> None:
    asking = Asking(bench, limit=5, children={"a": 3, "b": 3})
    for n, of in enumerate(("a", "b", "a"), start=1):
        asking.ask(f"m{n}", of=of)
        assert n == asking.consume(f"m{n}")["loops"]


def test_e24_calls_of_models_are_counted_beside_tickets(bench: Bench) -> None:
    """One a dispatch, never given back."""
    asking = Asking(bench, limit=5, children={"a": 3})
    asking.ask("m", of="a")
    asking.release("m")
    tree = bench.tree(asking.root)
    assert [(0, 0, 1)] * 2 == [(each.consumed, each.reserved, each.model_calls) for each in tree.runs.values()]


@pytest.mark.parametrize(("first", "then"), [("consume", "release"), ("release", "consume")])
def test_e25_a_ticket_is_settled_one_way(bench: Bench, first: str, then: str) -> None:
    asking = Asking(bench, limit=5)
    asking.ask("m")
    getattr(asking, first)("m")
    counts = asking.counts()
    getattr(asking, first)("m")  # the same again changes nothing

    assert "loop_ticket_state_conflict" == code_of(lambda: getattr(asking, then)("m"))
    assert counts == asking.counts()


@pytest.mark.parametrize("act", ["consume", "release"])
def test_e25_a_request_that_waits_has_no_ticket_to_settle(bench: Bench, act: str) -> None:
    asking = Asking(bench, limit=1)
    asking.ask("m")
    assert "waiting" == asking.ask("n")
    assert "loop_ticket_state_conflict" == code_of(lambda: getattr(asking, act)("n"))


def test_e25_a_ticket_says_why_it_was_consumed(bench: Bench) -> None:
    asking = Asking(bench, limit=5)
    for name, reason in (("m", "decision"), ("n", "error_feedback")):
        asking.ask(name)
        asking.consume(name, reason)
    assert [("decision",), ("error_feedback",)] == bench.all("SELECT reason FROM agent_ticket ORDER BY requested_seq")


def test_e25_consuming_the_last_ticket_closes_nothing_and_asking_for_one_more_does(bench: Bench) -> None:
    asking = Asking(bench, limit=1)
    asking.ask("m")
    asking.consume("m")
    assert "running" == asking.status()
    assert "closed root" == asking.ask("n")
    assert ("closing", EXHAUSTED) == (asking.status(), bench.tree(asking.root).root.reason)


def test_a6_a_request_that_waits_at_a_limit_has_a_person_asked_and_closes_nothing(bench: Bench) -> None:
    """As one that asks for a ticket there; both go on when the limit was raised, the earlier one first."""
    asking = Asking(bench, limit=1, on_limit="ask")
    assert ["reserved", "waiting", "waiting"] == [asking.ask(name) for name in "abc"]
    assert "held" not in asking.consume("a")
    assert ("running", ["waiting", "waiting"]) == (asking.status(), [asking.state(name) for name in "bc"])
    asking.decide({"type": "approve"})
    assert ["reserved", "waiting"] == [asking.state(name) for name in "bc"]
    asking.consume("b")
    asking.decide({"type": "reject"})
    assert ("closing", "released") == (asking.status(), asking.state("c"))
    assert [("answered",), ("answered",)] == bench.all("SELECT state FROM agent_request")


def test_e26_reserved_full_is_a_wait_and_every_release_looks_again(bench: Bench) -> None:
    asking = Asking(bench, limit=2)
    assert ["reserved", "reserved", "waiting", "waiting"] == [asking.ask(name) for name in "abcd"]
    assert "running" == asking.status()
    asking.release("b")
    assert ["reserved", "waiting"] == [asking.state(name) for name in "cd"]
    assert OperationState.READY is bench.operation(asking.root, "c").state
    asking.release("a")
    assert "reserved" == asking.state("d")


def test_e26_granted_is_the_earliest_that_fits_on_both_levels(bench: Bench) -> None:
    """An earlier request whose own limit is full waits on, and lets a later one pass."""
    asking = Asking(bench, limit=2, children={"a": 1, "b": 5})
    for name, of in (("a1", "a"), ("b1", "b")):
        assert "reserved" == asking.ask(name, of=of)
    assert ["waiting"] * 3 == [asking.ask("a2", of="a"), asking.ask("b2", of="b"), asking.ask("b3", of="b")]
    asking.release("b1")
    assert ["waiting", "reserved", "waiting"] == [asking.state(name) for name in ("a2", "b2", "b3")]


def test_e26_a_scope_that_closes_gives_its_tickets_to_requests_that_came_before(bench: Bench) -> None:
    """B's deadline is over when its last request is looked at: what B had reserved goes to A, which asked before."""
    asking = Asking(bench, limit=2, children={"a": 9, "b": 9})
    assert ["reserved", "reserved", "waiting"] == [asking.ask(name, of="b") for name in ("b0", "b1", "b2")]
    assert ["waiting", "waiting"] == [asking.ask("a", of="a"), asking.ask("b3", of="b")]
    asking.release("b0")
    assert "reserved" == asking.state("b2")  # and not dispatched yet
    bench.write("UPDATE agent_run SET deadline_us = 1 WHERE agent_run_id LIKE '%-b'")
    asking.consume("b1")

    assert "closing" == asking.status("b")
    assert ["released", "released", "reserved"] == [asking.state(name) for name in ("b2", "b3", "a")]


@pytest.mark.parametrize("settles", ["release", "consume"])
def test_t01_a_hundredth_that_is_reserved_makes_the_next_one_wait(bench: Bench, settles: str) -> None:
    """99 consumed + 1 reserved, another asks: a wait. Released, it is granted; consumed, the next ask closes."""
    asking = Asking(bench, limit=100)
    for n in range(99):
        asking.ask(f"m{n}")
        asking.consume(f"m{n}")
    assert ["reserved", "waiting"] == [asking.ask("m99"), asking.ask("next")]
    assert {"root": (99, 1)} == asking.counts()
    getattr(asking, settles)("m99")

    if settles == "release":
        assert ("reserved", "running") == (asking.state("next"), asking.status())
    else:
        assert ("released", "closing") == (asking.state("next"), asking.status())
        assert {"root": (100, 0)} == asking.counts()


def test_t03_a_local_limit_closes_its_agent_run_and_the_roots_all(bench: Bench) -> None:
    """A is used up and closes, B goes on; the root used up closes all at once; totals are the tickets' sums."""
    asking = Asking(bench, limit=8, children={"a": 2, "b": 20})
    for n in range(2):
        asking.ask(f"a{n}", of="a")
        asking.consume(f"a{n}")
    assert "closed a" == asking.ask("a2", of="a")
    assert ["running", "closing", "running"] == [asking.status(of) for of in ("root", "a", "b")]
    for n in range(6):
        assert "reserved" == asking.ask(f"b{n}", of="b")
        asking.consume(f"b{n}")
    assert {"root": (8, 0), "a": (2, 0), "b": (6, 0)} == asking.counts()
    assert "closed root" == asking.ask("b6", of="b")
    assert ["closing"] * 3 == [asking.status(of) for of in ("root", "a", "b")]


def test_e24_the_first_reason_in_the_order_closes(bench: Bench) -> None:
    """A deadline that is over is told before a limit that is used up, the root's before an agent run's own."""
    asking = Asking(bench, limit=1, children={"a": 0})
    asking.ask("m")
    asking.consume("m")
    bench.write("UPDATE agent_run SET deadline_us = ?", bench.clock())
    assert "closed root" == asking.ask("a", of="a")
    assert DEADLINE == bench.tree(asking.root).root.reason


def test_e24_a_closing_scope_is_asked_for_nothing(bench: Bench) -> None:
    asking = Asking(bench, limit=1)
    begin = Begin(agent_task_id=asking.tasks["root"], purpose="m", kind="model", name="m", request={})
    operation_id = bench.commit(asking.held, begin).result["operations"]["m"]
    bench.commit(asking.held, Close(agent_run_id=asking.root, reason="stopped"))
    for change in (
        Allow(operation_id=operation_id, request={}, before=[], needs_ticket=True),
        Dispatch(operation_id=operation_id, number=1),
    ):
        assert "scope_closed" == code_of(lambda change=change: bench.commit(asking.held, change))
    assert {} == bench.tree(asking.root).tickets


# -- random sequences over rows


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One database for many examples: each begins a root of its own."""
    path: Path = tmp_path_factory.mktemp("tickets")
    with opened(str(path / "runs.db")) as bench:
        yield bench


ROW_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "consume", "release"]), st.sampled_from(["root", "a", "b"]), st.integers(0, 9)
    ),
    max_size=12,
)


@settings(
    max_examples=300 if full() else 25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.integers(1, 4), st.integers(0, 3), st.integers(1, 3), ROW_STEPS)
def test_e24_e26_whatever_happens_rows_count_right_and_nobody_waits_who_fits(
    shared: Bench, root: int, a: int, b: int, steps: list[Any]
) -> None:
    """Counts are the tickets' sums and within both limits, and no request waits that could be granted or closed."""
    asking = Asking(shared, limit=root, children={"a": a, "b": b})
    for n, (step, of, which) in enumerate(steps):
        known = sorted(asking.operations)
        try:
            if step == "ask":
                asking.ask(f"m{n:02}", of=of)
            elif known:
                getattr(asking, step)(known[which % len(known)])
        except ConflictError as refused:
            if refused.code not in ("scope_closed", "loop_ticket_state_conflict"):
                raise
        asking.counts()
        tree = shared.tree(asking.root)
        for each in tree.runs.values():
            assert 0 <= each.consumed + each.reserved <= each.loop_limit
        for each in tree.tickets.values():
            waits = each.state is TicketState.WAITING
            assert waits == (tree.operations[each.operation_id].state is OperationState.ASKED)
            if waits:
                assert (
                    Decision.WAIT is plan(tree.root, tree.runs[each.agent_run_id], each, now_us=shared.clock()).decision
                )


# -- whole runs

LIMIT = 100 if full() else 4


async def test_t02_the_last_loop_may_be_the_answer(bench: Bench) -> None:
    program = Stub()
    tree = await bench.drive(bench.start("rounds", {"rounds": LIMIT}, loop_limit=LIMIT), program)
    assert (AgentStatus.SUCCEEDED, LIMIT, 0) == (tree.root.status, tree.root.consumed, tree.root.reserved)
    assert 1 == program.asked[f"call business-model:{LIMIT}"]


async def with_tools(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
    """Asks the model, and calls a tool for each of its decisions, for ever."""
    now = dict(continuation or phase("model", n=1))
    task_id = runtime.task.agent_task_id
    while True:
        model, tool = (runtime.operations.get(f"{kind}:{now['n']}") for kind in ("model", "tool"))
        if model is None:
            begin = Begin(agent_task_id=task_id, purpose=f"model:{now['n']}", kind="model", name="m", request={})
            yield Progress(continuation=now, changes=(begin,))
        elif not model.state.ended:
            yield Wait(continuation=now, condition=conditions.operations_ended(model.purpose))
        elif tool is None:
            begin = Begin(agent_task_id=task_id, purpose=f"tool:{now['n']}", kind="tool", name="t", request={})
            yield Progress(continuation=now, changes=(ConsumeTicket(operation_id=model.operation_id), begin))
        elif not tool.state.ended:
            yield Wait(continuation=now, condition=conditions.operations_ended(tool.purpose))
        else:
            now = phase("model", n=now["n"] + 1)
            yield Progress(continuation=now)


async def test_t02_the_last_decision_runs_its_tool_and_the_next_ask_ends_the_run(bench: Bench) -> None:
    """The one after the limit is not dispatched, and nothing is called for a summary."""
    program = Stub(behaviours={"tools": Told(with_tools)})
    root = bench.start("tools", loop_limit=LIMIT)
    tree = await bench.drive(root, program)

    assert (AgentStatus.EXHAUSTED, EXHAUSTED, LIMIT) == (tree.root.status, tree.root.reason, tree.root.consumed)
    called = sorted(key for key in program.asked if key.startswith("call"))
    assert sorted(f"call {kind}:{n}" for kind in ("model", "tool") for n in range(1, LIMIT + 1)) == called
    assert [("budget_exhausted",)] == bench.all("SELECT status FROM run")
    assert OperationState.CANCELLED is bench.operation(root, f"model:{LIMIT + 1}").state


async def test_e25_e26_a_decision_is_accepted_though_its_ticket_is_the_last_that_another_one_waits_for(
    bench: Bench,
) -> None:
    """What waits is looked at when all of the commit is written: the decision counts, and the scope closes then."""

    async def two_at_once(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        now = (continuation or phase("begin"))["phase"]
        task_id = runtime.task.agent_task_id
        if now == "begin":
            begins = [Begin(agent_task_id=task_id, purpose=p, kind="model", name="m", request={}) for p in ("m", "n")]
            yield Progress(continuation=phase("wait"), changes=tuple(begins))
        if now in ("begin", "wait") and not runtime.operations["m"].state.ended:
            yield Wait(continuation=phase("wait"), condition=conditions.operations_ended("m"))
        consume = ConsumeTicket(operation_id=runtime.operations["m"].operation_id)
        tool = Begin(agent_task_id=task_id, purpose="t", kind="tool", name="t", request={})
        yield Progress(continuation=phase("accepted"), changes=(consume, tool))

    program = Stub(behaviours={"two": Told(two_at_once)})
    root = bench.start("two", loop_limit=1)
    tree = await bench.drive(root, program)
    assert (AgentStatus.EXHAUSTED, 1, 0) == (tree.root.status, tree.root.consumed, tree.root.reserved)
    assert "accepted" == bench.task(root).continuation["phase"]
    assert 1 == sum(count for key, count in program.asked.items() if key.startswith("call"))


async def test_e25_a_run_that_ends_has_settled_every_ticket(bench: Bench) -> None:
    """Also those of operations that its task has left behind: none is under way any more."""
    states: list[OperationState] = []

    async def leaves(input: Any, continuation: Any, runtime: Runtime) -> Yielded:
        task_id = runtime.task.agent_task_id
        purposes = ("first", "left", "asks")
        if continuation is None:
            begins = [Begin(agent_task_id=task_id, purpose=p, kind="model", name="m", request={}) for p in purposes]
            condition = conditions.operations_ended("first")
            yield Wait(continuation=phase("wait"), condition=condition, changes=tuple(begins))
        states.extend(runtime.operations[p].state for p in purposes[1:])
        yield Complete(output=1, continuation=phase("completed"))

    async def hangs(operation: Operation, number: int) -> Any:
        if operation.purpose != "first":
            await asyncio.Event().wait()
        return {"value": 1}

    root = bench.start("leaves", loop_limit=2)
    tree = await bench.drive(root, Stub(answer=hangs, behaviours={"leaves": Told(leaves)}))
    assert (AgentStatus.SUCCEEDED, 0) == (tree.root.status, tree.root.reserved)
    assert {TicketState.RELEASED} == {each.state for each in tree.tickets.values()}
    assert all(each.state.ended for each in tree.operations.values())
