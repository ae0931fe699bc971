"""docs/cli.md is true: its commands print what it says, and it leaves no command and no option out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from langgraph_ext.cli.app import app
from tests.support.pages import ROOT, masked, python

PAGE = (ROOT / "docs" / "cli.md").read_text("utf-8")
EXAMPLE = re.compile(r"^```console\n\$ langgraph-ext (?P<args>.*)\n(?P<output>(?s:.*?))^```\n", re.M)
EXAMPLES = [(found["args"], found["output"]) for found in EXAMPLE.finditer(PAGE)]
COMMANDS = [
    "runs",
    "show",
    "events",
    "resolve-effect",
    "recover",
    "resolve-operation",
    "budget",
    "verify",
    "doctor",
    "interrupts",
    "answer",
    "cancel",
    "steer",
    "prune",
    "sweep",
    "backup",
    "reencrypt",
    "crash-test",
    "demo",
]
WITHOUT_AN_EXAMPLE = {"resolve-effect", "recover", "resolve-operation", "cancel", "steer", "reencrypt", "demo"}
"""Tests of their own run them: all but the demo change a run, and that takes its time."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's program has run."""
    made = tmp_path_factory.mktemp("cli")
    [program] = re.findall(r"^```python\n(.*?)^```\n", PAGE, re.M | re.S)
    python("-c", program, cwd=made, fresh=True)
    return made


def output_of(*args: str, cwd: Path = ROOT, fresh: bool = False) -> str:
    return python("-m", "langgraph_ext.cli", *args, cwd=cwd, fresh=fresh)


@pytest.mark.parametrize(("args", "expected"), EXAMPLES, ids=[args for args, _ in EXAMPLES])
def test_an_example_prints_what_the_page_says(args: str, expected: str, folder: Path) -> None:
    assert masked(expected) == masked(output_of(*args.split(), cwd=folder))


def test_every_command_has_an_example() -> None:
    assert [name for name in COMMANDS if name not in WITHOUT_AN_EXAMPLE] == [args.split()[0] for args, _ in EXAMPLES]
    listed = re.findall(r"^  ([\w-]+)  ", output_of("--help", fresh=True).partition("Commands:")[2], re.M)
    assert COMMANDS == [name for name in listed if name in PAGE]
    assert sorted(COMMANDS) == sorted(set(listed) - {"Exit", "stderr"})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_described(command: str) -> None:
    """On the page, and in a line of help."""
    shown = CliRunner().invoke(app, [command, "--help"]).output
    options = set(re.findall(r"--[a-z-]+", shown)) - {"--help"}
    assert {"--db", "--json"} <= options
    assert set() == {option for option in options if option not in PAGE}
