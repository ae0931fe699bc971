"""Named queries: SQL lives in `.sql` files, one statement a block, found by name.

A block begins with `-- name: put_get` and ends where the next begins. SQL is written in the subset that SQLite and
PostgreSQL share, with `:name` parameters; a block that one backend must write differently is repeated with the backend
behind its name: `-- name: put_get (postgres)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

__all__ = ["LAYERS", "load_queries", "query_files", "read_blocks"]

LAYERS = ("ledger", "saver", "engine")
"""Rooms that may own SQL, lowest first: each keeps its own `sql/` folder (read as a resource, never imported)."""

_HEADER = re.compile(r"^-- name: (?P<name>\w+)(?: \((?P<backend>\w+)\))?$", re.MULTILINE)


def layer_folders() -> list[Traversable]:
    """The `sql` folders that exist, in the order of `LAYERS`."""
    root = files("langgraph_ext")
    return [folder for layer in LAYERS if (folder := root / layer / "sql").is_dir()]


def query_files() -> list[Traversable]:
    """Every file of named queries."""
    return [
        entry
        for folder in layer_folders()
        for entry in sorted(folder.iterdir(), key=lambda found: found.name)
        if entry.name.endswith(".sql")
    ]


def read_blocks(text: str) -> dict[tuple[str, str | None], str]:
    """The named blocks of one file: `(name, backend or None) -> SQL`.

    Raises:
        ValueError: A name stands twice in the file.
    """
    headers = list(_HEADER.finditer(text))
    blocks: dict[tuple[str, str | None], str] = {}
    for at, header in enumerate(headers):
        end = headers[at + 1].start() if at + 1 < len(headers) else len(text)
        key = (header["name"], header["backend"])
        if key in blocks:
            raise ValueError(f"query {key[0]!r} stands twice in one file")
        blocks[key] = text[header.end() : end].strip().removesuffix(";")
    return blocks


@cache
def load_queries(backend: str) -> Mapping[str, str]:
    """All named queries for one backend (`"sqlite"` or `"postgres"`).

    Raises:
        ValueError: Two layers use one name.
    """
    common: dict[str, str] = {}
    own: dict[str, str] = {}
    for blocks in _blocks_of(query_files()):
        for (name, wanted), sql in blocks.items():
            if wanted not in (None, backend):
                continue
            target = common if wanted is None else own
            if name in target:
                raise ValueError(f"query {name!r} stands in two files")
            target[name] = sql
    return MappingProxyType({**common, **own})


def _blocks_of(entries: Iterable[Traversable]) -> Iterable[dict[tuple[str, str | None], str]]:
    return (read_blocks(entry.read_text(encoding="utf-8")) for entry in entries)
