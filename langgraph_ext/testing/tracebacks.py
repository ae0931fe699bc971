"""Tracebacks that are short enough to be read: of frameworks, only how many lines there are."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

__all__ = ["readable"]

_FRAMEWORKS = ("langchain_core", "langgraph", "langgraph_ext")

_STANDARD_LIBRARY = str(Path(asyncio.__file__).parents[1])

_INSTALLED = ("site-packages", "dist-packages")


def readable(error: BaseException) -> str:
    """The traceback of an error and of what caused it, each without the frames of frameworks but the one that raised.

    Frames of Python's importing and of the standard library count as a framework's. Empty if all of an error's frames
    are of importing: then nothing of anybody's has run.
    """
    told = traceback.TracebackException.from_exception(error, compact=True)
    if all(_imports(frame) for frame in told.stack if not _is_ours(frame)):
        return ""
    return "".join(_lines(told))


def _lines(told: traceback.TracebackException) -> Iterator[str]:
    cause = told.__cause__
    context = None if told.__suppress_context__ else told.__context__
    if cause is not None:
        yield from _lines(cause)
        yield "\nThe above exception was the direct cause of the following exception:\n\n"
    elif context is not None:
        yield from _lines(context)
        yield "\nDuring handling of the above exception, another exception occurred:\n\n"
    yield "Traceback (most recent call last):\n"
    for hidden, group in groupby(told.stack[:-1], _is_of_a_framework):
        frames = list(group)
        if hidden:
            yield f"  … {len(frames)} of LangGraph, Python and others …\n"
        else:
            yield from traceback.StackSummary.from_list(frames).format()
    yield from traceback.StackSummary.from_list(told.stack[-1:]).format()
    yield from told.format_exception_only()


def _is_of_a_framework(frame: traceback.FrameSummary) -> bool:
    file = frame.filename
    if _imports(frame) or any(file.startswith(folder) for folder in _folders()):
        return True
    return file.startswith(_STANDARD_LIBRARY) and not any(each in file for each in _INSTALLED)


def _imports(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith("<frozen importlib") or frame.filename.startswith(
        f"{_STANDARD_LIBRARY}/importlib/"
    )


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(str(Path(__file__).parent))


def _folders() -> list[str]:
    found = (find_spec(name) for name in _FRAMEWORKS)
    return [f"{folder}/" for spec in found if spec is not None for folder in spec.submodule_search_locations or ()]
