"""The command line on an encrypted database: with its keys, without any, with wrong ones; and `reencrypt`."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from typer.testing import CliRunner

from langgraph_ext import AgentNode, LedgerSaver, with_ledger
from langgraph_ext.cli.app import app
from langgraph_ext.saver import reencrypting
from langgraph_ext.testing import ScriptedChatModel
from tests.support.apps import CONFIG, Boom, asks, graph_of, line, says, tried
from tests.support.ciphers import KEYS

SECRET = "the-patient-is-ill"

OURS = f"2025:{KEYS.keys['2025'].hex()}"
NEW = f"2026:{'ab' * 32}"


def fails(state: Any) -> Any:
    raise Boom(SECRET)


def fill(path: Path, **options: Any) -> None:
    with LedgerSaver(path, **options) as saver:
        tried(line(saver, a=says(SECRET * 300), asks=asks({"q": SECRET})), (SECRET,))
        with suppress(Boom):
            line(saver, fails=fails).invoke({"log": [SECRET]}, {"configurable": {"thread_id": "fails"}})
        node = AgentNode(name="support", model=ScriptedChatModel(script=[SECRET]))
        agent: Any = with_ledger(graph_of(node).compile(checkpointer=saver))
        agent.invoke({"messages": [("user", SECRET)]}, {"configurable": {"thread_id": "agent"}}, durability="sync")


class Shell:
    """Commands on one database, under one environment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.env: dict[str, str | None] = {"LANGGRAPH_EXT_KEYS": None, "LANGGRAPH_AES_KEY": None}

    def __call__(self, *words: str, status: int = 0) -> Any:
        done = CliRunner().invoke(app, [*words, "--db", str(self.path)], env=self.env)
        assert status == done.exit_code, done.output
        assert "Traceback" not in done.output
        return done

    def runs(self) -> list[str]:
        return [run["run_id"] for run in json.loads(self("runs", "--json").stdout)["runs"]]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "runs.db")


def test_s6_without_a_key_it_shows_ids_and_says_that_payloads_are_encrypted(shell: Shell) -> None:
    """Every command that looks; those that would change something are refused, and so are those that go by payloads."""
    fill(shell.path, encryption=KEYS)
    runs = shell.runs()
    assert 4 == len(runs)
    for words in (
        ["runs"],
        ["events"],
        ["interrupts"],
        *(["show", run] for run in runs),
        *(["show", run, "--json"] for run in runs),
    ):
        done = shell(*words)
        assert "payloads are not shown" in done.stderr
        assert SECRET not in done.output
    shell("doctor")
    for words in (
        ["verify"],
        ["prune", "t", "--dry-run"],
        ["prune", "t", "--yes"],
        ["sweep", "--older-than", "1s", "--yes"],
    ):
        assert "[encrypted]" in shell(*words, status=2).stderr
    assert "[encrypted]" in shell("cancel", runs[-1], status=2).stderr


def test_s6_with_its_key_it_is_as_any_other(shell: Shell) -> None:
    fill(shell.path, encryption=KEYS)
    shell.env["LANGGRAPH_EXT_KEYS"] = OURS
    shell("verify")
    assert SECRET in shell("interrupts", "--json").output
    shown = "".join(shell("show", run, "--transcript").output for run in shell.runs())
    assert shown.count(SECRET) >= 3
    shell("prune", "agent", "--yes")
    shell("answer", json.loads(shell("interrupts", "--json").stdout)["interrupts"][0]["interrupt_id"], '"yes"')
    with LedgerSaver(shell.path, encryption=KEYS) as saver:
        assert "yes" == saver.ledger.interrupts()[0].answer


def test_s6_a_plain_database_needs_no_key_and_takes_one(shell: Shell) -> None:
    """Keys in the environment do no harm to another database."""
    fill(shell.path)
    shell.env["LANGGRAPH_EXT_KEYS"] = OURS
    assert SECRET in shell("interrupts", "--json").output
    with LedgerSaver(shell.path) as saver:
        assert saver.get_tuple(CONFIG) is not None


def test_s6_a_wrong_key_is_refused_in_a_line(shell: Shell) -> None:
    fill(shell.path, encryption=KEYS)
    for keys, code in (
        (f"2025:{'00' * 32}", "key_wrong"),
        (f"1999:{'00' * 32}", "key_missing"),
        ("x", "invalid_argument"),
    ):
        shell.env["LANGGRAPH_EXT_KEYS"] = keys
        done = shell("runs", status=2)
        assert f"[{code}]" in done.stderr
        assert 1 == len(done.stderr.splitlines())


def test_s6_langgraphs_key_opens_what_its_cipher_has_sealed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is written from outside is sealed so, that the application can read it."""
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "z" * 32)
    serde = EncryptedSerializer.from_pycryptodome_aes()
    fill(shell.path, serde=serde)
    shell.env["LANGGRAPH_AES_KEY"] = "z" * 32
    assert SECRET in shell("interrupts", "--json").output
    shell("answer", json.loads(shell("interrupts", "--json").stdout)["interrupts"][0]["interrupt_id"], '"yes"')
    with LedgerSaver(shell.path, serde=serde) as saver:
        assert "yes" == saver.ledger.interrupts()[0].answer


def test_s6_reencrypt_encrypts_a_plain_database_and_changes_keys(shell: Shell) -> None:
    """It says what it will do, and asks; a program has to have said so."""
    fill(shell.path)
    assert "there is no key" in shell("reencrypt", status=2).stderr
    shell.env["LANGGRAPH_EXT_KEYS"] = OURS
    refused = shell("reencrypt", status=2)
    assert "would encrypt a plain database" in refused.stdout
    assert SECRET.encode() in shell.path.read_bytes()
    assert "rows sealed" in shell("reencrypt", "--yes").stdout
    assert SECRET.encode() not in shell.path.read_bytes()
    shell.env["LANGGRAPH_EXT_KEYS"] = f"{NEW},{OURS}"
    told = json.loads(shell("reencrypt", "--yes", "--json").stdout)["reencrypted"]
    assert told["changed"] > 20
    shell.env["LANGGRAPH_EXT_KEYS"] = NEW
    shell("verify")
    assert SECRET in shell("interrupts", "--json").output


def test_s6_reencrypt_says_who_goes_on_with_another_key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a line; asked again, it is done. (Here one pass is all it has, so it cannot see that nothing is left.)"""
    fill(shell.path, encryption=KEYS)
    shell.env["LANGGRAPH_EXT_KEYS"] = f"{NEW},{OURS}"
    with monkeypatch.context() as patched:
        patched.setattr(reencrypting, "_PASSES", 1)
        done = shell("reencrypt", "--yes", status=2)
    assert "[key_in_use]" in done.stderr
    assert "others go on sealing with another key ('2025'); make '2026' the current key" in done.stderr
    assert 1 == len(done.stderr.splitlines())
    assert "done: 0 rows sealed" in shell("reencrypt", "--yes").stdout
