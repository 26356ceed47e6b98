# The one entry to everything. Each target makes .venv itself, so nothing has to be activated.
#   make figure   draw the default figure          make check    format, lint, types, layers
#   make test     run the tests                    make golden   rewrite the golden files
#   make bench    print the benchmarks             make docs     draw the pictures of the documents
#   make format   let ruff rewrite the files
# PYTHON=python3.12 picks the interpreter that .venv is made with; ARGS="..." goes to the command of the target.

PYTHON ?= python3
JOBS ?= 2
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install figure test check format golden docs bench

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

install: $(STAMP)

# pip changes only what is missing or too old: packages that already satisfy pyproject.toml stay as they are.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo 'installing into $(VENV): a few minutes the first time'
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[dev,models,sweep]'
	@touch $@

figure: $(STAMP)
	@$(BIN)/python -m torchlens.run $(ARGS)

test: $(STAMP)
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist worksteal $(ARGS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

golden: $(STAMP)
	$(BIN)/python -m tests.golden.regenerate $(ARGS)

docs: $(STAMP)
	@$(BIN)/python -m torchlens.run encoding=flops draw.color_scale=rank draw.depth=2 draw.direction=leftright \
	  output=docs out=docs/images figures.main.path=demo
	@for set in $$($(BIN)/python -m torchlens.runner.pages --sets docs/*.md); do \
	  $(BIN)/python -m torchlens.run figures=$$set output=docs || exit 1; done
	@$(BIN)/python -m torchlens.runner.pages docs/*.md
	@$(BIN)/python -m torchlens.runner.reference docs

bench: $(STAMP)
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/draw_speed.py
	$(BIN)/python benchmarks/collapse_speed.py
	$(BIN)/python benchmarks/trace_overhead.py $(ARGS)
