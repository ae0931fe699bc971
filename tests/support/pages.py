"""Pages of the documentation: running what they say, and comparing what they print."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.support.programs import run_python

__all__ = ["ROOT", "masked", "python"]

ROOT = Path(__file__).resolve().parents[2]

# Words that differ from run to run, or from machine to machine; how far apart they stand depends on them.
CHANGING = [
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "AT"),
    (r"\b[0-9a-f]{32}\b", "ID"),
    (r"\d+(\.\d)? (ms|s|min \d+ s)\b", "TIME"),
    (r"^ *\d+(?=  )", "CURSOR"),
    (r"(?<=^database) +\S+", " PATH"),
    (r"\d+ bytes, and \d+", "BYTES"),
    (r"(?<=^copied to )\S+: \d+", "PATH: N"),
    (r"(?<=^Python) +\S+|(?<=^SQLite) +\S+|(?<=^langgraph) +\S+|(?<=^langgraph-checkpoint) +\S+", " VERSION"),
    (r"\d+ (boundaries|kills)", r"N \1"),
    (r"(?<=\S) +", " "),
]


def python(*args: str, cwd: Path, fresh: bool = False) -> str:
    """What Python prints, run there; as `run_python`."""
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "LANGGRAPH_EXT_DB": "runs.db"}
    ran = run_python(*args, cwd=cwd, env=environment, fresh=fresh)
    assert (0, "") == (ran.returncode, ran.stderr)
    return ran.stdout


def masked(text: str) -> str:
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text, flags=re.M)
    return text
