"""The error family: one root, one subclass for each kind a caller would catch apart, stable codes.

Every error carries `code` (stable text, for programs), `retryable` (whether the same call may succeed later without
anything else changing), `details` (plain values, for logs) and a message that says what is wrong, where, and what to
do. Messages and details never hold payloads or passwords.
"""

from __future__ import annotations

import dataclasses as _dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AdmissionError",
    "AgentRunFailed",
    "BudgetExhausted",
    "CapabilityFailed",
    "ConflictError",
    "Diagnostic",
    "EncryptionError",
    "InvalidArgument",
    "LangGraphExtError",
    "LeaseError",
    "NotFound",
    "RecoveryRequired",
    "SpecInvalid",
    "StoreError",
]


class LangGraphExtError(Exception):
    """Root of every error this package raises on purpose.

    Codes that are raised by nothing, but tell why an agent run has ended (`AgentRunRecord.reason`): `stopped`,
    `deadline_exceeded`, `loops_exhausted`, `model_calls_exhausted`, `tool_calls_exhausted`, `tokens_exhausted`,
    `model_call_failed`, `model_protocol_error` (an answer is none), `context_window_exceeded`, `compaction_failed`; of
    a behaviour `node_outcome_invalid`, `node_implementation_failed`, `node_missing_terminal_outcome`. What came of one
    call: `call_failed`, `deadline_exceeded`, `denied` (by a hook), `cancelled`, `outcome_unknown`,
    `tool_result_invalid` (it is no message), `asked_again` (a middleware has made another one); and of a tool call that
    was rejected `tool_unknown`, `tool_not_allowed`, `tool_arguments_invalid`, `response_truncated`.

    Args:
        message: What is wrong, where, and what to do about it.
        code: Stable name of the error, such as `"store_busy"`; the class's own default when omitted.
        retryable: Whether the same call may succeed later; the class's own default when omitted.
        details: Plain values a program may want (ids, paths, limits).
    """

    code = "error"
    retryable = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retryable: bool | None = None,
        details: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable
        self.details: dict[str, object] = details or {}

    def __str__(self) -> str:
        return f"{self.args[0]} [{self.code}]"


class InvalidArgument(LangGraphExtError, ValueError):
    """An argument that can never be accepted; nothing was written.

    (If it is what an effect's call answered, that call was made, and the effect is in doubt.)

    Codes: `invalid_argument`; `effect_undeclared` (an effect in a node that is declared without), `memo_scope` (a memo
    cannot have this owner), `output_limit` (a value is too large to be kept), `invalid_usage` (what a model call is
    said to have used, or to cost, can be no such amount), `tool_arguments_invalid` (a tool that is a node does not take
    them), `spec_unsupported` (an agent spec asks for what this version
    does not enforce yet), `middleware_unsupported` (a middleware of an agent does what its node does not).
    """

    code = "invalid_argument"


@_dataclasses.dataclass(frozen=True, order=True, slots=True, kw_only=True)
class Diagnostic:
    """One thing that is wrong with a spec, and where. Sorted by code, path and related paths."""

    code: str
    """Stable text, for programs."""
    path: str
    """JSON Pointer of the part that is wrong, in the spec as it was written; the whole spec is the empty pointer."""
    related: tuple[str, ...] = ()
    """JSON Pointers of the parts it contradicts."""
    message: str

    def __str__(self) -> str:
        also = f" (see {', '.join(self.related)})" if self.related else ""
        return f"{self.path or 'the spec'}: {self.message}{also} [{self.code}]"


class SpecInvalid(InvalidArgument):
    """A spec, of an agent or a capability, can never be run; nothing was written, and nothing of it was called.

    `diagnostics` holds everything that is wrong, sorted; `details["diagnostics"]` the same as plain values.

    Code: `spec_invalid`.
    """

    code = "spec_invalid"

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(set(diagnostics)))
        counted = "in one place" if len(self.diagnostics) == 1 else f"in {len(self.diagnostics)} places"
        lines = "\n".join(f"  {each}" for each in self.diagnostics)
        details: dict[str, object] = {"diagnostics": [_dataclasses.asdict(each) for each in self.diagnostics]}
        super().__init__(f"the spec is wrong {counted}; correct each:\n{lines}\n", details=details)

    def __reduce__(self) -> tuple[type[SpecInvalid], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)


class AdmissionError(LangGraphExtError):
    """A durable node may not run, or not here, or nothing of its run may; its body was not called.

    Codes: `attempt_running` (an attempt of the same task runs under the same lease), `retry_exhausted` (as many
    attempts as were allowed have ended without success), `cancelled` (somebody has cancelled the run),
    `transition_limit` (the run has made as many visits as were allowed), `fail_fast` (as many visits in a row as were
    allowed have called a model and failed), `call_unbounded` (tokens or cost are limited, and nobody can tell what a
    call may use at most), `definition_changed` (the graph is not what it was when the run began, and that matters),
    `checkpoint_not_stored` (the checkpoint being executed was not stored in time, or will not be, for what `__cause__`
    names; retryable), `durability_required` (a node with effects runs where nothing is stored until the end),
    `ledger_missing` (the graph has no LedgerSaver), `part_changed` (a call inside a task comes with other arguments
    than the one that is on record; retryable), `part_ambiguous` (nothing would tell two calls of a task apart after a
    crash), `questions_open` (new input finds a run that waits for answers), `node_abi_unavailable` (this process lacks
    a version of a behaviour that an agent run is pinned to), `node_protocol_unsupported` (an agent task stands at a
    version that this code does not know), `model_not_made` (a model is only a name, and was not
    made of it), `extra_missing` (an extra of this package is not installed).
    """

    code = "admission_refused"


class AgentRunFailed(LangGraphExtError):
    """An agent run has ended without an answer.

    Codes are the agent run's reasons, such as `model_call_failed`, `loops_exhausted`, `deadline_exceeded` or `stopped`.
    """

    code = "agent_run_failed"


class BudgetExhausted(LangGraphExtError):
    """A run would use more than its budget allows; nothing was called.

    `details` names thread and run; of a call that was refused, also `dimension`, `limit`, `used`, `reserved` and
    `requested`. `ledger.raise_budget` lets the run go on.

    Code: `budget_exhausted`.
    """

    code = "budget_exhausted"


class CapabilityFailed(LangGraphExtError):
    """What a capability node calls has come to nothing that the node could return.

    Codes: `denied` (by a hook), `rejected` (by a person), `deadline_exceeded` (the call took too long; what it did is
    in doubt), `outcome_unknown` (nobody knows whether it was done, and it is not called again); or the code of an error
    that a hook has made of its result.
    """

    code = "capability_failed"


class ConflictError(LangGraphExtError):
    """Somebody else was first, or what is stored says otherwise; what the call wanted to write was not written.

    Codes: `thread_conflict` (another run has gone on from the checkpoint that this one had loaded), `thread_deleted`
    (what was to be written belongs to a thread, or a run, that was deleted),
    `task_identity_conflict` (a task was recorded in another namespace or under another path), `terminal_conflict`
    (the attempt has ended already, and otherwise), `terminal_mismatch` (the end that was handed over is not what it
    says, or not this attempt's), `attempt_mismatch` (who wants to act is no running attempt any more),
    `idempotency_conflict` (an effect's key was used before, for another payload or another name), `effect_conflict`
    (the effect stands elsewhere, or its call may still be running), `run_closed` (the run has ended otherwise),
    `memo_conflict` (the memo never changes), `run_exists` (this request came before), `run_key_conflict` (it came
    before with another input), `answer_conflict` (a question has another answer), `answer_ambiguous` (several questions
    are open, and nobody said which is meant), `interrupt_not_pending` (it waits for no answer, or no answer for it),
    `call_exists` (a call's id was used before), `call_conflict` (the call is settled, or given up, already),
    `call_mismatch` (it is another attempt's), `budget_invariant` (a child run has used more than it was given). Of
    the engine: `scope_closed` (nothing begins in an agent run any more), `scope_busy` (it ends when its calls have;
    retryable), `revision_conflict` (a row is not as it was read), `loop_ticket_state_conflict` (a ticket is settled),
    `operation_not_in_doubt` (nobody needs to be told what came of a call).
    """

    code = "conflict"


class LeaseError(LangGraphExtError):
    """A thread is not this caller's to write to; what the call wanted to write was not written.

    Codes: `thread_busy` (another owner has a live lease of the thread; retryable), `lease_lost` (the caller's own lease
    of it was released, taken over, or could not be renewed in time).
    """

    code = "lease"


class NotFound(LangGraphExtError):
    """What was asked for is not there.

    Codes: `run_not_found`, `interrupt_not_found`, `attempt_not_found`, `effect_not_found`, `call_not_found` (the ledger
    holds none of this name), `cursor_expired` (events behind the cursor were taken away; `details["oldest"]` is where
    to read on), `agent_run_not_found`, `operation_not_found` (nor does the engine), `release_not_found` (this engine
    does not know what an agent run was started with), `script_exhausted` (in tests: a script has no step for a call).
    """

    code = "not_found"


class RecoveryRequired(LangGraphExtError):
    """Nobody knows whether something was done, and going on could do it twice; a person has to say.

    `details` names the attempt and the effects in doubt.

    Codes: `recovery_required`; `recovery_invariant` (what is stored of an agent run contradicts itself).
    """

    code = "recovery_required"


class StoreError(LangGraphExtError):
    """The database could not do what was asked; what the call wanted to write was not written.

    Codes: `store_busy` (another process held the write lock too long; retryable), `store_full` (no space left),
    `store_corrupt` (not a sound database), `store_foreign` (a sound database that is not ours), `store_newer` (written
    by a newer version that older code must not touch), `store_missing` (there is no such file, and the call does not
    make one), `store_unwritable` (missing folder, no permission), `store_io` (the system reported an I/O error),
    `store_error` (anything else the driver reports), `closed` (the object was closed), `forked` (used in a parent
    process).
    """

    code = "store_error"


class EncryptionError(StoreError):
    """What is encrypted cannot be had, or what should be is not; nothing of it was decoded, and nothing was written.

    `details` names what it was, and where it was found.

    Codes: `encrypted` (the database is, and no key was given), `not_encrypted` (a key was given, and the database is
    plain), `key_missing` (something was sealed with a key that was not given), `key_wrong` (a key of that name is
    another one), `key_in_use` (others go on sealing with another key than the one that all is sealed anew with; what
    was sealed by then stays), `row_plaintext` (a row is plain where all are sealed), `row_forged` (a row was changed,
    moved, or sealed with another key), `reencrypt_unfinished` (a plain database is being encrypted, which somebody has
    to end).
    """

    code = "encryption"
