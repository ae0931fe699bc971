"""EffectLog: what it holds has happened, whoever wrote it and whatever became of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from langgraph_ext.errors import InvalidArgument
from langgraph_ext.testing import EffectLog


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "effects"


@pytest.fixture
def log(path: Path) -> EffectLog:
    return EffectLog(path)


def test_a_new_log_is_empty_and_has_no_file(log: EffectLog, path: Path) -> None:
    assert ({}, [], 0, []) == (log.counts(), log.keys(), log.count("charge"), log.facts("charge"))
    assert not path.exists()


def test_effects_are_counted_by_key_in_the_order_of_their_first_times(log: EffectLog) -> None:
    for key in ("mail", "charge", "mail"):
        log.record(key)
    assert ["mail", "charge"] == log.keys()
    assert {"mail": 2, "charge": 1} == log.counts()
    assert [2, 1, 0] == [log.count(key) for key in ("mail", "charge", "refund")]


def test_facts_are_kept_with_each_time(log: EffectLog) -> None:
    """Also those named like the columns of the log itself, and text that would break a line."""
    log.record("charge", cents=700, facts="a\nb")
    log.record("charge", cents=800)
    assert [{"cents": 700, "facts": "a\nb"}, {"cents": 800}] == log.facts("charge")


def test_a_line_is_synced_before_record_returns(log: EffectLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """One write, then one sync, on a file opened for appending and for its owner alone."""
    done: list[str] = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda *args: (done.append("write"), write(*args))[1])
    monkeypatch.setattr(os, "fsync", lambda *args: (done.append("fsync"), fsync(*args))[1])
    log.record("charge")
    assert ["write", "fsync"] == done
    assert 0o600 == os.stat(log.path).st_mode & 0o777


def test_a_fact_may_be_called_key(log: EffectLog) -> None:
    log.record("charge", key="order-1", self="me")
    assert [{"key": "order-1", "self": "me"}] == log.facts("charge")


@pytest.mark.parametrize("torn", ['{"key": "cha', '{"key": "charge", "facts": {}', "\x00\x00", "17"])
def test_a_line_that_was_cut_short_is_no_effect_and_spoils_no_other(log: EffectLog, path: Path, torn: str) -> None:
    log.record("mail")
    with path.open("a") as file:
        file.write(torn)
    assert {"mail": 1} == log.counts()
    log.record("charge")
    assert {"mail": 1, "charge": 1} == log.counts()


def test_threads_and_processes_share_a_file(log: EffectLog) -> None:
    code = "import sys\nfrom langgraph_ext.testing import EffectLog\n"
    code += "for n in range(50): EffectLog(sys.argv[1]).record('p')"
    others = [subprocess.Popen([sys.executable, "-c", code, log.path]) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: log.record("t", n=n, text="x" * n), range(100)))
    assert [0, 0] == [other.wait(60) for other in others]
    assert {"t": 100, "p": 100} == log.counts()
    assert 200 == len([json.loads(line) for line in Path(log.path).read_text().splitlines()])


@pytest.mark.parametrize("key", ["", None, 7, b"charge"])
def test_what_is_no_key_is_refused(log: EffectLog, path: Path, key: object) -> None:
    with pytest.raises(InvalidArgument, match="names no effect"):
        log.record(key)  # type: ignore[arg-type]
    assert not path.exists()


def test_facts_that_are_not_json_are_refused(log: EffectLog, path: Path) -> None:
    with pytest.raises(InvalidArgument, match="not JSON"):
        log.record("charge", what=object())
    assert not path.exists()


def test_a_relative_path_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that changes its working folder writes into the same file."""
    monkeypatch.chdir(tmp_path)
    log = EffectLog("effects")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    log.record("charge")
    assert 1 == EffectLog(tmp_path / "effects").count("charge")
