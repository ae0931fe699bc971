"""What `doctor` says: versions, the database, its runs, and what is wrong."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from langgraph_ext.cli.place import Place
from langgraph_ext.database.doctor import Examination, examine
from langgraph_ext.ledger import listing

__all__ = ["Checkup", "check_up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """Everything that is known about an installation and its database."""

    place: Place
    versions: dict[str, str]
    seen: Examination

    @property
    def problems(self) -> list[str]:
        """What is wrong; empty when all is well."""
        return self.seen.problems

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        database = asdict(self.seen)
        del database["sqlite_version"], database["problems"], database["counts"]
        return {
            "sound": not self.problems,
            "problems": self.problems,
            "versions": self.versions,
            "database": {"named_by": self.place.named_by, **database},
            "runs": dict(self.seen.counts),
        }

    def as_rows(self) -> Iterator[tuple[str, str]]:
        """For people: what, and how it is."""
        yield from self.versions.items()
        seen = self.seen
        yield "database", f"{seen.path} (named by {self.place.named_by})"
        yield "size", f"{seen.size_bytes} bytes, and {seen.log_bytes} of its log"
        yield "schema version", f"{_known(seen.schema_version)} (this code: {seen.known_version})"
        yield "oldest_reader", _known(seen.oldest_reader)
        yield "journal mode", _known(seen.journal_mode)
        yield "quick_check", _known(seen.integrity)
        runs = [f"{count} {status}" for status, count in seen.counts.items() if count]
        yield "runs", ", ".join(runs) or ("none" if seen.counts else "unknown")
        for problem in self.problems:
            yield "problem", problem


def check_up(place: Place) -> Checkup:
    """Look at everything; the database is read in full, and not changed."""
    seen = examine(place.path, count=listing.runs_by_status)
    versions = {name: _version(name) for name in ("langgraph-ext", "langgraph", "langgraph-checkpoint")}
    versions |= {"SQLite": seen.sqlite_version, "Python": platform.python_version()}
    return Checkup(place=place, versions=versions, seen=seen)


def _known(value: object) -> str:
    return "unknown" if value is None else str(value)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
