"""README's picture of the published results of pushpull and time-to-accuracy.

Left: the time to sum 64 MiB of gradients over 4 nodes at 1 Gbit/s. Right: test accuracy against
seconds of training on such nodes, each seed a line, with a dot where a run reached its target.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.common.results import PUBLISHED, setting

matplotlib.use("Agg")
from matplotlib import pyplot

PEER, HALF, OURS = "#8c8c8c", "#56b4e9", "#d55e00"
BARS = {
    "MXNet": ("MXNet", PEER),
    "MXNet 2bit": ("MXNet 2bit", PEER),
    "Gloo float32": ("Gloo float32", PEER),
    "Gloo bfloat16": ("Gloo bfloat16", HALF),
    "HiPress 2bit": ("HiPress 2bit", OURS),
    "HiPress onebit": ("HiPress onebit", OURS),
}
LINES = {
    "MXNet": ("MXNet", PEER, "-"),
    "HiPress float16": ("16 bits, HiPress's transport", HALF, "-"),
    "HiPress 2bit": ("HiPress 2bit", OURS, "--"),
    "HiPress onebit": ("HiPress onebit", OURS, "-"),
}
STYLE = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
}


def measured(name: str) -> dict[str, Any]:
    """Return published results for 4 nodes at 1 Gbit/s, each with its own processors."""
    return json.loads((PUBLISHED / f"{name}-{setting('1gbit', 4)}.json").read_text())


def draw_steps(axis: pyplot.Axes, result: dict[str, Any]) -> None:
    """Draw bars: milliseconds of a push and pull."""
    found = {
        row["name"]: 1e3 * statistics.median(row["seconds"])
        for row in result["rows"]
        if row["seconds"]
    }
    rows = [(*BARS[name], found[name]) for name in BARS if name in found][::-1]
    names, colors, times = zip(*rows, strict=True)
    bars = axis.barh(names, times, color=colors, height=0.7)
    axis.bar_label(bars, [f"{time:.0f}" for time in times], padding=4)
    axis.set_xlabel("milliseconds")
    axis.tick_params(axis="y", length=0)
    axis.set_title("To sum 64 MiB of gradients", loc="left", fontsize=12)


def draw_training(axis: pyplot.Axes, result: dict[str, Any]) -> None:
    """Draw lines: accuracy against seconds."""
    found = {row["name"]: row["tests"] for row in result["rows"]}
    target = 100 * result["options"]["target"]
    for name, (label, color, style) in LINES.items():
        for run, tests in enumerate(found.get(name, [])):
            seconds, accuracy = zip(*tests, strict=True)
            percent = [100 * value for value in accuracy]
            look = {"color": color, "linestyle": style, "linewidth": 1.6, "alpha": 0.85}
            axis.plot(seconds, percent, label="" if run else label, **look)
            if percent[-1] >= target:
                axis.plot(seconds[-1], percent[-1], "o", color=color, markersize=6)
    axis.axhline(target, color="#4d4d4d", linewidth=0.8, linestyle=":")
    axis.set_xlabel("seconds of training")
    axis.set_ylabel("test accuracy, %")
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=80, top=99.5)
    axis.grid(True)
    axis.legend(frameon=False, loc="lower right")
    seeds = len(result["options"]["seeds"].split())
    title = f"To train a network to {target:g}% ({seeds} seed{'s' * (seeds > 1)})"
    axis.set_title(title, loc="left", fontsize=12)


def main(path: Path) -> None:
    steps, training = measured("pushpull"), measured("time-to-accuracy")
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(1, 2, figsize=(12, 4.4))
        draw_steps(axes[0], steps)
        draw_training(axes[1], training)
        figure.suptitle("4 nodes at 1 Gbit/s", x=0.01, ha="left", fontsize=15, fontweight="bold")
        figure.tight_layout()
        figure.savefig(path, dpi=110)
    print(f"saved {path}")
