"""What the demo shows at its end: a table in the terminal and a picture of the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

Record = Mapping[str, Any]  # one JSON line of train.py: an epoch

COLOURS = ("#4d4d4d", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vPX<>hp*d8"
LINES = ("-", "--", ":")  # one for each time that the colours have been used up


def wire_bytes(record: Record) -> int:
    """Bytes on one worker's wire until the end of this epoch, both directions."""
    return record["pushed_bytes"] + record["pulled_bytes"]


def saved_bytes(record: Record) -> int:
    """What the same pushes and pulls would have cost uncompressed, less what they cost."""
    return record["pushed_raw_bytes"] + record["pulled_raw_bytes"] - wire_bytes(record)


def megabytes(number: int) -> str:
    """``12345678`` -> ``"12.3 MB"`` (decimal megabytes)."""
    return f"{number / 1e6:,.1f} MB" if number >= 1e6 else f"{number / 1e6:.2f} MB"


def summary(runs: Mapping[str, Sequence[Record]], workers: int, servers: int) -> Table:
    """The last epoch of every run, one row each; `runs` maps a type's name to its epochs."""
    epochs = max(len(records) for records in runs.values())
    table = Table(
        title=f"Digits after {epochs} epochs: {workers} workers, {servers} servers",
        caption="bytes of one worker, as its transport counted them",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("type", style="bold")
    for head in ("test accuracy", "pushed", "pulled", "saved", "", "seconds"):
        table.add_column(head, justify="right")
    for name, records in runs.items():
        last = records[-1]
        raw = last["pushed_raw_bytes"] + last["pulled_raw_bytes"]
        saved = saved_bytes(last)
        # Headers make an uncompressed run cost a trifle more than its raw bytes.
        small = saved <= 0.005 * raw
        table.add_row(
            name,
            f"{100 * last['accuracy']:.1f} %",
            megabytes(last["pushed_bytes"]),
            megabytes(last["pulled_bytes"]),
            "-" if small else megabytes(saved),
            "" if small else f"{100 * saved / raw:.1f} %",
            f"{last['seconds']:.1f}",
        )
    return table


def plot(runs: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Saves a PNG: test accuracy against bytes on the wire and against time, side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FuncFormatter

    style = {
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#e5e5e5",
        "axes.axisbelow": True,
    }
    with plt.rc_context(style):
        figure, axes = plt.subplots(1, 2, figsize=(13, 5.2), sharey=True)
        for index, (name, records) in enumerate(runs.items()):
            accuracy = [100 * record["accuracy"] for record in records]
            look = {
                "color": COLOURS[index % len(COLOURS)],
                "linestyle": LINES[index // len(COLOURS) % len(LINES)],
                "marker": MARKERS[index % len(MARKERS)],
                "markersize": 4.5,
                "linewidth": 1.8,
                "label": "uncompressed" if name == "none" else name,
            }
            axes[0].plot([wire_bytes(r) / 1e6 for r in records], accuracy, **look)
            axes[1].plot([r["seconds"] for r in records], accuracy, **look)
        lowest = min(100 * r["accuracy"] for records in runs.values() for r in records)
        axes[0].set_ylim(max(0, min(90, 5 * int(lowest / 5)) - 1), 100.5)
        axes[0].set_xscale("log")
        axes[0].xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} MB"))
        axes[0].set_xlabel("bytes pushed and pulled by one worker (logarithmic)")
        axes[1].set_xlabel("seconds of training")
        axes[1].set_xlim(left=0)
        axes[0].set_ylabel("test accuracy, %")
        axes[0].set_title("Accuracy against bytes on the wire", loc="left", fontsize=12)
        axes[1].set_title("Accuracy against time on this machine", loc="left", fontsize=12)
        beside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False}
        axes[1].legend(title="compression", **beside)
        figure.suptitle(_headline(runs), x=0.01, ha="left", fontsize=15, fontweight="bold")
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
        plt.close(figure)


def _headline(runs: Mapping[str, Sequence[Record]]) -> str:
    compressed = {name: records[-1] for name, records in runs.items() if name != "none"}
    if "none" not in runs or not compressed:
        return "Handwritten digits over HiPress"
    plain = runs["none"][-1]
    least = min(wire_bytes(plain) / wire_bytes(last) for last in compressed.values())
    gap = max(100 * abs(last["accuracy"] - plain["accuracy"]) for last in compressed.values())
    return (
        f"Handwritten digits: at least {least:.0f}x fewer bytes in each compressed run, "
        f"accuracy within {max(gap, 0.1):.1f} points"
    )
