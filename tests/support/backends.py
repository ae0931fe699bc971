"""Where a saver under test keeps its data: one class for each backend, the same few methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import langgraph_ext


class SqliteBackend:
    """Database files in a folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: list[langgraph_ext.LedgerSaver] = []

    def url(self, name: str = "runs") -> str:
        """The connection string of the database called `name`; the same name is the same database."""
        return str(self.folder / f"{name}.db")

    def open(self, name: str = "runs", **options: Any) -> langgraph_ext.LedgerSaver:
        """A new saver on the database called `name`, closed when the test ends."""
        saver = langgraph_ext.LedgerSaver(self.url(name), **options)
        self._opened.append(saver)
        return saver

    def size(self, name: str = "runs") -> int:
        """Bytes on disk of the database called `name`, its log included."""
        path = Path(self.url(name))
        return sum(part.stat().st_size for part in path.parent.glob(f"{path.name}*"))

    def close(self) -> None:
        for saver in self._opened:
            saver.close()
