"""Machine: where numbers were taken, and with which versions of everything."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

__all__ = ["MEMORY_FILE_SYSTEMS", "file_system", "machine", "versions"]

MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs")
"""There a sync costs nothing, so that a comparison of savers that sync says little."""

_PACKAGES = ("langgraph-ext", "langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite", "aiosqlite", "orjson")


def machine(root: Path) -> dict[str, str]:
    """The hardware and the system under it; `root` is where the databases are."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "CPU": _cpu(),
        "cores": str(cores),
        "kernel": f"{platform.system()} {platform.release()}",
        "file system of the databases": file_system(root),
    }


def versions(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """Python, SQLite and the packages that take part."""
    found = {"Python": f"{platform.python_implementation()} {platform.python_version()}"}
    found["SQLite"] = sqlite3.sqlite_version
    return found | {package: version(package) for package in packages}


def file_system(folder: Path) -> str:
    """The type of the file system that holds a folder, as the system calls it."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return _asked("stat", "-f", "%T", str(folder))
    lines = [line.split() for line in mounts.read_text("utf-8").splitlines()]
    folder = folder.resolve()
    holding = [(mount, kind) for _, mount, kind, *_ in lines if folder.is_relative_to(_unescaped(mount))]
    # Of two on one mount point, the later one hides the earlier.
    return max(enumerate(holding), key=lambda found: (len(found[1][0]), found[0]))[1][1] if holding else "unknown"


def _unescaped(mount: str) -> str:
    return mount.replace(r"\040", " ")


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return _asked("sysctl", "-n", "machdep.cpu.brand_string")
    lines = (line.partition(":") for line in info.read_text("utf-8").splitlines())
    named = [value.strip() for key, _, value in lines if key.strip() == "model name"]
    return named[0] if named else platform.machine()


def _asked(*command: str) -> str:
    """What a command prints; the page is not worth failing for, so "unknown" if it does not."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
