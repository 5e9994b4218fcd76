"""Test harness: it bounds jobs in time, reports what went wrong, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time

import pytest

from harness.processes import JobError, JobTimeout, Processes, base_environment

SLEEPS = [sys.executable, "-S", "-c", "print('here', flush=True); import time; time.sleep(60)"]
FAILS = [sys.executable, "-S", "-c", "raise SystemExit('a reason')"]


def test_a_failure_is_told_before_the_others_end():
    with Processes() as job:
        job.start("sleeps", SLEEPS, base_environment())
        job.start("fails", FAILS, base_environment())
        began = time.monotonic()
        with pytest.raises(JobError, match="failed: fails\n(.|\n)*a reason"):
            job.wait(50, succeed=True)
        assert time.monotonic() - began < 40


def test_who_is_late_is_named_and_ended():
    with Processes() as job:
        job.start("sleeps", SLEEPS, base_environment())
        job.wait_for("sleeps", "here")
        with pytest.raises(JobTimeout, match="still running after 0.2 s: sleeps\n(.|\n)*here"):
            job.wait(0.2)
        pid = job.processes["sleeps"].pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not job.path.exists()


def test_results_are_in_the_order_of_starts():
    with Processes() as job:
        for name in ("b", "a"):
            job.start(name, [sys.executable, "-S", "-c", f"print({name!r})"], base_environment())
        results = job.wait(50)
    assert [(r.name, r.returncode, r.output) for r in results] == [("b", 0, "b\n"), ("a", 0, "a\n")]
