"""Driven node: what an agent node and a capability node have in common: their body drives what is on record."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from langgraph_ext.errors import AdmissionError
from langgraph_ext.nodes.frames import Frame
from langgraph_ext.nodes.inner_graph import Driven, athrough, through
from langgraph_ext.nodes.place import Place, here
from langgraph_ext.nodes.wrapping import Effect, OnUnknown, durable
from langgraph_ext.saver.definition import DECLARED

__all__ = ["DrivenNode"]

At = TypeVar("At", bound=Driven)


class DrivenNode(Runnable[Any, Any], Generic[At]):
    """A node, as a Runnable whose name is the node's. Each execution is an attempt on record."""

    name: str
    _KIND: ClassVar[str]
    """What the attempts are listed as."""

    def _become_durable(self, told: dict[str, str], *, effect: Effect, on_unknown: OnUnknown) -> None:
        """Make the node's body, in both forms.

        Args:
            told: What of it makes a node another one.
            effect: As of `durable`.
            on_unknown: As of `durable`.
        """

        def visit(state: Any, frame: Frame | None = None) -> Any:
            at = self._arrive(state, frame, in_loop=False)
            through(at)
            return self._update(at)

        async def avisit(state: Any, frame: Frame | None = None) -> Any:
            at = self._arrive(state, frame, in_loop=True)
            await athrough(at)
            return await self._aupdate(at)

        made = durable(kind=self._KIND, effect=effect, on_unknown=on_unknown)
        for each in (visit, avisit):  # two that one body calls are two parts of its task
            each.__module__, each.__qualname__ = type(self).__module__, f"{type(self).__qualname__}.{self.name}"
        self.func, self.afunc = made(visit), made(avisit)
        for each in (self.func, self.afunc):
            setattr(each, DECLARED, {**getattr(each, DECLARED), **told})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the node on a state, in a graph."""
        return self.func(input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As `invoke`."""
        return await self.afunc(input)

    def _place(self, instead: str) -> Place:
        """Where it stands.

        Args:
            instead: What may be used where there is no graph.

        Raises:
            AdmissionError: In no graph with a ledger (`ledger_missing`).
        """
        place = here()
        if place is None:
            raise AdmissionError(
                f"{self._KIND} node {self.name!r} runs in a graph; add it to one that is compiled with "
                f'checkpointer=LedgerSaver("runs.db"), or {instead}',
                code="ledger_missing",
            )
        return place

    @abstractmethod
    def _arrive(self, state: Any, frame: Frame | None, *, in_loop: bool) -> At:
        """What an attempt drives.

        Args:
            state: The graph's.
            frame: The attempt; None where there is none.
            in_loop: Whether the body is awaited.
        """

    @abstractmethod
    def _update(self, at: At) -> Any:
        """What the node returns when that has ended."""

    @abstractmethod
    async def _aupdate(self, at: At) -> Any:
        """As `_update`."""
