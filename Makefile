# Everything runs inside .venv, installed from requirements.lock (hashes checked).
# Needs: Python 3.11 or newer, make, git.  Nothing else is assumed to be there.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= auto

.PHONY: help simulate test lint types imports ci lock clean

help:
	@echo "make simulate   install, run every scenario, write reports/latest"
	@echo "make test       install, run the test suite"
	@echo "make lint types imports   what .ci/run checks besides"

$(VENV)/.installed: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "PseudoClaude needs Python 3.11 or newer; none was found on PATH. Set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

simulate: $(VENV)/.installed
	$(BIN)/pseudosim run scenarios --report-dir reports/latest

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

imports: $(VENV)/.installed
	$(BIN)/lint-imports

ci:
	bash .ci/run

lock:
	$(PYTHON) -m pip install --quiet uv
	$(PYTHON) -m uv pip compile --universal --python-version 3.11 --generate-hashes --extra sim --extra dev \
		--no-emit-index-url --no-header -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) reports/latest .pytest_cache .mypy_cache .ruff_cache .hypothesis
