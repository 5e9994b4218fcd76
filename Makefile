# HiPress: everything a newcomer needs. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3.11
JOBS ?= $(shell nproc)
VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
STAMPS := build/stamps
SETUP := PYTHON="$(PYTHON)" JOBS="$(JOBS)" tools/setup.sh

export PYTHONPATH := $(CURDIR)/python$(if $(PYTHONPATH),:$(PYTHONPATH))

.PHONY: help setup build native-tests demo test test-cpp test-python bench lint clean distclean

help:  ## this list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14
	@echo; echo "Variables: PYTHON=$(PYTHON) (3.9 to 3.11), JOBS=$(JOBS)"

# Each step leaves a stamp, so that a second `make` starts at once.
$(STAMPS)/system: tools/setup.sh
	@$(SETUP) system

$(VENV)/.ready: tools/setup.sh pyproject.toml | $(STAMPS)/system
	@$(SETUP) python

setup: $(STAMPS)/system $(VENV)/.ready  ## Debian packages, .venv and Python packages

# Ninja itself knows what is out of date.
build: setup  ## the native library, build/libhipress.so
	@$(SETUP) native hipress

native-tests: setup
	@$(SETUP) native all

demo: build  ## train a network on several processes, with and without compression (minutes)
	@$(PY) examples/digits/demo.py $(DEMO_ARGS)

lint: setup  ## ruff
	@$(PY) -m ruff check .

test: lint test-cpp test-python  ## set up, then lint and run all tests

test-cpp: native-tests
	@ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

# The outer limit ends even a run that hangs in native code, where pytest-timeout cannot reach.
test-python: native-tests
	@timeout -k 30 2400 $(PY) -m pytest tests/unittest $(PYTEST_ARGS)

bench: build  ## benchmarks against stock MXNet and torch in the same run
	@$(SETUP) native codec_bench transport_bench
	@$(PY) benchmarks/run.py $(BENCH_ARGS)

clean:  ## remove what was built
	@rm -rf build output

distclean: clean  ## remove the virtual environment, too
	@rm -rf .venv
