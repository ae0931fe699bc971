"""Diagnostics: where in a spec something is wrong, as JSON Pointers (RFC 6901)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pydantic import ValidationError

from langgraph_ext.errors import Diagnostic, SpecInvalid

__all__ = ["below", "from_pydantic", "pointer"]


def pointer(*parts: str | int) -> str:
    """The JSON Pointer of a place, from the names and positions that lead there."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def below(at: str, diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The same of a part, seen from the whole in which it stands at `at`."""
    for each in diagnostics:
        yield replace(each, path=at + each.path, related=tuple(at + path for path in each.related))


def from_pydantic(error: ValidationError) -> list[Diagnostic]:
    """What pydantic found wrong with the shape of a spec, without the values it found."""
    found: list[Diagnostic] = []
    for each in error.errors(include_url=False, include_input=False):
        at = pointer(*(part for part in each["loc"] if part != "[key]"))
        cause = each.get("ctx", {}).get("error")
        if isinstance(cause, SpecInvalid):  # a part that was given as a dict, and has told already
            found.extend(below(at, cause.diagnostics))
        else:
            found.append(Diagnostic(code="schema_invalid", path=at, message=str(cause or each["msg"])))
    return found
