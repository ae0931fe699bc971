"""Frame: the attempt that a durable body runs in, as the body sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import MessageLikeRepresentation

from langgraph_ext.database import AppTx
from langgraph_ext.ledger.frames import FrameKey
from langgraph_ext.nodes.acts import Actor, Named
from langgraph_ext.nodes.calls import Calls, Memo, Said
from langgraph_ext.nodes.memos import Memos
from langgraph_ext.saver.acting import ATTEMPT

__all__ = ["Frame", "entered", "frame", "left"]

_CURRENT: ContextVar[Frame | None] = ContextVar("langgraph_ext_frame", default=None)

Entered = tuple[Token["Frame | None"], Token[FrameKey | None]]
"""What `left` has to be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One attempt of a durable body.

    A body gets it by a parameter `frame: Frame`, or by `frame()`.
    """

    attempt_id: str
    run_id: str
    node: str
    node_path: str
    """Names of the nodes from the root graph to this one, joined by `/`."""
    iteration_path: tuple[int, ...]
    """Which round it is in: the ordinals, from 1, of the enclosing visits and of its own, outermost first."""
    number: int
    """Which attempt of its visit, from 1."""
    epoch: int
    """The fencing epoch of the lease it runs under."""
    goes_on: bool
    """Whether it has paused before, and goes on behind an answer."""
    steering: tuple[Any, ...]
    """What others have told the run (`ledger.steer`), of a node that accepts steering: each message once, and again to
    the next attempt of the visit if this one comes to nothing."""
    memo: Memos
    """Small values that the node keeps between its attempts and its rounds."""
    _actor: Actor = field(repr=False)
    _calls: Calls = field(repr=False)

    def inside(self, fn: Callable[[AppTx], object]) -> None:
        """Have `fn(tx)` write to the application's own tables, in the transaction that stores the attempt's success.

        Both are stored or neither is. It runs after the body has returned, in the order of registration, in whichever
        thread commits, for as long as which nobody else writes; in a transaction that has to be repeated it is called
        again. It does not run if the body raises or asks. A node that is declared without effects may do this too:
        it is none on the outside.

        Args:
            fn: A plain function. `tx.execute(sql, params)` runs one statement on the ledger's database. If it raises,
                nothing of the settlement is stored and the attempt has failed; the invocation ends with that error.

        Raises:
            InvalidArgument: It is an async function or none, takes no argument, or the body has ended.
        """
        self._actor.inside(fn)

    def once(
        self,
        name: str,
        payload: Any,
        call: Callable[[str], Any],
        *,
        part: str | None = None,
        key: str | None = None,
        base_key: str | None = None,
    ) -> Any:
        """Act on the outside world, and give what it answered, the receipt. A committed effect is not called again.

        Args:
            name: What the effect is called in its node.
            payload: What it is about: JSON. Only its digest is kept, which tells another action under the same key.
            call: Called with the idempotency key. If it raises, nobody knows what it did, and the effect is in doubt;
                raising `EffectNotDone` says that nothing was done.
            part: What tells it from others of its name in the attempt.
            key: An idempotency key of the caller's own, unique over all rounds and runs of the ledger. By default it is
                made of the run, the visit, `name` and `part`.
            base_key: What the action is about in the caller's words: the key is made of it, `iteration_path`, `name`
                and `part`. Each round acts once, in whatever run; the tasks of one fan-out are in the same round.

        Raises:
            InvalidArgument: The node is declared without effects (`effect_undeclared`), a name is used twice without
                `part=`, the payload is no JSON, both `key` and `base_key` are given, or `call` is no function of one
                argument, or async. Nothing was begun then. A function that is none of these, and yet answers something
                to await, is in doubt, as is one whose answer cannot be stored.
            ConflictError: The key was used with another payload (`idempotency_conflict`), or the attempt is no longer
                this one (`attempt_mismatch`); as a signal to LangGraph.
            RecoveryRequired: The effect is in doubt, and the node stops at that; as a signal to LangGraph.
        """
        return self._actor.once(name, payload, call, part=part, named=Named(key, base_key))

    async def aonce(
        self,
        name: str,
        payload: Any,
        call: Callable[[str], Any],
        *,
        part: str | None = None,
        key: str | None = None,
        base_key: str | None = None,
    ) -> Any:
        """As `once`, for a call that is awaited. A plain function that answers at once will do; it holds the loop."""
        return await self._actor.aonce(name, payload, call, part=part, named=Named(key, base_key))

    def call(
        self,
        model: str,
        fn: Callable[[], Any],
        *,
        prompt: str | Sequence[MessageLikeRepresentation] | None = None,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        usage: Callable[[Any], Mapping[str, Any] | None] | None = None,
        memo: Memo | None = None,
        kind: Literal["model", "tool"] = "model",
        role: str | None = None,
    ) -> Any:
        """Call a model, or something else that is paid for, which is no chat model of LangChain's, and give its answer.

        What it may use is reserved before it is called; behind it, what `usage` reports is stored instead. With `memo=`
        the answer is kept in the same commit: an attempt that comes here again is given it, and pays nothing. The next
        round of a loop pays for an answer of its own, unless the key begins with `once:`.

        Args:
            model: `"provider:model"`, or the model alone.
            fn: Called with nothing; makes the one call. Not around LangChain's chat models, which count themselves.
            prompt: What it is given: text, or messages. Its tokens are estimated, as a chat model's; it is not stored.
            max_tokens: The most tokens that it may answer, as it is told itself. With `prompt` it bounds the call;
                without, only `Budget(tokens_per_call=…)` does.
            max_cost_usd: The most US dollars that it may cost; else `Budget(price=…)` of its tokens says so.
            usage: `usage(answer)` returns what was used: a dict of `input_tokens`, `output_tokens`, `cache_read`,
                `cache_creation`, `tool_calls`, `cost_usd`, or LangChain's `usage_metadata`. What it leaves out stays
                reserved.
            memo: A key of `memo` to keep the answer under; or the key and a function, `memo=("draft", get_text)`: what
                that makes of the answer is kept, and given back, the first time too.
            kind: `"tool"` for what is no model: it takes no turn, and no tokens but those that are told.
            role: What the call is for, for whoever lists them.

        Raises:
            InvalidArgument: `fn` is async or takes arguments, an amount can be none, a memo's key is used twice in the
                attempt: nothing was called then. Or what `usage` returned can be none (`invalid_usage`), or the answer
                cannot be kept: it was called, which is on record.
            BudgetExhausted: It would use more than is left; as a signal to LangGraph, as are the next.
            AdmissionError: The run was cancelled (`cancelled`), too many visits have failed (`fail_fast`), or tokens or
                cost are limited and nobody can tell its bound (`call_unbounded`).
            ConflictError: The attempt is no longer this one (`attempt_mismatch`), or somebody who has taken the thread
                over has given the call up (`call_conflict`).
        """
        return self._calls.call(fn, Said(model, prompt, max_tokens, max_cost_usd, usage, memo, kind, role))

    async def acall(
        self,
        model: str,
        fn: Callable[[], Any],
        *,
        prompt: str | Sequence[MessageLikeRepresentation] | None = None,
        max_tokens: int | None = None,
        max_cost_usd: float | None = None,
        usage: Callable[[Any], Mapping[str, Any] | None] | None = None,
        memo: Memo | None = None,
        kind: Literal["model", "tool"] = "model",
        role: str | None = None,
    ) -> Any:
        """As `call`, for a function that is awaited. A plain one that answers at once will do; it holds the loop."""
        return await self._calls.acall(fn, Said(model, prompt, max_tokens, max_cost_usd, usage, memo, kind, role))


def frame() -> Frame:
    """The attempt that the caller's durable body runs in.

    Raises:
        RuntimeError: The caller is in no durable body.
    """
    found = _CURRENT.get()
    if found is None:
        raise RuntimeError("frame() was called outside of a durable body; wrap the node with @durable")
    return found


def entered(found: Frame) -> Entered:
    """A body begins; what it calls finds its frame, and its attempt."""
    return _CURRENT.set(found), ATTEMPT.set(found._actor.key)


def left(tokens: Entered) -> None:
    """The body has ended."""
    with suppress(ValueError):  # one that is thrown away with its loop ends in a context that never had it
        _CURRENT.reset(tokens[0])
        ATTEMPT.reset(tokens[1])
