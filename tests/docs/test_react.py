"""docs/react.md is true: the run in doubt, its program and the commands in turn, prints what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from langgraph_ext import AgentGraphEngine
from tests.support.pages import ROOT, masked, python

PAGE = (ROOT / "docs" / "react.md").read_text("utf-8")
PROGRAM = re.compile(r"^```python\n(.*?)^```\n", re.M | re.S)
CONSOLE = re.compile(r"^```console\n(?P<shown>.*?)^```\n", re.M | re.S)
EXAMPLE = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.M)
RUN, CALL = "18ecd5a8cc356e01-e110034a3955", "18ecd5a8af69e341-e770d4f32882"
ID = r"\b[0-9a-f]{16}-[0-9a-f]{12}\b"


def test_a_call_in_doubt_is_shown_resolved_and_gone_on_from_as_the_page_says(tmp_path: Path) -> None:
    """All of it on one database, in the order of the page; what differs is the ids and times."""
    (tmp_path / "order.py").write_text(PROGRAM.findall(PAGE)[-1], "utf-8")
    assert "running None ['charge']\n" == python("order.py", cwd=tmp_path)
    with AgentGraphEngine(tmp_path / "runs.db") as engine:
        [run] = engine.runs()
        [doubt] = engine.doubts(run.agent_run_id)

    examples = [each for block in CONSOLE.findall(PAGE) for each in EXAMPLE.finditer(block)]
    assert 4 == len(examples)
    ids = [(RUN, run.agent_run_id), (CALL, doubt.operation_id), (RUN[:5], run.agent_run_id[:5])]
    for example in examples:
        command = example["command"]
        for shown, real in ids:
            command = command.replace(shown, real)
        program, *args = shlex.split(command)
        if program == "cat":
            printed = (tmp_path / args[0]).read_text("utf-8") + "\n"
        else:
            printed = python(*(["-m", "langgraph_ext.cli"] if program == "langgraph-ext" else []), *args, cwd=tmp_path)
        assert nameless(example["output"]) == nameless(printed)


def nameless(text: str) -> str:
    return re.sub(ID, "ID", masked(text))
