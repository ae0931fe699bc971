"""Keys of effects: by which the ledger, and the outside, know one action again (rule L29).

derived    sha256 of (run, visit, name, part): another round of a loop, or another `Send`, is another visit
base_key=  sha256 of (base, iteration path, name, part): each round acts once, whatever the run
key=       the caller's own, as it is: one action over all rounds and runs of the ledger
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from langgraph_ext import canonical
from langgraph_ext.errors import InvalidArgument
from langgraph_ext.ledger.settlement import PartKey

__all__ = ["Key", "base_key", "derived_key", "key_for"]


class Key(NamedTuple):
    """An effect's idempotency key."""

    text: str
    business: bool
    """Whether the caller gave it, in full or as a base."""


def derived_key(run_id: str, visit: PartKey, name: str, part: str | None) -> str:
    """The key of an effect whose caller gave none: `sha256:<64 hex>`.

    Args:
        run_id: The run's name.
        visit: The visit, and which attempt-bearing part of its task.
        name: The effect's.
        part: What tells it from others of its name in the attempt.
    """
    return _digest([run_id, list(visit), name, part])


def base_key(base: str, iteration_path: Sequence[int], name: str, part: str | None) -> str:
    """The key made of a caller's base: `sha256:<64 hex>`, another one in each round of the enclosing loops."""
    return _digest([base, list(iteration_path), name, part])


def key_for(
    run_id: str,
    visit: PartKey,
    name: str,
    part: str | None,
    *,
    iteration_path: Sequence[int],
    key: str | None = None,
    base: str | None = None,
) -> Key:
    """The key of an effect, by what its caller gave.

    Raises:
        InvalidArgument: `key` and `base` are both given, one of the texts is empty, or no text.
    """
    _check_texts(name=name, part=part, key=key, base_key=base)
    if key is not None and base is not None:
        raise InvalidArgument(f"effect {name!r}: key= and base_key= are both given; one of them names the action")
    if key is not None:
        return Key(key, business=True)
    if base is not None:
        return Key(base_key(base, iteration_path, name, part), business=True)
    return Key(derived_key(run_id, visit, name, part), business=False)


def _check_texts(*, name: object, **others: object) -> None:
    for word, value in {"name": name, **{word: value for word, value in others.items() if value is not None}}.items():
        if not isinstance(value, str) or not value:
            raise InvalidArgument(f"effect {name!r}: its {word} is {value!r}; it must be text, and not empty")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"effect {name!r}: its {word} is not valid Unicode: {error.reason}") from None


def _digest(content: list[Any]) -> str:
    return canonical.digest(canonical.encode(content, where="key"))
