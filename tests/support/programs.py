"""Python programs, each run in a process of its own that has been forked with everything imported."""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import langgraph_ext.cli.app
from tests.support.faults import full
from tests.support.processes import at_once

__all__ = ["run_demo", "run_python"]

_ROOT = Path(__file__).resolve().parents[2]


def run_demo(module: str, *options: str, root: Path = _ROOT) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE OPTIONS` as a newcomer does, in a fresh process, on the examples of `root`."""
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}  # the package's, wherever the example is
    command = [sys.executable, "-m", module, *options]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, encoding="utf-8", timeout=110, check=False
    )


def run_python(
    *args: object, cwd: Path, env: Mapping[str, str], fresh: bool = False, timeout: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run `python -W error PROGRAM ARGS` or `python -W error -m MODULE ARGS` there; what it prints is UTF-8.

    In a process that has imported everything, unless a fresh one is wanted; `make faults` wants no other.
    """
    given = [str(arg) for arg in args]
    if fresh or full():
        command, out = [sys.executable, "-W", "error", *given], subprocess.PIPE
        return subprocess.run(
            command, cwd=cwd, env=env, stdout=out, stderr=out, encoding="utf-8", timeout=timeout, check=False
        )
    [(status, *printed)] = at_once(_run, (given, str(cwd), dict(env)), timeout=timeout)
    return subprocess.CompletedProcess(given, status, *(text.decode("utf-8") for text in printed))


def _run(args: list[str], cwd: str, env: dict[str, str]) -> tuple[int, bytes, bytes]:
    """Be that Python; its exit status, stdout and stderr."""
    files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115 - they go with the process
    tempfile.tempdir = None  # it is for the environment to say
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for standard, file in enumerate(files, start=1):
        os.dup2(file.fileno(), standard)
    encoding, _, errors = env.get("PYTHONIOENCODING", "").partition(":")
    sys.stdout, sys.stderr = (
        open(number, "w", encoding=encoding or None, errors=how, closefd=False)  # noqa: SIM115 - as Python's own
        for number, how in ((1, errors or None), (2, "backslashreplace"))
    )
    sys.path[:0] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.warnoptions[:] = ["error"]
    warnings.resetwarnings()
    warnings.simplefilter("error")
    status = _status_of(args)
    gc.collect()  # what nobody has closed says so
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status, *(_all_of(file) for file in files)


def _status_of(args: list[str]) -> int:
    """How a program or a module ends."""
    try:
        if args[0] == "-m":
            sys.argv = args[1:]
            runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = args
            runpy.run_path(args[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:  # noqa: BLE001 - told as Python tells it
        traceback.print_exc()
        return 1
    return 0


def _all_of(file: Any) -> bytes:
    file.seek(0)
    return file.read()  # type: ignore[no-any-return]


assert langgraph_ext.cli.app  # imported for its effect: whoever is forked has the command line
