"""The demo's table and picture, from canned runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "digits"))

import chart  # noqa: E402
import demo  # noqa: E402
import train  # noqa: E402


def run(factor: float, final: float) -> list[dict]:
    """Five epochs of 20 MB raw, of which 1/factor goes over the wire."""
    return [
        {
            "epoch": epoch,
            "accuracy": final - 0.2 / epoch**2,
            "seconds": 1.5 * epoch,
            "pushed_bytes": int(epoch * 10e6 / factor),
            "pulled_bytes": int(epoch * 10e6 / factor),
            "pushed_raw_bytes": epoch * 10_000_000,
            "pulled_raw_bytes": epoch * 10_000_000,
        }
        for epoch in range(1, 6)
    ]


RUNS = {"none": run(1, 0.98), "2bit": run(16, 0.975), "onebit": run(32, 0.985)}


def test_table_shows_what_was_saved():
    console = Console(width=120, record=True, file=open("/dev/null", "w"))
    console.print(chart.summary(RUNS, 4, 2))
    text = console.export_text()
    rows = {name: next(line for line in text.splitlines() if name in line) for name in RUNS}
    assert "93.8 %" in rows["2bit"] and "93.8 MB" in rows["2bit"]  # 100 MB raw, 6.25 MB sent
    assert "96.9 %" in rows["onebit"]
    assert "50.0 MB" in rows["none"] and " - " in rows["none"]
    assert "7.5" in rows["none"]


def test_headline_is_about_the_worst_compressed_run():
    assert "at least 16x fewer bytes" in chart._headline(RUNS)
    assert "within 0.5 points" in chart._headline(RUNS)


def test_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "new" / "demo.png"
    chart.plot(RUNS, path)
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stat().st_size > 20_000


def test_records_are_read_while_they_are_written(tmp_path):
    path = tmp_path / "run.jsonl"
    assert demo.read_records(path) == []
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    assert demo.read_records(path) == [{"epoch": 1}, {"epoch": 2}]


def test_shards_are_disjoint_equal_and_apart_from_the_test_set():
    pytest.importorskip("sklearn")
    shards = [train.load_digits(rank, 4)[0] for rank in range(4)]
    _, (test_images, test_labels) = train.load_digits(0, 4)
    assert [len(images) for images, _ in shards] == [320] * 4
    assert test_images.shape == (517, 1, 8, 8) and test_labels.shape == (517,)

    def rows(images):
        return {image.tobytes() for image in images}

    everything = [rows(images) for images, _ in shards] + [rows(test_images)]
    assert len(set().union(*everything)) == sum(len(part) for part in everything)
