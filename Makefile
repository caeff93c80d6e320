# Every target makes the virtual environment first when there is none; Python and make are enough.
PYTHON ?= python3
VENV ?= .venv
TORCH ?= 2.13.0
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Floors are tested with the lowest Python as well, where it is there.
FLOOR_VENV := .venv-floor
FLOOR_PYTHON ?= $(shell command -v python3.11 || echo $(PYTHON))
FLOOR_READY := $(FLOOR_VENV)/.ready
# What `make reproduce` runs, where and in how many processes; no ids are all.
SCALE := quick
ONLY :=
JOBS := 2
OUT := build/reproduction
# What `make fuzz` and `make forge` run: how many cases, which (every seed has its own), or one alone.
N := 20000
SEED := 1
CASE :=
# More arguments of pytest for `make test`, or of `make mutants`.
ARGS :=
# What `make quick` runs: the mathematics of every family, and what holds the tree together.
QUICK := tests/geometry tests/linear/test_micusal.py tests/linear/test_robust.py tests/linear/test_affine.py \
	tests/linear/solve tests/kernel/test_solve.py tests/kernel/test_functions.py tests/mixture/_solve \
	tests/data/test_working.py tests/test_layers.py tests/test_metrics.py tests/storage/test_saved_types.py tests/test_imports.py

# Tests run in three processes (those of commands and the browser mostly wait); with more than one
# BLAS thread in each they would wait for one another.
test coverage test-floor quick: export OPENBLAS_NUM_THREADS = 1
test coverage test-floor quick: export OMP_NUM_THREADS = 1

.PHONY: help demo test coverage test-floor quick lint record torch fuzz mutants kills forge soak easy bench bench-compare bench-check bench-baseline reproduce docs docs-quick format clean release-check

help:
	@echo "make demo          the idea and three jobs beside the usual tools, printed and drawn (under a minute, after the installation)"
	@echo "make quick         the tests that matter most, in under 90 seconds"
	@echo "make test          all tests"
	@echo "make coverage      all tests, with coverage: at least 95 % (half of the time again)"
	@echo "make test-floor    all tests, with the lowest versions that pyproject.toml allows"
	@echo "make lint          ruff, mypy, and whether ARCHITECTURE.md counts right"
	@echo "make torch         adds PyTorch to the environment, for the tests that need it"
	@echo "make record        compares what the library computes with what was recorded (a minute)"
	@echo "make fuzz N=20000 SEED=1   drawn calls of every estimator, or CASE=17 alone"
	@echo "make mutants       changes the solvers in 300 small ways: do the tests notice? (hours)"
	@echo "make kills         kills runs, and uses models from many threads and processes (minutes)"
	@echo "make forge N=5000 SEED=1   forged model files: does one crash, hang, or fill the memory? (minutes)"
	@echo "make soak          ten minutes of fits and predictions: does anything grow?"
	@echo "make easy          which method finds the clusters of 64 easy problems? (half an hour)"
	@echo "make bench         ratios to the literal algorithm; ROWS=\"faces scene\" for some of them"
	@echo "make bench-compare BASE=commit   time and result of every row over those of another commit; LIMIT=5 NEW=commit"
	@echo "make bench-check   quick rows: which ratio is worse than in benchmarks/baseline.json? bench-baseline writes it"
	@echo "make docs          the site with its gallery, in build/site; make docs-quick: without running examples"
	@echo "make reproduce     the paper's tables and figures; SCALE=smoke ONLY=\"table1 fig4\" JOBS=2 OUT=folder"
	@echo "make release-check everything that a release promises, from a clean copy of HEAD; RELEASING.md says more"

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

coverage: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --cov --cov-report=term-missing:skip-covered

quick: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q $(QUICK) -k "not paper_setting"

$(FLOOR_READY): pyproject.toml tools/floor_constraints.py
	rm -rf $(FLOOR_VENV)
	$(FLOOR_PYTHON) -m venv $(FLOOR_VENV)
	$(FLOOR_VENV)/bin/python tools/floor_constraints.py > $(FLOOR_VENV)/constraints.txt
	$(FLOOR_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint $(FLOOR_VENV)/constraints.txt --editable ".[dev]"
	touch $@

test-floor: $(FLOOR_READY)
	$(FLOOR_VENV)/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/visits.py --check

# The same compiled kernels on every processor with AVX2: then rounding is nearly the same everywhere.
record: export OPENBLAS_CORETYPE = Haswell
record: export NPY_DISABLE_CPU_FEATURES = X86_V4 AVX512_ICL AVX512_SPR
record: export NUMBA_CPU_NAME = haswell
record: $(READY)
	$(BIN)/python tools/record.py $(ARGS)

torch: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==$(TORCH)"

easy: $(READY)
	$(BIN)/python benchmarks/easy.py $(ARGS)

bench: $(READY)
	$(BIN)/python benchmarks/run.py $(ROWS)

fuzz: $(READY)
	$(BIN)/python tests/fuzz/run.py --n $(N) --seed $(SEED) $(if $(CASE),--case $(CASE))

mutants: $(READY)
	$(BIN)/python tools/mutants.py --seed $(SEED) $(ARGS)

kills: $(READY)
	$(BIN)/python tools/kills.py

forge: $(READY)
	$(BIN)/python tools/forge.py --n $(N) --seed $(SEED)

soak: $(READY)
	$(BIN)/python tools/soak.py

bench-compare: $(READY)
	$(BIN)/python benchmarks/compare.py $(if $(LIMIT),--limit $(LIMIT)) $(if $(PAIRS),--pairs $(PAIRS)) \
		$(if $(NEW),--new $(NEW)) $(BASE) $(ROWS)

bench-check: $(READY)
	$(BIN)/python benchmarks/check.py $(ROWS)

# A new baseline, for all to compare with: run it on a quiet machine, and commit what it writes.
bench-baseline: $(READY)
	$(BIN)/python benchmarks/check.py --update --measurements 5

reproduce: $(READY)
	$(BIN)/python -m reproduction $(ONLY) --scale "$(SCALE)" --jobs "$(JOBS)" --out "$(OUT)"

# Warnings are errors: a broken link or anchor, a page in no list, an example that fails.
docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/site
	$(BIN)/python tools/check_site.py build/site

docs-quick: $(READY)
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees-quick -D plot_gallery=0 docs build/site-quick
	$(BIN)/python tools/check_site.py build/site-quick

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(FLOOR_VENV) $(RELEASE_VENV) build .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Before a release. The tools for it have an environment of their own, without polyspan.
RELEASE_VENV := .venv-release
RELEASE_READY := $(RELEASE_VENV)/.ready

$(RELEASE_READY): pyproject.toml
	test -x $(RELEASE_VENV)/bin/python || $(PYTHON) -m venv $(RELEASE_VENV)
	$(RELEASE_VENV)/bin/python tools/release_check.py --requirements > $(RELEASE_VENV)/requirements.txt
	$(RELEASE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement $(RELEASE_VENV)/requirements.txt
	touch $@

release-check: $(RELEASE_READY)
	$(RELEASE_VENV)/bin/python tools/release_check.py --floor-python "$(FLOOR_PYTHON)"
