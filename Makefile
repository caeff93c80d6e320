# Every target makes the virtual environment first when there is none; Python and make are enough.
PYTHON ?= python3
VENV ?= .venv
TORCH ?= 2.13.0
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What `make reproduce` runs, where and in how many processes; no ids are all.
SCALE := quick
ONLY :=
JOBS := 2
OUT := build/reproduction

.PHONY: help demo test lint torch bench reproduce format clean

help:
	@echo "make demo        what polyspan does, in a table and a picture (under a minute, after the installation)"
	@echo "make test        all tests, with coverage"
	@echo "make lint        ruff and mypy"
	@echo "make torch       adds PyTorch to the environment, for the tests that need it"
	@echo "make bench       ratios to the literal algorithm; ROWS=\"faces scene\" for some of them"
	@echo "make reproduce   the paper's tables and figures; SCALE=smoke ONLY=\"table1 fig4\" JOBS=2 OUT=folder"

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report=term-missing:skip-covered

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

torch: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==$(TORCH)"

bench: $(READY)
	$(BIN)/python benchmarks/run.py $(ROWS)

reproduce: $(READY)
	$(BIN)/python -m reproduction $(ONLY) --scale "$(SCALE)" --jobs "$(JOBS)" --out "$(OUT)"

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
