"""Programs of the documentation, each run in a process of its own that has been forked with everything imported."""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import sys
import traceback
import warnings
from pathlib import Path

__all__ = ["run_program"]


def run_program(folder: str) -> tuple[int, str, str]:
    """Run `program.py` of a folder as `python -W error program.py` would, there; its exit status, stdout and stderr."""
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = ["program.py"]
    files = [os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600) for name in ("stdout", "stderr")]
    for standard, file in enumerate(files, start=1):
        os.dup2(file, standard)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    warnings.resetwarnings()
    warnings.simplefilter("error")
    status = 0
    try:
        runpy.run_path("program.py", run_name="__main__")
    except SystemExit as ended:
        status = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - told as Python tells it
        traceback.print_exc()
        status = 1
    gc.collect()  # what nobody has closed says so
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status, Path("stdout").read_text("utf-8"), Path("stderr").read_text("utf-8")
