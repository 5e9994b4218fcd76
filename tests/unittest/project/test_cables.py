"""Links that are cut for real.

A short cut is survived, and a stopped scheduler is named. tests/nightly/cables.py repeats this many
times.
"""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import ROOT
from harness.marks import needs_namespaces

sys.path.insert(0, str(ROOT / "tests" / "nightly"))

import cables

pytestmark = needs_namespaces


def test_cuts_of_five_seconds_are_survived():
    with ThreadPoolExecutor(3) as pool:
        wrong = list(pool.map(lambda seed: cables.cut(5, random.Random(seed)), (1, 2, 3)))
    assert wrong == ["", "", ""]


@pytest.mark.slow
def test_a_stopped_scheduler_behind_slow_links_is_named():
    with ThreadPoolExecutor(2) as pool:
        wrong = list(pool.map(lambda seed: cables.stop_scheduler(random.Random(seed)), (1, 2)))
    assert wrong == ["", ""]
