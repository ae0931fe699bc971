"""Changes of values that grow, as plain data: what one step makes of what a channel held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["HOW", "Change"]

HOW = ["append", "append", "append", "edit", "cut the front", "cut the end", "insert", "slide", "begin", "again"]


@dataclass(frozen=True)
class Change:
    """What becomes of a value; of one that cannot be changed so, a new one begins."""

    how: str
    word: str
    at: int

    def of(self, held: Any) -> Any:
        """The value after the change."""
        if isinstance(held, dict):
            return self._of_dict(held)
        if not isinstance(held, list | str | bytes) or self.how == "begin" or not held:
            return self._new()
        new: Any = self.word
        if not isinstance(held, str):
            new = [self.word] if isinstance(held, list) else self.word.encode()
        at = self.at % len(held)
        return {
            "append": held + new,
            "edit": held[:at] + new + held[at + 1 :],
            "cut the front": held[at:],
            "cut the end": held[:at],
            "insert": held[:at] + new + held[at:],
            "slide": held[1:] + new,
            "again": held,
        }[self.how]

    def _of_dict(self, held: dict[str, Any]) -> dict[str, Any]:
        keys = list(held)
        key = keys[self.at % len(keys)] if keys else ""
        if self.how == "edit" and keys:
            return {**held, key: self.word}
        if self.how.startswith("cut") and keys:
            return {each: value for each, value in held.items() if each != key}
        return held if self.how == "again" else {**held, f"{len(held)}{self.word[:5]}": self.word}

    def _new(self) -> Any:
        return [
            lambda: [self.word] * (self.at % 7),
            lambda: {str(n): self.word for n in range(self.at % 7)},
            lambda: self.word * (self.at % 7),
            lambda: self.word.encode() * (self.at % 7),
        ][self.at % 4]()
