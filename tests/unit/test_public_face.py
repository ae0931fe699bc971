"""The public face: short, exact, described, and cheap to import."""

from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import langgraph_ext
from langgraph_ext.ledger import records

ROOT = Path(__file__).resolve().parents[2]
PUBLIC_MODULES = [
    "langgraph_ext",
    "langgraph_ext.engine",
    "langgraph_ext.errors",
    "langgraph_ext.ledger",
    "langgraph_ext.testing",
]
NOT_NAMES_OF_OURS = {"TYPE_CHECKING", "annotations", "import_module"}
PUBLIC_NAMES = [(module, name) for module in PUBLIC_MODULES for name in import_module(module).__all__]


def describable(value: object) -> bool:
    return callable(value) or isinstance(value, property | classmethod | staticmethod)


def modules_after(statement: str) -> set[str]:
    """Run one statement in a fresh process; which modules are loaded then?"""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return set(ran.stdout.split())


@pytest.mark.parametrize("public", PUBLIC_MODULES)
def test_all_is_exact(public: str) -> None:
    """`__all__` is sorted, every name in it resolves, and nothing public is missing from it."""
    module = import_module(public)
    assert sorted(module.__all__) == module.__all__
    for name in module.__all__:
        getattr(module, name)  # loads what is lazy
    rooms = {room.name for room in pkgutil.iter_modules(getattr(module, "__path__", []))}
    names = {name for name in vars(module) if not name.startswith("_")} - NOT_NAMES_OF_OURS - rooms
    assert set(module.__all__) == names


def test_whatever_the_ledger_returns_can_be_imported_with_it() -> None:
    """Its methods' records, and the kinds and statuses in them, are public."""
    ours = {name for name, each in vars(records).items() if getattr(each, "__module__", None) == records.__name__}
    assert {name for name in ours if not name.startswith("_")} <= set(import_module("langgraph_ext.ledger").__all__)


def test_dir_shows_the_public_names_before_they_are_loaded() -> None:
    assert set(langgraph_ext.__all__) <= set(dir(langgraph_ext))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchName"):
        langgraph_ext.NoSuchName  # noqa: B018


@pytest.mark.parametrize(("module", "name"), PUBLIC_NAMES)
def test_every_public_name_has_a_docstring(module: str, name: str) -> None:
    """So has every public method and property that a public class defines or takes from a class of ours."""
    found = getattr(import_module(module), name)
    assert inspect.getdoc(found)
    if inspect.isclass(found):
        ours = [cls for cls in found.__mro__ if cls.__module__.startswith("langgraph_ext")]
        methods = {name for cls in ours for name, value in vars(cls).items() if name[0] != "_" and describable(value)}
        assert [] == [method for method in sorted(methods) if not inspect.getdoc(getattr(found, method))]


def test_importing_the_package_loads_no_room() -> None:
    loaded = modules_after("import langgraph_ext")
    assert {"langgraph_ext"} == {name for name in loaded if name.startswith("langgraph_ext")}
    assert not loaded & {"langgraph", "langchain_core", "pydantic"}


def test_importing_the_ledger_loads_no_langgraph() -> None:
    """Whoever only reads what ran needs neither LangGraph nor its models, nor a driver for coroutines."""
    loaded = modules_after("from langgraph_ext import RunLedger")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("langgraph_ext.")}
    assert {"canonical", "database", "errors", "ledger"} == rooms
    assert loaded.isdisjoint({"langgraph", "langchain", "langchain_core", "pydantic", "aiosqlite"})


def test_importing_the_saver_loads_no_engine() -> None:
    """What a user of `LedgerSaver` alone does not need stays unloaded."""
    loaded = modules_after("from langgraph_ext import LedgerSaver")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("langgraph_ext.")}
    assert rooms.isdisjoint({"cli", "engine", "inspect", "nodes", "render", "testing"})
    assert loaded.isdisjoint({"aiosqlite", "psycopg", "rich", "typer"})


def test_importing_what_durable_nodes_need_loads_no_engine() -> None:
    """Who has no agents does not wait for them."""
    loaded = modules_after("from langgraph_ext import LedgerSaver, durable, frame, with_ledger")
    assert not [each for each in loaded if each.startswith("langgraph_ext.engine")]


def test_importing_an_agent_spec_loads_no_saver_and_no_langgraph() -> None:
    """An agent can be described, and its spec compiled, where no graph is."""
    loaded = modules_after("from langgraph_ext import AgentSpec")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("langgraph_ext.")}
    assert {"canonical", "database", "engine", "errors", "ledger"} == rooms
    assert loaded.isdisjoint({"langgraph", "langchain", "aiosqlite"})


def test_importing_the_test_tools_loads_no_langgraph() -> None:
    """The harness itself reads a ledger and starts processes; only these import the graph. They are asked for by name:
    no other room imports them, but the command line and its demo."""
    loaded = modules_after("import langgraph_ext.testing")
    rooms = {name.split(".")[1] for name in loaded if name.startswith("langgraph_ext.")}
    assert {"canonical", "database", "errors", "ledger", "render", "testing"} == rooms
    assert loaded.isdisjoint({"langgraph", "langchain_core", "pydantic", "aiosqlite", "pytest", "multiprocessing"})


def test_the_wheel_holds_types_and_sql_and_nothing_but_the_package(tmp_path: Path) -> None:
    """py.typed and every .sql file are shipped; tests, examples and benchmarks are not."""
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True)
    [wheel] = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tree = (path for path in (ROOT / "langgraph_ext").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert {path.relative_to(ROOT).as_posix() for path in tree} == held
    assert "langgraph_ext/py.typed" in held
