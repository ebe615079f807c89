# Everything a developer runs. `make` alone lists the targets. Each works in a fresh clone with git, make and Python 3.11 or newer.
# PYTHON=/path/to/python3 names the Python that .venv is made with.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:
.PHONY: help setup run test soak soak-real lint gen e2e bench lock clean

BIN := .venv/bin
# Processes that run tests side by side; `make test WORKERS=0` runs them in one, which a debugger needs.
WORKERS ?= auto
# Each process of `make e2e` has an API server of its own.
E2E_WORKERS ?= 2
# Of the fault suite: how many seeds, from which on. `make soak SEEDS=1 SEED_BASE=42` plays a failure again.
SEEDS ?= 100
SEED_BASE ?= 1
REAL := -p tests.real_servers.plugin -ra --timeout 300
# What is handed on to pytest: `make test ARGS="-k lease"`
ARGS ?=

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: ## Make .venv with everything, development tools included; does nothing when nothing changed
	@PYTHON='$(PYTHON)' sh tools/setup.sh

run: setup ## Play the demo on this machine: sandbox API server, three pools, controller, page
	@$(BIN)/loopwatch demo

test: setup ## Run the unit, property, contract and acceptance tests on the sandbox
	$(BIN)/python -m pytest tests --ignore=tests/e2e -ra -n $(WORKERS) $(ARGS)

soak: setup ## Play SEEDS=100 clusters in which everything goes wrong, from seed SEED_BASE=1 on (tests/faults)
	$(BIN)/python -m tests.faults soak --seeds $(SEEDS) --base $(SEED_BASE)

soak-real: setup ## Play SEEDS=10 of them on a real API server, through a proxy that fails, in real time (tests/faults/real)
	$(BIN)/python -m tests.real_servers build
	$(BIN)/python -m tests.faults soak-real --seeds $(if $(filter file,$(origin SEEDS)),10,$(SEEDS)) --base $(SEED_BASE)

lint: setup ## Check style, types, layers and that generated files are up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.generate --check

gen: setup ## Write every generated file
	$(BIN)/python -m tools.generate

e2e: setup ## Build real servers (Go 1.26 or newer), then run contract, acceptance and end-to-end tests on them
	$(BIN)/python -m tests.real_servers build
	$(BIN)/python -m pytest $(REAL) -n $(E2E_WORKERS) --dist loadgroup --maxschedchunk 1 -m 'not alone' tests/contract tests/acceptance tests/e2e $(ARGS)
	$(BIN)/python -m pytest $(REAL) -m alone tests/e2e $(ARGS)

bench: setup ## Measure: run each program in bench/
	@for program in bench/*.py; do echo "== $$program"; $(BIN)/python "$$program" || exit 1; done

lock: setup ## Write the lock files from pyproject.toml; UPGRADE=1 takes the newest versions it allows
	$(BIN)/python -m tools.lock $(if $(UPGRADE),--upgrade)

clean: ## Remove .venv and every cache, the built servers too
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
