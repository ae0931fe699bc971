"""docs/cli.md is true: its commands print what it says, and it leaves no command and no option out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text("utf-8")
EXAMPLE = re.compile(r"^```console\n\$ langgraph-ext (?P<args>.*)\n(?P<output>(?s:.*?))^```\n", re.M)
EXAMPLES = [(found["args"], found["output"]) for found in EXAMPLE.finditer(PAGE)]
COMMANDS = ["runs", "show", "events", "resolve-effect", "recover", "verify", "doctor", "crash-test"]
NEEDS_AN_EFFECT = {"resolve-effect", "recover"}
"""Without an example that runs: nothing that is public makes effects yet."""

# Words that differ from run to run, or from machine to machine; how far apart they stand depends on them.
CHANGING = [
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "AT"),
    (r"\b[0-9a-f]{32}\b", "ID"),
    (r"\d+(\.\d)? (ms|s|min \d+ s)\b", "TIME"),
    (r"^ *\d+(?=  )", "CURSOR"),
    (r"(?<=^database) +\S+", " PATH"),
    (r"\d+ bytes, and \d+", "BYTES"),
    (r"(?<=^Python) +\S+|(?<=^SQLite) +\S+|(?<=^langgraph) +\S+|(?<=^langgraph-checkpoint) +\S+", " VERSION"),
    (r"\d+ (boundaries|kills)", r"N \1"),
    (r"(?<=\S) +", " "),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's program has run."""
    made = tmp_path_factory.mktemp("cli")
    [program] = re.findall(r"^```python\n(.*?)^```\n", PAGE, re.M | re.S)
    python("-c", program, cwd=made)
    return made


def python(*args: str, cwd: Path) -> str:
    """What Python prints, run there."""
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "LANGGRAPH_EXT_DB": "runs.db"}
    command = [sys.executable, "-W", "error", *args]
    ran = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert (0, "") == (ran.returncode, ran.stderr)
    return ran.stdout


def output_of(*args: str, cwd: Path = ROOT) -> str:
    return python("-m", "langgraph_ext.cli", *args, cwd=cwd)


def masked(text: str) -> str:
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text, flags=re.M)
    return text


@pytest.mark.parametrize(("args", "expected"), EXAMPLES, ids=[args for args, _ in EXAMPLES])
def test_an_example_prints_what_the_page_says(args: str, expected: str, folder: Path) -> None:
    assert masked(expected) == masked(output_of(*args.split(), cwd=folder))


def test_every_command_has_an_example() -> None:
    assert [name for name in COMMANDS if name not in NEEDS_AN_EFFECT] == [args.split()[0] for args, _ in EXAMPLES]
    listed = re.findall(r"^  ([\w-]+)  ", output_of("--help").partition("Commands:")[2], re.M)
    assert COMMANDS == [name for name in listed if name in PAGE]
    assert sorted(COMMANDS) == sorted(set(listed) - {"Exit", "stderr"})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_described(command: str) -> None:
    """On the page, and in a line of help."""
    shown = output_of(command, "--help")
    options = set(re.findall(r"--[a-z-]+", shown)) - {"--help"}
    assert {"--db", "--json"} <= options
    assert set() == {option for option in options if option not in PAGE}
