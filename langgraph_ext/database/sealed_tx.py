"""Sealed transactions: as a Tx, with the columns that are payloads sealed on their way in, and opened on their way out.

A value is opened when somebody asks for it, once: who counts rows needs no keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from langgraph_ext.database.sealed_columns import Named, named_in
from langgraph_ext.database.sealed_json import details_opened, details_sealed, metadata_opened, metadata_sealed
from langgraph_ext.database.sealing import Sealer
from langgraph_ext.database.tx import Cursor, Row, Tx

__all__ = ["SealedTx", "open_column", "seal_column"]

_UNREAD = object()


class SealedTx(Tx):
    """A transaction on a database that is encrypted."""

    __slots__ = ()

    def __init__(
        self,
        execute: Callable[[str, Mapping[str, object]], Cursor],
        queries: Mapping[str, str],
        *,
        sealer: Sealer,
        repeated: bool = False,
        run_apart: Callable[[Any], None] | None = None,
    ) -> None:
        super().__init__(execute, queries, repeated=repeated, run_apart=run_apart)
        self.sealer: Sealer = sealer

    def all(self, name: str, /, **params: object) -> list[Row]:
        """As `Tx.all`."""
        rows = super().all(name, **params)
        named = _named_in(self._queries[name])
        return [_Opened(row, named, params, self.sealer) for row in rows] if named else rows

    def maybe(self, name: str, /, **params: object) -> Row | None:
        """As `Tx.maybe`."""
        row = super().maybe(name, **params)
        named = _named_in(self._queries[name])
        return _Opened(row, named, params, self.sealer) if named and row is not None else row

    def run(self, name: str, /, **params: object) -> int:
        """As `Tx.run`."""
        changed = {
            column: seal_column(self.sealer, named, tuple(params[key] for key in named.keys), params[column])
            for column, named in _named_in(self._queries[name]).items()
            if params.get(column) is not None
        }
        return super().run(name, **{**params, **changed})


_named_in = lru_cache(maxsize=1024)(named_in)


def seal_column(sealer: Sealer, named: Named, key: Sequence[Any], value: Any) -> Any:
    """A column's value, sealed for the row of this key."""
    place = (named.column, *key)
    if named.form == "blob":
        return sealer.seal(place, value)
    if named.form == "text":
        return sealer.seal_text(place, value)
    return (metadata_sealed if named.form == "metadata" else details_sealed)(sealer, place, value)


def open_column(sealer: Sealer, named: Named, key: Sequence[Any], value: Any) -> Any:
    """A column's value, out of the row of this key.

    Raises:
        EncryptionError: As `Sealer.open`.
    """
    place = (named.column, *key)
    if named.form == "blob":
        return sealer.open(place, value)
    if named.form == "text":
        return sealer.open_text(place, value)
    return (metadata_opened if named.form == "metadata" else details_opened)(sealer, place, value)


class _Opened:
    """A row whose sealed columns are opened when they are asked for."""

    __slots__ = ("_columns", "_named", "_opened", "_params", "_row", "_sealer")

    def __init__(self, row: Row, named: Mapping[str, Named], params: Mapping[str, object], sealer: Sealer) -> None:
        self._row = row
        self._named = named
        self._params = params
        self._sealer = sealer
        self._columns = row.keys()
        self._opened: dict[str, Any] = {}

    def keys(self) -> Sequence[str]:
        """The names of the columns."""
        return self._columns

    def __getitem__(self, key: str | int) -> Any:
        name = self._columns[key] if isinstance(key, int) else key
        named = self._named.get(name)
        if named is None:
            return self._row[key]
        value = self._opened.get(name, _UNREAD)
        if value is _UNREAD:
            value = self._row[name]
            if value is not None:
                value = open_column(self._sealer, named, [self._part(part) for part in named.keys], value)
            self._opened[name] = value
        return value

    def _part(self, name: str) -> Any:
        return self._row[name] if name in self._columns else self._params[name]

    def __len__(self) -> int:
        return len(self._columns)
