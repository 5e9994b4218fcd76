# HiPress: everything a newcomer needs. `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3.11
JOBS ?= $(shell nproc)
# Instruction sets to compile codecs for: native (this processor's best) or all.
ISAS ?= native
# Tests to run: quick (those of `make test`), slow (the others) or all.
TIER ?= all
VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
STAMPS := build/stamps
SETUP = PYTHON="$(PYTHON)" JOBS="$(JOBS)" ISAS="$(ISAS)" tools/setup.sh

export PYTHONPATH := $(CURDIR)/python$(if $(PYTHONPATH),:$(PYTHONPATH))

FUZZ_ISAS ?= baseline avx2 avx512

.PHONY: help setup build cuda wheel native-tests demo docs tensorflow test test-all test-cpp test-python test-torch-latest test-image nightly tsan fuzz fuzz-parsers bench lint clean distclean

help:  ## this list
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14
	@echo; echo "Variables: PYTHON=$(PYTHON) (3.10 or 3.11), JOBS=$(JOBS), ISAS=$(ISAS) (native or all), TIER=$(TIER) (of test-python), TORCH_VERSION (of test-torch-latest)"

# Each step leaves a stamp, so that a second `make` starts at once.
$(STAMPS)/system: tools/setup.sh
	@$(SETUP) system

$(VENV)/.ready: tools/setup.sh pyproject.toml | $(STAMPS)/system
	@$(SETUP) python

# Where the package index has no TensorFlow, its tests skip; the next `make test` asks for it again.
$(VENV)/.tensorflow: $(VENV)/.ready
	@$(SETUP) tensorflow || echo "hipress: no TensorFlow here: its tests will be skipped"

$(VENV)/.ray: $(VENV)/.tensorflow
	@$(SETUP) ray || echo "hipress: no Ray here: its tests will be skipped"

tensorflow: $(VENV)/.ready  ## TensorFlow in .venv, where `make build` leaves it out (220 MB)
	@$(SETUP) tensorflow

# An MPI and a Slurm are for tests of the launcher alone, so a demo does not install them.
$(STAMPS)/launchers: tools/setup.sh | $(STAMPS)/system
	@$(SETUP) launchers || echo "hipress: the tests of what is not installed will be skipped"

setup: $(STAMPS)/system $(VENV)/.ready  ## Debian packages, .venv and Python packages

# Ninja itself knows what is out of date.
build: setup  ## the native library, build/libhipress.so
	@$(SETUP) native hipress hipress_mxnet_ops

cuda: setup  ## build/libhipress_cuda.so, if nvcc is here (about a minute)
	@$(SETUP) native hipress_cuda

wheel: build  ## dist/hipress-*.whl: pip installs it in seconds, on machines without a compiler, too
	@$(SETUP) wheel

native-tests: setup
	@$(SETUP) native all

$(VENV)/.demo: tools/setup.sh pyproject.toml | $(STAMPS)/system
	@$(SETUP) demo

demo: $(STAMPS)/system $(VENV)/.demo  ## train over slow links, with and without compression, and draw the difference (minutes)
	@$(SETUP) native hipress
	@$(PY) examples/digits/demo.py $(DEMO_ARGS)

# Needs no network; a warning is an error, and a link that leads nowhere is a warning.
docs: build  ## the documentation as a site, build/site/index.html
	@$(PY) -m sphinx -q -E -W --keep-going -b html docs build/site
	@echo "hipress: the documentation is in build/site/index.html"

# The package runs on Python 3.9, on which the tests cannot (no torch 2.13 there).
SPELLED := .ci .github benchmarks cmake docs examples harness include packaging python src tests tools \
  CHANGELOG.md CMakeLists.txt CONTRIBUTING.md Dockerfile Makefile README.md compose.yaml pyproject.toml
lint: setup  ## format, docstrings, layers of docs/contributing/architecture.md, Python's version, spelling, width of comments
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check -q .
	@$(VENV)/bin/lint-imports --no-cache
	@$(VENV)/bin/vermin -q -t=3.9- --violations --no-tips --eval-annotations python examples tools
	@$(PY) -m codespell_lib -D - -D tools/lint/dictionary.txt $(SPELLED)
	@$(PY) tools/lint/comment_width.py $(SPELLED)

test: TIER := quick
test: lint docs test-cpp test-python  ## set up, then lint, build the documentation, and test each feature once

# The codecs of all instruction sets, and every test that `make test` leaves out.
test-all: TIER := slow
test-all: ISAS := all
test-all: $(VENV)/.ray test-cpp test-python  ## after make test: all instruction sets, full matrices, long waits

test-cpp: native-tests
	@ctest --test-dir build --output-on-failure --no-tests=error -j $(JOBS)

test-python: native-tests $(VENV)/.tensorflow $(STAMPS)/launchers
	@tools/run_tests.sh $(PY) $(JOBS) $(TIER) $(PYTEST_ARGS)

# An environment of its own, because MXNet needs an older NumPy. `make test-torch-latest
# TORCH_VERSION=2.14.1` tests that version of PyTorch instead of the newest.
LATEST := build/venv-torch-latest$(TORCH_VERSION)
$(LATEST)/.ready: tests/requirements-torch-latest.txt
	@$(PYTHON) -m venv --clear $(LATEST)
	@$(LATEST)/bin/python -m pip install -q --disable-pip-version-check --upgrade \
	  torch$(if $(TORCH_VERSION),==$(TORCH_VERSION)) -r $<
	@touch $@

test-torch-latest: build $(LATEST)/.ready  ## the PyTorch tests with the newest PyTorch and NumPy, and PyTorch's own (minutes; gigabytes)
	@$(LATEST)/bin/python -m pytest -q tests/unittest/frontends/torch $(PYTEST_ARGS)

$(STAMPS)/image: tools/setup.sh | $(STAMPS)/system
	@$(SETUP) image

test-image: build $(STAMPS)/image  ## the container image, and a cluster of its containers (minutes; root)
	@rm -f dist/hipress-*.whl; $(SETUP) wheel
	@HIPRESS_TEST_IMAGE=1 $(PY) -m pytest -q tests/unittest/project/test_image.py $(PYTEST_ARGS)

nightly: build  ## codecs on 2^24 elements, bit for bit; jobs whose processes are killed; schedules of membership (minutes)
	@$(PY) tests/nightly/large_gradients.py
	@$(PY) tests/nightly/chaos.py
	@$(PY) tests/nightly/chaos_torch.py
	@$(PY) tests/nightly/chaos_mxnet.py
	@$(PY) tests/nightly/cables.py
	@$(PY) tests/nightly/held_up.py
	@$(PY) tests/nightly/elastic_membership.py
	@$(PY) tests/nightly/chaos_elastic.py --network namespaces --workers 5 --faults 60
	@$(PY) tests/nightly/chaos_elastic.py --faults 12 -- $(PY) examples/mxnet/elastic.py --check-every 1 --steps 1000000
	@$(MAKE) --no-print-directory tsan

# The wide instruction sets' codecs would only take time to compile.
TSAN_TESTS := abort_delivery_test address_test batch_test bucket_test failure_test flight_recorder_test \
  flow_test fused_test handover_test handshake_test postoffice_end_test postoffice_test resume_test server_key_test \
  shared_payload_test timeline_test transaction_test van_test workers_test
tsan: setup  ## the transport's and the store's tests under ThreadSanitizer (minutes)
	@cmake -S . -B build/tsan -G Ninja -DPython3_EXECUTABLE=$(PY) -DHIPRESS_BUILD_TESTS=ON \
	  -DHIPRESS_SANITIZE=thread -DHIPRESS_ISAS=baseline >build/logs/tsan.log
	@ninja -C build/tsan -j $(JOBS) $(TSAN_TESTS) >>build/logs/tsan.log
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp ctest --test-dir build/tsan --output-on-failure -R "^($(subst $() ,|,$(strip $(TSAN_TESTS))))$$"

# Every instruction set's decoders, compiled with sanitizers into a folder of their own.
FUZZ_FLAGS := -DHIPRESS_BUILD_TESTS=ON -DHIPRESS_SANITIZE=address,undefined
fuzz: setup  ## a million malformed payloads per decoder, under AddressSanitizer and UBSan (minutes)
	@cmake -S . -B build/fuzz -G Ninja -DPython3_EXECUTABLE=$(PY) $(FUZZ_FLAGS) >build/logs/fuzz.log
	@ninja -C build/fuzz -j $(JOBS) fuzz_decoders >>build/logs/fuzz.log
	@for isa in $(FUZZ_ISAS); do \
	  echo "instruction set: $$isa"; HIPRESS_SIMD=$$isa build/fuzz/fuzz_decoders $(FUZZ_ARGS); \
	done
	@$(MAKE) --no-print-directory fuzz-parsers

# libFuzzer needs clang, which nothing else does. What it found stays in build/corpus for the next
# run.
PARSERS := $(patsubst tests/cpp/fuzz/parsers/%.cc,%,$(wildcard tests/cpp/fuzz/parsers/fuzz_*.cc))
FUZZ_SECONDS ?= 60
$(STAMPS)/clang: tools/setup.sh | $(STAMPS)/system
	@$(SETUP) clang

fuzz-parsers: native-tests $(STAMPS)/clang  ## all other parsers of foreign bytes, guided by coverage, with sanitizers
	@cmake -S . -B build/libfuzzer -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang \
	  -DPython3_EXECUTABLE=$(PY) $(FUZZ_FLAGS) -DHIPRESS_LIBFUZZER=ON >build/logs/libfuzzer.log
	@ninja -C build/libfuzzer -j $(JOBS) $(addprefix lib,$(PARSERS)) >>build/logs/libfuzzer.log
	@for parser in $(PARSERS); do \
	  mkdir -p build/corpus/$$parser; build/$$parser --write build/corpus/$$parser; \
	  echo "$$parser: $(FUZZ_SECONDS) s"; \
	  build/libfuzzer/lib$$parser -max_total_time=$(FUZZ_SECONDS) -timeout=10 -max_len=8192 -verbosity=0 \
	    -artifact_prefix=build/corpus/$$parser-crash- build/corpus/$$parser; \
	done

bench: build  ## benchmarks against stock MXNet and torch in the same run
	@$(PY) -m benchmarks all $(BENCH_ARGS)

clean:  ## remove what was built
	@rm -rf build output

distclean: clean  ## remove the virtual environment, too
	@rm -rf .venv
