"""A scripted chat model: the one fake. It answers what it is told, reports what it is told, and notes each dispatch."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

__all__ = ["Scripted", "dispatches", "used"]


def used(tokens_in: int = 10, tokens_out: int = 5, **details: Any) -> UsageMetadata:
    """What a provider reports."""
    return UsageMetadata(
        input_tokens=tokens_in, output_tokens=tokens_out, total_tokens=tokens_in + tokens_out, **details
    )


class Scripted(BaseChatModel):
    """Answers in two pieces, the second with the usage, if there is one."""

    model: str = "scripted"
    max_tokens: int | None = None
    usage: Any = None
    log: str | None = None
    """A file that gets a line at each dispatch, synced."""
    during: Callable[[], Any] | None = None
    """Called while the model is at work."""
    seconds: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _work(self) -> None:
        if self.log is not None:
            with open(self.log, "a") as file:
                file.write("dispatched\n")
                file.flush()
                os.fsync(file.fileno())
        time.sleep(self.seconds)
        if self.during is not None:
            self.during()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._work()
        return ChatResult(generations=[ChatGeneration(message=AIMessage("hi", usage_metadata=self.usage))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        self._work()
        for chunk in (AIMessageChunk("h"), AIMessageChunk("i", usage_metadata=self.usage)):
            yield ChatGenerationChunk(message=chunk)

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(*args, **kwargs):
            yield chunk


def dispatches(path: str | Path) -> int:
    """How often models that note it there were called, in all processes."""
    return len(Path(path).read_text().splitlines()) if Path(path).exists() else 0
