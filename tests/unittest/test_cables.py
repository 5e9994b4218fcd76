"""A short cut is survived, and a stopped scheduler gets its name, over real links; many times in
tests/nightly/cables.py."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/nightly"), str(ROOT / "benchmarks")]

import cables  # noqa: E402

import netns  # noqa: E402

pytestmark = pytest.mark.skipif(bool(netns.available()), reason=netns.available() or "can run")


def test_cuts_of_five_seconds_are_survived():
    with ThreadPoolExecutor(3) as pool:
        wrong = list(pool.map(lambda seed: cables.cut(5, random.Random(seed)), (1, 2, 3)))
    assert wrong == ["", "", ""]


def test_a_stopped_scheduler_behind_slow_links_is_named():
    with ThreadPoolExecutor(2) as pool:
        wrong = list(pool.map(lambda seed: cables.stop_scheduler(random.Random(seed)), (1, 2)))
    assert wrong == ["", ""]
