"""Picture of a report: tasks of one step, each node's activities, predicted and measured times."""

from __future__ import annotations

import os
from pathlib import Path

from hipress.base import files
from hipress.diagnostics.report import COLOURS, COMPUTE, NETWORK, Timeline, shares, totals

MAX_NODES = 8
"""Largest number of drawn nodes. More would not be legible."""


def draw(
    timeline: Timeline, path: str | os.PathLike[str], predicted: Timeline | None = None
) -> None:
    """Write the picture. The path's suffix selects PNG, SVG or PDF."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    pictures = [timeline] + ([predicted] if predicted else [])
    heights = [3.2] * len(pictures) + [2.6]
    figure, axes = plt.subplots(
        len(pictures) + 1,
        1,
        figsize=(11, sum(heights) + 1),
        height_ratios=heights,
        layout="constrained",
    )
    span = max(_step_length(t) for t in pictures)
    for axis, one in zip(axes, pictures):
        _tasks(axis, one)
        axis.set_xlim(0, 1e3 * span)
    if predicted:
        _compare(axes[-1], timeline, predicted)
    else:
        _nodes(axes[-1], timeline)
    with files.replacing(path) as file:
        figure.savefig(file, dpi=130, format=Path(path).suffix[1:] or None)
    plt.close(figure)


def _step_length(timeline: Timeline) -> float:
    begin, end = timeline.steps()[timeline.middle_step()]
    return end - begin


def _tasks(axis, timeline: Timeline) -> None:
    step = timeline.middle_step()
    begin, end = timeline.steps()[step]
    spans = [s for s in timeline.spans if s.op in COLOURS and s.end > begin and s.begin < end]
    nodes = sorted({s.node for s in spans})[:MAX_NODES]
    ticks, names = [], []
    for row, node in enumerate(reversed(nodes)):
        # Codecs are drawn above sends and receives.
        for op, y in (("compute", 0.68), ("receive", 0.36), ("send", 0.04)):
            ops = (*COMPUTE, "backward") if op == "compute" else (op,)
            for name in ops:
                bars = [
                    (1e3 * (s.begin - begin), 1e3 * max(s.end - s.begin, (end - begin) / 2000))
                    for s in spans
                    if s.node == node and s.op == name
                ]
                axis.broken_barh(bars, (row + y, 0.28), color=COLOURS[name])
        ticks.append(row + 0.5)
        names.append(node)
    axis.set_yticks(ticks, names)
    axis.set_ylim(0, max(len(nodes), 1))
    seen = {s.op for s in spans}
    handles = [_patch(op) for op in COLOURS if op in seen]
    axis.legend(handles=handles, loc="upper right", ncols=len(handles), fontsize=7, framealpha=0.8)
    kind = "measured" if timeline.recorded else "predicted"
    axis.set_title(
        f"{kind}: step {step}, {1e3 * (end - begin):.2f} ms "
        "(per node: codecs above, receives, sends below)",
        fontsize=10,
    )
    axis.set_xlabel("ms")


def _patch(op: str):
    from matplotlib.patches import Patch

    return Patch(color=COLOURS[op], label=op)


def _nodes(axis, timeline: Timeline) -> None:
    found = shares(timeline, timeline.middle_step())
    names = list(found)[:32]
    left = [0.0] * len(names)
    for label, field, colour in (
        ("codec", "compute", COLOURS["encode"]),
        ("network alone", "network", COLOURS["send"]),
        ("waiting", "waiting", COLOURS["waiting"]),
    ):
        values = [1e3 * getattr(found[name], field) for name in names]
        axis.barh(names, values, left=left, label=label, color=colour)
        left = [a + b for a, b in zip(left, values)]
    axis.invert_yaxis()
    axis.legend(fontsize=8)
    axis.set_xlabel("ms of the step")
    axis.set_title("where the time went", fontsize=10)


def _compare(axis, measured: Timeline, predicted: Timeline) -> None:
    rows = [("step", _step_length(measured), _step_length(predicted))]
    found = [totals(t, t.middle_step()) for t in (measured, predicted)]
    # A send ends when the transport releases the payload, which a simulation does not model.
    for op in (*COMPUTE, *NETWORK):
        if op in found[0] or op in found[1]:
            rows.append((f"{op}, all nodes", found[0].get(op, 0.0), found[1].get(op, 0.0)))
    names = [row[0] for row in rows]
    for shift, column, label, colour in (
        (-0.2, 1, "measured", COLOURS["encode"]),
        (0.2, 2, "predicted", COLOURS["receive"]),
    ):
        positions = [i + shift for i in range(len(rows))]
        bars = axis.bar(
            positions, [1e3 * row[column] for row in rows], 0.4, label=label, color=colour
        )
        axis.bar_label(bars, fmt="%.1f", fontsize=7)
    axis.set_xticks(range(len(rows)), names, fontsize=8)
    axis.set_ylabel("ms")
    axis.legend(fontsize=8)
    axis.set_title("predicted beside measured", fontsize=10)
