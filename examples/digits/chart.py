"""Results of the demo: a table in the terminal and a picture of the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from demo import Result

Record = Mapping[str, Any]  # one JSON line of train.py, which is an epoch
Runs = Mapping[str, Sequence[Record]]

BASELINE = "fp16"
"""Baseline of the comparison: 16-bit gradients, the usual simple remedy."""
COLORS = ("#7f7f7f", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vPX<>hp*d8"
LINES = ("-", "--", ":")  # one per cycle of the colors
LABELS = {"none": "32 bits (none)", "fp16": "16 bits (fp16)"}


def rate_text(bits_per_second: float) -> str:
    """Return a rate as text: ``1e9`` -> ``"1 Gbit/s"``, ``2.5e8`` -> ``"250 Mbit/s"``."""
    if bits_per_second >= 1e9:
        return f"{bits_per_second / 1e9:g} Gbit/s"
    return f"{bits_per_second / 1e6:g} Mbit/s"


def wire_bytes(record: Record) -> int:
    """Return the bytes that one worker sent and received until the end of this epoch."""
    return record["pushed_bytes"] + record["pulled_bytes"]


def seconds_to(records: Sequence[Record], target: float) -> float | None:
    """Return the seconds of training until a test accuracy, or None if it was not reached."""
    return next((r["seconds"] for r in records if r["accuracy"] >= target), None)


def times_as_fast(runs: Runs, name: str, target: float) -> float | None:
    """Return the time of 16-bit gradients to the accuracy divided by that of a type."""
    mine, theirs = (seconds_to(runs.get(kind, ()), target) for kind in (name, BASELINE))
    return theirs / mine if mine and theirs else None


def summary(local: Runs, linked: Result, target: float) -> Table:
    """Return a row per type: bytes, steps and seconds to the accuracy, on loopback and on links."""
    where = f"at {linked.links}"
    table = Table(
        title=f"Handwritten digits until {100 * target:g}% of the test images are right",
        caption="MB: of one worker, pushed and pulled in a step, as its transport counted them"
        + (f"\n{where}: predicted by the simulator, not measured" if linked.predicted else ""),
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("type", style="bold")
    what = "s, predicted" if linked.predicted else "s"
    for head in ("MB a step", "steps", "s on this host", f"{what} {where}", "against 16 bits"):
        table.add_column(head, justify="right")
    for name, records in linked.runs.items():
        last = records[-1]
        reached, here = seconds_to(records, target), seconds_to(local[name], target)
        gain = times_as_fast(linked.runs, name, target)
        table.add_row(
            name,
            f"{wire_bytes(last) / last['step'] / 1e6:.2f}",
            f"{last['step']}" if reached else f"over {last['step']}",
            f"{here:.1f}" if here else f"({100 * local[name][-1]['accuracy']:.1f} %)",
            f"{reached:.1f}" if reached else f"({100 * last['accuracy']:.1f} %)",
            f"{gain:.1f}x" if gain else "",
        )
    return table


def plot(linked: Result, target: float, path: Path) -> None:
    """Save a PNG: seconds to the accuracy as bars, and accuracy against time, side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {
        "font.size": 12,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
    }
    runs = linked.runs
    how = " (predicted)" if linked.predicted else ""
    with plt.rc_context(style):
        figure, (bars, curves) = plt.subplots(1, 2, figsize=(13, 0.35 * len(runs) + 3.6))
        longest = max(records[-1]["seconds"] for records in runs.values())
        for index, (name, records) in enumerate(runs.items()):
            color = COLORS[index % len(COLORS)]
            reached = seconds_to(records, target)
            gain = times_as_fast(runs, name, target)
            bars.barh(index, reached or 0, color=color, height=0.65)
            said = f"{reached:.1f} s" if reached else f"not after {records[-1]['seconds']:.0f} s"
            if gain and name not in ("none", BASELINE):
                said += f", {gain:.1f} times as fast as 16 bits"
            inside = reached and reached > 0.45 * longest
            bars.text(
                (reached or 0) + (-0.01 if inside else 0.01) * longest,
                index,
                said,
                va="center",
                ha="right" if inside else "left",
                color="white" if inside else "black",
            )
            curves.plot(
                [0, *(record["seconds"] for record in records)],
                [10, *(100 * record["accuracy"] for record in records)],
                color=color,
                linestyle=LINES[index // len(COLORS) % len(LINES)],
                marker=MARKERS[index % len(MARKERS)],
                markersize=4.5,
                linewidth=2,
                label=LABELS.get(name, name),
            )
        bars.set_yticks(range(len(runs)), [LABELS.get(name, name) for name in runs])
        bars.invert_yaxis()
        bars.set_xlim(0, 1.05 * longest)
        bars.set_xlabel(f"seconds{how}")
        bars.set_title(f"Seconds to {100 * target:g}% at {linked.links}{how}", loc="left")
        curves.axhline(100 * target, color="#999999", linewidth=1, linestyle=":")
        curves.set_ylim(50, 100.5)
        curves.set_xlim(0, 1.05 * longest)
        curves.grid(color="#e5e5e5")
        curves.set_xlabel(f"seconds of training{how}")
        curves.set_ylabel("test accuracy, %")
        curves.set_title(f"Accuracy at {linked.links}{how}", loc="left")
        curves.legend(loc="lower right", frameon=False)
        figure.suptitle(headline(linked, target), x=0.01, ha="left", fontsize=15, weight="bold")
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
        plt.close(figure)


def headline(linked: Result, target: float) -> str:
    """Return one sentence that compares the fastest type with 16-bit gradients."""
    gains = {
        name: gain
        for name in linked.runs
        if name not in ("none", BASELINE)
        and (gain := times_as_fast(linked.runs, name, target)) is not None
    }
    if not gains:
        return f"Handwritten digits over HiPress at {linked.links}"
    best = max(gains, key=gains.__getitem__)
    how = "predicted to be " if linked.predicted else ""
    return (
        f"At {linked.links} {best} is {how}{gains[best]:.1f} times as soon at "
        f"{100 * target:g}% as 16-bit gradients"
    )
