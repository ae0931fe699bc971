# Every target sets up what it needs, in .venv, from a fresh clone: Python 3.11 or newer, make and git are enough.
#
#   PYTHON=/path/to/python3   the interpreter that .venv is made from (default: the first suitable one on PATH)
#   WORKERS=4                 test processes (default: one per core)
#   ARGS="-k saver -x"        more arguments for the demo, pytest or the benchmark

DEMO := examples.orders.demo
BENCH := bench.run
WORKERS ?= auto
ARGS ?=

# No run of a test or the demo leaves the machine, whatever the user's own settings say.
export LANGSMITH_TRACING := false
export LANGCHAIN_TRACING_V2 := false

# Compiled code is kept, whatever they say: each process of a test would else compile the package for itself.
export PYTHONDONTWRITEBYTECODE :=

RUN := .venv/bin/python -m
PIP_INSTALL := $(RUN) pip --disable-pip-version-check --quiet install
PYTEST := $(RUN) pytest -n $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test faults check bench bench-agents bench-chat bench-react bench-compare coverage clean

## demo      the main job on real input, and an agent: killed twice each, approved; each order is charged once
demo: .venv/.for-demo
	$(RUN) $(DEMO) $(ARGS)
	$(RUN) langgraph_ext.cli demo

## test      check, then every test that takes less than 5 s
test: check
	$(PYTEST) $(ARGS)

## faults    every test, the slow ones too, with all points, seeds and races
faults: .venv/.for-dev
	LANGGRAPH_EXT_TEST_FULL=1 $(PYTEST) -m "slow or not slow" --timeout 1800 $(ARGS)

## check     lint, format, types, layers
check: .venv/.for-dev
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	.venv/bin/lint-imports

## bench     our numbers beside those of SqliteSaver and AsyncSqliteSaver
bench: .venv/.for-dev
	$(RUN) $(BENCH) $(ARGS)

## bench-agents  what agent runs of the engine share of their commits, one at a time and two hundred at once
bench-agents: .venv/.for-dev
	$(RUN) bench.agents

## bench-react   turns of a ReAct agent beside those of LangChain's create_agent
bench-react: .venv/.for-dev
	$(RUN) bench.react $(ARGS)

## bench-chat    turns of a chat through an AgentNode beside those of LangChain's create_agent
bench-chat: .venv/.for-dev
	$(RUN) bench.chat $(ARGS)

## bench-compare  what crashes, doubled answers and cancelled turns do to an AgentNode, and to create_agent
bench-compare: .venv/.for-dev
	$(RUN) bench.compare $(ARGS)

## coverage  branch coverage of the package; reported, not a gate
coverage: .venv/.for-dev
	$(RUN) coverage erase
	$(RUN) coverage run -m pytest -n $(WORKERS) $(ARGS)
	$(RUN) coverage combine --quiet
	$(RUN) coverage report

## clean     remove everything that these targets made
clean:
	rm -rf .venv build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

## help      this list
help:
	@sed -n 's/^## /  make /p' Makefile

# --- set-up -------------------------------------------------------------------------------------------------------
# Stamps live inside .venv, so that removing it is enough to begin anew.

.venv/.for-dev: pyproject.toml .venv/pyvenv.cfg
	$(PIP_INSTALL) --editable '.[dev]'
	touch .venv/.for-demo $@

.venv/.for-demo: pyproject.toml .venv/pyvenv.cfg
	$(PIP_INSTALL) --editable '.[demo]'
	touch $@

# The version is asked of the interpreter itself: a name on PATH may be a shim that runs nothing. An interpreter
# without ensurepip (Debian without python3-venv) cannot make a usable .venv and is passed over.
.venv/pyvenv.cfg:
	@old=; bare=; set -- python3.11 python3 python3.12 python3.13 python3.14; \
	[ -z "$$PYTHON" ] || set -- "$$PYTHON"; \
	for python; do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { old="$$old $$python"; continue; }; \
	    "$$python" -c 'import ensurepip, sqlite3, venv' 2>/dev/null || { bare="$$bare $$python"; continue; }; \
	    echo "making .venv with $$("$$python" -c 'import sys; print(sys.executable, sys.version.split()[0])')"; \
	    "$$python" -m venv .venv && exit 0; \
	    rm -rf .venv; echo "error: $$python could not make .venv; its message stands above" >&2; exit 1; \
	done; \
	if [ -n "$$bare" ]; then \
	    echo "error: Python found ($${bare# }), but without venv, ensurepip or sqlite3." >&2; \
	    echo "       On Debian and Ubuntu: apt-get install python3-venv. Elsewhere: a complete Python 3.11 or newer." >&2; \
	else \
	    echo "error: no Python 3.11 or newer on PATH (tried:$$old)." >&2; \
	    echo "       Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; \
	fi; exit 1
