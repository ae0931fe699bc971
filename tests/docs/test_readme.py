"""The documentation is true: its programs run and print what they say, its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import run_python

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PROMISE = (
    "no committed effect is repeated, no started effect is forgotten, "
    "no answer is used twice or for another question, no stale worker writes"
)
PROGRAM = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<output>.*?)^```\n)?", re.M | re.S)
LINK = re.compile(r"\]\((?!https?://|#)(?P<target>[^)#]+)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def programs() -> list[object]:
    return [
        pytest.param(found["code"], found["output"], id=f"{name(page)}-{number}")
        for page in PAGES
        for number, found in enumerate(PROGRAM.finditer(page.read_text("utf-8")), start=1)
    ]


@pytest.mark.parametrize(("code", "output"), programs())
def test_a_program_in_the_documentation_runs_as_printed(code: str, output: str | None, tmp_path: Path) -> None:
    """Copied into an empty folder and started, it succeeds without a warning and prints the text block after it.

    The README's is started as a reader does; the others, in processes that have imported everything.
    """
    (tmp_path / "program.py").write_text(code, "utf-8")
    ran = run_python("program.py", cwd=tmp_path, env=os.environ, fresh=code in README.read_text("utf-8"))
    assert (0, "") == (ran.returncode, ran.stderr)
    assert output is None or output == ran.stdout


@pytest.mark.slow
def test_the_programs_of_durable_nodes_may_be_run_again_in_one_folder(tmp_path: Path) -> None:
    """As somebody does who tries one after the other, and the first once more: none finds what another has left."""
    page = (ROOT / "docs" / "durable-nodes.md").read_text("utf-8")
    for found in [*PROGRAM.finditer(page)] * 2:
        command = [sys.executable, "-W", "error", "-c", found["code"]]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert (0, "", found["output"]) == (ran.returncode, ran.stderr, ran.stdout)


def test_the_readme_has_a_program() -> None:
    """The pattern above still finds the README's example, in 15 lines, with the output it prints."""
    [(code, output)] = PROGRAM.findall((ROOT / "README.md").read_text("utf-8"))
    assert len([line for line in code.splitlines() if line]) <= 15
    assert output


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    targets = [found["target"] for found in LINK.finditer(page.read_text("utf-8"))]
    assert [] == [target for target in targets if not (page.parent / target).exists()]


def test_the_promise_is_made_in_its_own_words() -> None:
    """The README holds the promise word for word, and no page makes the one that nobody can keep."""
    assert PROMISE in " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert [] == [name(page) for page in PAGES if re.search(r"exactly[\s-]+once", page.read_text("utf-8"), re.I)]
