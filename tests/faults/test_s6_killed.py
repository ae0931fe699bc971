"""S6: who is killed while a database is encrypted, or its key is changed, leaves a sound one, and can go on."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from langgraph_ext import LedgerSaver
from langgraph_ext.errors import EncryptionError
from tests.support import killed_reencrypting as story
from tests.support.ciphers import NEWER
from tests.support.faults import KINDS, every, full, run

pytestmark = pytest.mark.filterwarnings("ignore:.*DeltaChannel.*")


@pytest.fixture(scope="module", params=[False, True], ids=["from plain", "from an older key"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[bool, Path]:
    """Whether it is encrypted, and the folder with it."""
    folder = tmp_path_factory.mktemp("made")
    story.make(str(folder), encrypted=request.param)
    return request.param, folder


@pytest.mark.parametrize("kind", KINDS)
def test_s6_a_kill_at_any_boundary_is_made_good_by_asking_again(
    made: tuple[bool, Path], tmp_path: Path, kind: str
) -> None:
    """With an older key, all can be read at any time. A plain one can be opened by nobody until it is done; then
    nothing plain is left."""
    encrypted, folder = made

    def copy(name: str) -> str:
        return str(shutil.copytree(folder, tmp_path / name))

    def look(there: str) -> dict[str, Any]:
        return story.states(there, NEWER)

    dry = copy("dry")
    passed = run(story.reencrypt, dry, encrypted, kind, 0).value()
    whole = look(dry)
    assert whole == story.states(copy("before"), NEWER if encrypted else None)
    count = passed.count(kind)
    assert count > 10
    for at in every(count, sample=count if full() else 3):
        there = copy(str(at))
        assert run(story.reencrypt, there, encrypted, kind, at).killed, f"{kind} {at} was not reached"
        assert sound(there)
        if encrypted:
            assert whole == look(there), f"{kind} {at}"
        elif is_begun(there):
            for keys in (None, NEWER):
                with LedgerSaver(Path(there, "runs.db"), encryption=keys) as saver, pytest.raises(EncryptionError):
                    saver.setup()
        run(story.reencrypt, there, encrypted, kind, 0).value()
        assert whole == story.states(there, story.NEW), f"{kind} {at}"
        assert b"so so so" not in Path(there, "runs.db").read_bytes()


def sound(folder: str) -> bool:
    with closing(sqlite3.connect(f"{folder}/runs.db")) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def is_begun(folder: str) -> bool:
    """Whether it is marked as one that is being encrypted."""
    with closing(sqlite3.connect(f"{folder}/runs.db")) as connection:
        return bool(connection.execute("SELECT count(*) FROM encryption_key WHERE converting = 1").fetchone()[0])
