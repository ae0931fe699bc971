"""AgentGraphEngine: the door to the engine, with a sync and an async form of each way in."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from typing import Any, TypeVar
from uuid import uuid4

from langgraph_ext import canonical
from langgraph_ext.database import Closing, Database, Tx, open_database
from langgraph_ext.engine import raising
from langgraph_ext.engine.answer_checks import told, unfit, unstorable
from langgraph_ext.engine.approvals import checked_decisions
from langgraph_ext.engine.behaviours import Behaviours
from langgraph_ext.engine.built_in import built_in
from langgraph_ext.engine.compiler import compile_spec
from langgraph_ext.engine.doubts import resolve
from langgraph_ext.engine.from_sync import from_sync
from langgraph_ext.engine.messages import without_objects
from langgraph_ext.engine.reading import Reading, named, operation_given_out
from langgraph_ext.engine.records import AgentRunRecord, OperationRecord, RequestRecord
from langgraph_ext.engine.release_program import ReleaseProgram, entry_of
from langgraph_ext.engine.releases import Release
from langgraph_ext.engine.requests import Request, give_answer, request_named, request_of
from langgraph_ext.engine.rows import AgentRun, read_root
from langgraph_ext.engine.spec import AgentSpec
from langgraph_ext.engine.starting import Continues, start
from langgraph_ext.engine.stopping import stop
from langgraph_ext.engine.store import Store
from langgraph_ext.engine.visiting import Caller, Driven, Visit
from langgraph_ext.engine.visits import Visits
from langgraph_ext.engine.working import Work
from langgraph_ext.errors import InvalidArgument, NotFound
from langgraph_ext.ledger import RunLedger, leases
from langgraph_ext.ledger.owners import Owner
from langgraph_ext.ledger.renewal import Renewal
from langgraph_ext.ledger.rows import text_or_none

__all__ = ["AgentGraphEngine"]

T = TypeVar("T")
Spec = AgentSpec | Release | Mapping[str, Any]


class AgentGraphEngine(Reading, Visits, Closing):
    """Runs agents as persisted state machines on a ledger's database; any worker goes on with any of them.

    One object serves sync and async code, in any thread. Workers are as many as call `drive`, in any process: one of
    them at a time holds an agent run.

    Args:
        ledger: A path or URL; or the `RunLedger` (`saver.ledger`) or `Database` to share. What is shared is not closed.
        clock: Microseconds since the epoch, UTC; the database's by default.
        ids: Makes ids of rows; by default they sort by time.
        behaviours: What drives roles, by name and version; by default those that an `AgentSpec` names.
        lease_ttl_seconds: For how long a worker that is not heard of keeps an agent run.

    Raises:
        InvalidArgument: An argument is not what it must be.
    """

    def __init__(
        self,
        ledger: RunLedger | Database | str | PathLike[str],
        *,
        clock: Callable[[], int] | None = None,
        ids: Callable[[], str] | None = None,
        behaviours: Behaviours | None = None,
        lease_ttl_seconds: float = leases.DEFAULT_TTL_US / 1e6,
    ) -> None:
        if type(lease_ttl_seconds) not in (int, float) or not 0.1 <= lease_ttl_seconds <= 86_400:
            raise InvalidArgument(f"lease_ttl_seconds is {lease_ttl_seconds!r}; it must be a number, 0.1 to 86,400")
        if behaviours is not None and not isinstance(behaviours, Behaviours):
            raise InvalidArgument(f"behaviours are a {type(behaviours).__name__}; make a Behaviours, and register them")
        self._closes = not isinstance(ledger, RunLedger | Database)
        if not isinstance(ledger, RunLedger):
            ledger = RunLedger(ledger if isinstance(ledger, Database) else open_database(ledger))
        self.ledger = ledger
        database = ledger.database
        self.behaviours = built_in() if behaviours is None else behaviours
        clock_us = clock or database.clock_us
        self._store = Store(database, clock_us=clock_us, ids=ids or _time_ordered, serde=ledger.serde)
        self._renewal = Renewal(database)
        self._ttl_us = round(lease_ttl_seconds * 1e6)
        self._started: dict[str, Release] = {}
        """By agent run that was started here, until it has ended: what lives of its spec is its own."""
        self._works: set[Work | Driven] = set()

    # -- life

    def close(self) -> None:
        """Renew no leases any more, and close what this object has opened. May be called twice."""
        self._renewal.close()
        if self._closes:
            self._store.database.close()

    async def aclose(self) -> None:
        """As `close`, without holding the event loop."""
        self._renewal.close(wait=False)
        if self._closes:
            await self._store.database.aclose()

    # -- runs

    def start(self, spec: Spec, input: Any, *, key: str | None = None) -> AgentRunRecord:
        """Begin an agent run; `drive` drives it, here or elsewhere.

        Args:
            spec: What it is to be, or its release.
            input: JSON. Of a ReAct agent a text, messages (langchain-core's, too), or `{"messages": […]}`.
            key: The caller's name for it: the same key, spec and input again is the same agent run.

        Raises:
            SpecInvalid: The spec cannot be compiled.
            InvalidArgument: The input is not JSON, or the key no text.
            ConflictError: The key names an agent run of another spec or input (`idempotency_conflict`).
        """
        release = self._known(spec)
        return self._began(release, self.get_run(self._store.database.transact(self._start(release, input, key))))

    async def astart(self, spec: Spec, input: Any, *, key: str | None = None) -> AgentRunRecord:
        """As `start`."""
        release = self._known(spec)
        return self._began(release, await self.aget_run(await self._store.transact(self._start(release, input, key))))

    def drive(self, agent_run_id: str, spec: Spec | None = None) -> AgentRunRecord:
        """Drive an agent run until it has ended, or waits for something that no worker does.

        Args:
            agent_run_id: Which.
            spec: What it was started with; not needed if this object has started it, or if it has ended.

        Raises:
            NotFound: There is none (`agent_run_not_found`), or this object does not know its spec
                (`release_not_found`).
            LeaseError: Another worker drives it (`thread_busy`), or took it over (`lease_lost`).
            LangGraphExtError: The spec is not the one that it was started with (`definition_changed`), or this code
                cannot drive it (`node_abi_unavailable`, `node_protocol_unsupported`).
            RecoveryRequired: What is stored contradicts itself (`recovery_invariant`).
        """
        return from_sync(partial(self.adrive, agent_run_id, spec))

    async def adrive(self, agent_run_id: str, spec: Spec | None = None) -> AgentRunRecord:
        """As `drive`. Cancelling it stops the worker, not the agent run: another one goes on with it."""
        return await self._drive(agent_run_id, spec)

    async def _drive(self, agent_run_id: str, spec: Spec | None, caller: Caller | None = None) -> AgentRunRecord:
        agent_run_id = named(agent_run_id)
        release = self._known(spec) if spec is not None else None
        found = await self._store.read(read_root, agent_run_id)
        if found.status.ended:
            return AgentRunRecord.of(found)
        if release is not None and release.digest == found.release:
            self._started[agent_run_id] = release
        release = release or self._started.get(agent_run_id)
        if release is None:
            raise NotFound(
                f"agent run {agent_run_id!r} was started elsewhere; pass the spec that it was started with to drive it",
                code="release_not_found",
                details={"agent_run_id": agent_run_id, "release": found.release},
            )
        work = Work(
            self._store,
            self._renewal,
            Owner.here(uuid4().hex),
            ReleaseProgram(release, self.behaviours, self._store, caller=caller),
            release.digest,
            agent_run_id,
            ttl_us=self._ttl_us,
        )
        self._works.add(work)
        try:
            root = (await work.drive()).root
        finally:
            self._works.discard(work)
        if root.status.ended:
            self._started.pop(agent_run_id, None)
        return AgentRunRecord.of(root)

    def run(self, spec: Spec, input: Any, *, key: str | None = None) -> AgentRunRecord:
        """`start` and `drive`."""
        release = self._known(spec)
        return self.drive(self.start(release, input, key=key).agent_run_id, release)

    async def arun(self, spec: Spec, input: Any, *, key: str | None = None) -> AgentRunRecord:
        """As `run`."""
        release = self._known(spec)
        started = await self.astart(release, input, key=key)
        return await self.adrive(started.agent_run_id, release)

    # -- control

    def cancel(self, agent_run_id: str, *, reason: str | None = None) -> AgentRunRecord:
        """Stop an agent run: nothing new begins in it, and what is under way comes to its end or is given up.

        One that nobody drives has ended when this returns; otherwise its worker ends it, at its next turn.

        Raises:
            NotFound: There is none (`agent_run_not_found`).
            ConflictError: It has ended (`run_closed`).
            InvalidArgument: The reason is no text.
        """
        found = self._store.database.transact(self._stop(agent_run_id, reason))
        self._look(agent_run_id)
        return AgentRunRecord.of(found)

    async def acancel(self, agent_run_id: str, *, reason: str | None = None) -> AgentRunRecord:
        """As `cancel`."""
        found = await self._store.transact(self._stop(agent_run_id, reason))
        self._look(agent_run_id)
        return AgentRunRecord.of(found)

    def steer(self, agent_run_id: str, message: Any) -> None:
        """Leave a message for a running agent; as `RunLedger.steer`."""
        self.ledger.steer(agent_run_id, message)
        self._look(agent_run_id)

    async def asteer(self, agent_run_id: str, message: Any) -> None:
        """As `steer`."""
        await self.ledger.asteer(agent_run_id, message)
        self._look(agent_run_id)

    def resolve(
        self, agent_run_id: str, operation_id: str, *, happened: bool | None, result: Any = None
    ) -> OperationRecord:
        """Say, from any process, what came of a tool call that is in doubt (`doubts`); `drive` goes on then.

        Args:
            agent_run_id: The agent run.
            operation_id: The call's operation.
            happened: Whether it was done. If not, it is called again, with its idempotency key. None: nobody will find
                out; it is not called again, and the model is told.
            result: If it was: what the tool would have returned, for the model; text, or other JSON, None included.

        Raises:
            NotFound: There is no such operation (`operation_not_found`).
            ConflictError: It is not in doubt (`operation_not_in_doubt`), or its run has ended (`run_closed`).
            InvalidArgument: There is a result of what was not done, or it is not JSON.
        """
        self._store.database.transact(self._resolve(agent_run_id, operation_id, happened, result))
        self._look(agent_run_id)
        return self._store.database.read(operation_given_out, operation_id)

    async def aresolve(
        self, agent_run_id: str, operation_id: str, *, happened: bool | None, result: Any = None
    ) -> OperationRecord:
        """As `resolve`."""
        await self._store.transact(self._resolve(agent_run_id, operation_id, happened, result))
        self._look(agent_run_id)
        return await self._store.read(operation_given_out, operation_id)

    def answer(self, agent_run_id: str, request_id: str, answer: Any) -> RequestRecord:
        """Answer what an agent asks (`requests`), from any process; `drive` goes on then.

        Args:
            agent_run_id: The agent run.
            request_id: Which of its requests.
            answer: Of an approval `{"decisions": [{"type": "approve"}, …]}`, one for each action in their order; the
                others are `{"type": "edit", "edited_action": {"name", "args"}}`, `{"type": "reject", "message"}` and
                `{"type": "respond", "message"}`.

        Raises:
            NotFound: There is no such agent run (`agent_run_not_found`) or request (`request_not_found`).
            InvalidArgument: The answer decides something else, or not everything (`answer_invalid`); nothing was
                written.
            ConflictError: It was answered otherwise before (`request_answered`; the same again changes nothing), or its
                run has ended (`run_closed`).
        """
        asked = self._store.database.read(partial(_asked, root_id=named(agent_run_id), request_id=request_id))
        self._store.database.transact(self._answer(*asked, answer))
        self._look(agent_run_id)
        return RequestRecord.of(self._store.database.read(request_named, request_id))

    async def aanswer(self, agent_run_id: str, request_id: str, answer: Any) -> RequestRecord:
        """As `answer`."""
        asked = await self._store.read(partial(_asked, root_id=named(agent_run_id), request_id=request_id))
        await self._store.transact(self._answer(*asked, answer))
        self._look(agent_run_id)
        return RequestRecord.of(await self._store.read(request_named, request_id))

    # -- inside

    def _start(
        self,
        spec: Spec,
        input: Any,
        key: str | None,
        visit: Visit | None = None,
        continues: Continues | None = None,
    ) -> Callable[..., str]:
        if key is not None and text_or_none(key, "key") == "":
            raise InvalidArgument("key is empty; it must be text, or None")
        release = self._known(spec)
        factories = self.behaviours.require(release.descriptor)  # who cannot drive it does not begin it
        entry, input = entry_of(release), without_objects(input)
        check = getattr(factories[entry.behaviour, entry.version](), "check_input", None)
        if check is not None and (continues is None or input["messages"]):  # which may add nothing
            check(input)
        if continues is not None:  # what it goes on with is a part of what it is
            input = {**input, "continues": continues._asdict()}
        try:
            canonical.encode(input, where="input")
        except TypeError as error:
            raise InvalidArgument(f"an agent run's input is JSON: {error}") from error
        ids = self._store.ids
        began = partial(start, entry=entry, input=input, key=key, agent_run_id=ids(), visit=visit, continues=continues)
        return partial(began, now_us=self._store.clock_us(), ids=ids)

    def _known(self, spec: Spec) -> Release:
        return spec if isinstance(spec, Release) else compile_spec(spec)

    def _began(self, release: Release, run: AgentRunRecord) -> AgentRunRecord:
        """Keep what lives of a run's spec, of the first who has started it here."""
        if not run.status.ended:
            self._started.setdefault(run.agent_run_id, release)
        return run

    def _stop(self, agent_run_id: str, reason: str | None) -> Callable[..., AgentRun]:
        return partial(
            stop,
            root_id=named(agent_run_id),
            reason=text_or_none(reason, "reason"),
            **self._from_outside(),
        )

    def _resolve(
        self, agent_run_id: str, operation_id: str, happened: bool | None, result: Any
    ) -> Callable[[Tx], None]:
        if happened not in (True, False, None) or (result is not None and not happened):
            raise InvalidArgument(
                "say happened=True, with what the tool would have returned as its result, or happened=False or None "
                "without one"
            )
        try:
            canonical.encode(result, where="result")
        except TypeError as error:
            raise InvalidArgument(f"a tool's result is text, or other JSON: {error}") from error
        return partial(
            resolve,
            root_id=named(agent_run_id),
            operation_id=named(operation_id, "operation_id"),
            happened=happened,
            result=result,
            **self._from_outside(),
        )

    def _answer(self, request: Request, tools: Mapping[str, Any], given: Any) -> Callable[[Tx], None]:
        return partial(
            give_answer,
            root_id=request.root_id,
            request_id=request.request_id,
            value={"decisions": checked_decisions(request.payload, given, _judge(request, tools))},
            **self._from_outside(),
        )

    def _from_outside(self) -> dict[str, Any]:
        """Who says something of a tree that they need not drive, and when."""
        return {
            "owner": Owner.here(uuid4().hex),
            "ttl_us": self._ttl_us,
            "lease_us": self._store.database.clock_us(),
            "now_us": self._store.clock_us(),
            "ids": self._store.ids,
        }

    def _look(self, agent_run_id: str) -> None:
        for work in list(self._works):
            if work.root_id == agent_run_id:
                work.look()


def _asked(tx: Tx, root_id: str, request_id: str) -> tuple[Request, dict[str, Any]]:
    """A request, and the tools of the release that has asked, as they are on record."""
    root = read_root(tx, root_id)
    request = request_of(tx, root_id, named(request_id, "request_id"))
    release = canonical.decode(tx.one("agent_release_get", digest=root.release)["descriptor"])
    return request, release["tools"]


def _judge(request: Request, tools: Mapping[str, Any]) -> Callable[[str, dict[str, Any]], str | None]:
    """What looks at arguments that a person has written."""
    return partial(raising.fault_of, request.payload) if request.kind == "limit" else partial(_fault_of, tools)


def _fault_of(tools: Mapping[str, Any], name: str, args: dict[str, Any]) -> str | None:
    """What is wrong with a tool's arguments by its schema; what its pydantic model says besides is seen at the call."""
    faults = unstorable(args) or unfit(args, tools[name]["arguments"])
    return "; ".join(told(faults, "the arguments")) or None


def _time_ordered() -> str:
    return f"{time.time_ns():016x}-{secrets.token_hex(6)}"
