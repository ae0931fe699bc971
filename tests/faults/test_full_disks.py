"""A disk that is full: a typed error, nothing half written, and it goes on when there is room again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.faults import disks
from tests.support.build import cid
from tests.support.faults import run


def on_disk(job: Any, *args: Any) -> Any:
    """Run a job that wants a disk of its own; skips where there can be none."""
    answer = run(job, *args).value()
    if isinstance(answer, str):
        pytest.skip(answer)
    return answer


SOUND = {
    "acknowledged": True,
    "some": True,
    "halves": [],
    "later": {"stored"},
    "after": True,
    "sound": True,
}
"""What a full disk must not change: everything acknowledged is there, no half of a call, and later calls work."""


def test_s7_a_full_disk_is_store_full_and_harms_nothing(tmp_path: Path) -> None:
    """A real one, of 16 MB: refused, again refused, and when a file is deleted the same object goes on."""
    report = on_disk(disks.fill_small_disk, str(tmp_path))

    assert SOUND | {"code": "store_full", "again": "store_full"} == report


def test_s7_a_database_that_may_not_grow_is_store_full_and_harms_nothing(tmp_path: Path) -> None:
    """As SQLite itself says it (`max_page_count`)."""
    report = run(disks.fill_pages, str(tmp_path)).value()

    assert SOUND | {"code": "store_full", "again": "store_full"} == report


def test_s7_a_quota_is_an_error_of_ours_and_harms_nothing(tmp_path: Path) -> None:
    """A limit on file sizes: SQLite calls it an I/O error, and so do we."""
    report = run(disks.fill_quota, str(tmp_path)).value()

    assert report["code"] in ("store_io", "store_full")
    assert SOUND | {"code": report["code"], "again": report["again"]} == report


@pytest.mark.parametrize("left", [0, 4096, 65_536, 1 << 20, 5 << 20])
def test_s8_opening_on_a_full_disk_is_store_full(tmp_path: Path, left: int) -> None:
    """Whether not even the file fits, or not its log, or not what is to be stored: `store_full`, or it works; and when
    there is room, the same object opens and works."""
    first, second, *names = on_disk(disks.open_on_full_disk, str(tmp_path), left)

    assert first in ("store_full", "stored")
    assert ("stored", [cid(0)]) == (second, names)
