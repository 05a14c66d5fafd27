# make setup         build .venv with pinned dependencies     make demo          see it work, in under a minute
# make test          everything CI runs: the six below        make cluster-demo  the same with linked brokers
# make lint          ruff: rules and format                   make format        fix what ruff can fix
# make types         mypy --strict                            make bench-NAME    run benchmarks/NAME.py
# make imports       who may import whom (import-linter)      make clean         remove what was built
# make interpreters  the other Pythons that are promised      make check         lint, types and imports
# make java          is there a Java for Spark's tests?
# make pytest        the tests, with coverage
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
WORKERS ?= 2

.PHONY: setup test check lint types imports interpreters java pytest format demo cluster-demo clean
setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "contrada needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench,spark]'
	$(BIN)/python -m contrada.forwarding.warm
	$(BIN)/python -m contrada.spark_jobs.warm
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
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --cov --cov-report=term:skip-covered --durations=15

test: check interpreters pytest

format: setup
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench-%: setup
	$(BIN)/python -m benchmarks.$* $(ARGS)

demo: setup
	$(BIN)/contrada demo

cluster-demo: setup
	$(BIN)/contrada cluster examples/cluster.toml --demo

clean:
	rm -rf $(VENV) .venvs build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
