#!/usr/bin/env bash
# Runs the Python tests, as `make test-python` calls it: tools/run_tests.sh PYTHON JOBS TIER [PYTEST
# ARGUMENT...]. Tests with many processes can fail because the machine is busy. If at most five
# tests fail, each runs once more, without others beside it. A test that passes then is listed as
# flaky, and does not fail the run.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 jobs=$2 tier=$3
shift 3
most=5

# Jobs wait for the network and for time limits, so files run side by side also on two processors.
# The outer limit ends even a run that hangs in native code, where pytest-timeout cannot reach.
status=0
timeout -k 30 4500 "$python" -m pytest --cache-clear -n "$jobs" --dist loadfile --durations=40 --tier="$tier" "$@" ||
  status=$?
# 1: tests failed. Other statuses, as an interruption or an internal error, say nothing about tests.
((status == 1)) || exit "$status"

failed=$("$python" - <<'PY'
import json

print("\n".join(json.load(open(".pytest_cache/v/cache/lastfailed"))))
PY
)
count=$(wc -l <<<"$failed")
if ((count > most)); then
  echo "hipress: $count tests failed; only up to $most would run again."
  exit 1
fi
printf 'hipress: these tests failed, and run once more, alone:\n%s\n' "$failed"
# Of all tiers: pytest collects only what failed, so the first cases of a test that a tier keeps
# cannot be counted.
timeout -k 30 1800 "$python" -m pytest --last-failed --last-failed-no-failures none --tier=all || exit
printf 'hipress: FLAKY, failed once and passed alone:\n%s\n' "$failed"
