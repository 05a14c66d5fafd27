# make demo          see it work: installs what running needs make setup         .venv with all that developing needs
# make test          everything CI runs: the six below        make cluster-demo  the same with linked brokers
# make lint          ruff: rules and format                   make format        fix what ruff can fix
# make types         mypy --strict                            make bench-NAME    run benchmarks/NAME.py
# make imports       who may import whom (import-linter)      make clean         remove what was built
# make interpreters  the other Pythons that are promised      make check         lint, types and imports
# make java          is there a Java for Spark's tests?       make wheel         dist/*.whl, compiled kernels inside
# make pytest        the tests                               make coverage      the tests, and what they reach
# make soak          a million simulated crashes of journals and of brokers, a thousand kill -9: many hours of what the tests do
# make bench-peers   Contrada beside its rivals
# make web           the live map, into client/gateway/page   make live          broker, gateway, storms and vehicles: look at them
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUNS   := $(VENV)/.runs
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# On two cores: tests of processes wait for a third of their time.
WORKERS ?= 3
# Containers often forbid bytecode. Without it every process of the tests compiles everything again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup test check lint types imports interpreters java pytest coverage soak format bench-peers demo cluster-demo web live wheel clean
setup: $(STAMP)

$(RUNS): pyproject.toml constraints.txt setup.py
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "contrada needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	@echo 'installing into $(VENV) …'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(STAMP): $(RUNS)
	@echo 'installing what developing needs …'
	$(PIP) --editable '.[dev,bench,spark,gateway,feeds,notebook]'
	$(BIN)/contrada warm --jobs
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

check: lint types imports

# Where this machine has them; the environments are kept in .venvs.
interpreters: setup
	$(BIN)/python -m tests.interpreters

# Spark's tests need Java: say so before running for minutes.
java: setup
	@$(BIN)/python -c 'import sys; from contrada.spark_jobs.common.session import java_problem; sys.exit(java_problem())'

pytest: setup java
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --durations=15

coverage: setup java
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --cov --cov-report=term:skip-covered

soak: setup
	$(BIN)/python -m tests.soak --workers $(WORKERS) $(ARGS)

# What needs one core runs beside what waits, then the tests.
test: setup
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check interpreters
	@$(MAKE) --no-print-directory pytest

format: setup
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench-peers: setup
	$(PIP) --editable '.[peers]'
	$(BIN)/python -m benchmarks.peers $(ARGS)

bench-%: setup
	$(BIN)/python -m benchmarks.$* $(ARGS)

demo: $(RUNS)
	$(BIN)/contrada demo

cluster-demo: $(RUNS)
	$(BIN)/contrada cluster examples/cluster.toml --demo

# The live map is JavaScript: node and npm build it, and nothing else needs them.
web:
	@command -v npm >/dev/null || { echo 'make web: THE LIVE MAP IS NOT BUILT: there is no npm (Node.js 20) on this machine' >&2; exit 1; }
	cd web && npm ci --no-audit --no-fund --ignore-scripts && node build.mjs

live: $(RUNS)
	@test -f client/gateway/page/painter.js || $(MAKE) web || echo 'make live: going on without the page; the API is there' >&2
	$(PIP) --editable '.[gateway]'
	$(BIN)/contrada live $(ARGS)

wheel: setup
	@$(MAKE) web || echo 'make wheel: THE WHEEL HAS NO LIVE MAP: make web failed, see above' >&2
	rm -rf build
	$(BIN)/contrada warm --copy-to build/kernels
	CONTRADA_CARRY_KERNELS=$(CURDIR)/build/kernels $(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) .venvs build dist client/gateway/page web/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
