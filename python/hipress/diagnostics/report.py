"""Report of the time of a recorded or simulated job: numbers and a picture.

It reads the traces that HIPRESS_TIMELINE and `hipress simulate --timeline` write.
"""

from __future__ import annotations

import glob
import os
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hipress.autotune.steps import MEASURING, StepDetector
from hipress.base import files

_FRAGMENT = "DiLoCo: "
"""Prefix of the name of the key that ends each fragment of a DiLoCo outer step."""
COMPUTE = ("encode", "merge", "update", "decode")
NETWORK = ("send", "receive")
COLORS = {
    "encode": "#4477aa",
    "merge": "#228833",
    "update": "#aa3377",
    "decode": "#66ccee",
    "send": "#ee6677",
    "receive": "#ccbb44",
    "backward": "#bbbbbb",
    "waiting": "#dddddd",
}


class ReportError(ValueError):
    """File that is not a timeline."""


@dataclass(frozen=True)
class Span:
    """One task: operation, place, begin and end in seconds, and key."""

    op: str
    node: str
    begin: float
    end: float
    key: str
    iteration: int
    bytes: int
    elements: int


@dataclass(frozen=True)
class Timeline:
    """All tasks of a job."""

    path: str
    spans: list[Span]
    recorded: bool
    """Whether it is of a real job, and not of a simulation."""
    clock_error: float
    """Half of the slowest clock exchange's round trip, in seconds."""
    view: int = 0
    """Number of the elastic job's view, or 0."""
    job: str = ""
    """Name of the job, which its files share; empty: unknown."""
    begin: float = 0.0
    """Time 0 on the clock of the job's scheduler, in seconds."""
    dropped: int = 0
    """Number of tasks that nodes could not record."""
    parts: int = 1
    """Number of files of the timeline."""
    measuring: tuple[Span, ...] = ()
    """Tasks that measured the network, during training or before it."""

    def steps(self) -> dict[int, tuple[float, float]]:
        """Return each step's begin and end over all nodes. A simulation is one step."""
        spans_of_steps: dict[int, list[float]] = {}
        for step, span in self._in_steps():
            begin, end = spans_of_steps.get(step, (span.begin, span.end))
            spans_of_steps[step] = [min(begin, span.begin), max(end, span.end)]
        return {i: (begin, end) for i, (begin, end) in sorted(spans_of_steps.items())}

    def _in_steps(self) -> Iterator[tuple[int, Span]]:
        """Yield the tasks of steps, each with the number of its step, from 1.

        A step of a node ends where it pushes a key again. A key's own iterations cannot be used,
        because layers may be frozen for a while. With DiLoCo each fragment is a step.
        """
        if not self.recorded:
            yield from ((span.iteration, span) for span in self.spans)
            return
        by_node: dict[str, list[Span]] = defaultdict(list)
        for span in self.spans:
            if span.op == "gradient":
                by_node[span.node].append(span)
        for spans in by_node.values():
            step, pushed = 1, StepDetector()
            for span in sorted(spans, key=lambda span: span.begin):
                step += pushed.begins([span.key])
                yield step, span
                if span.key.startswith(_FRAGMENT):
                    step, pushed = step + 1, StepDetector()

    def middle_step(self) -> int:
        """Return the step of median duration. The first one is ignored if there are several."""
        steps = self.steps()
        if not steps:
            raise ReportError(f"{self.path} holds no gradient that was synchronized")
        candidates = list(steps)[1:] or list(steps)
        candidates.sort(key=lambda i: steps[i][1] - steps[i][0])
        return candidates[(len(candidates) - 1) // 2]


def load(path: str | os.PathLike[str]) -> Timeline:
    """Read a timeline."""
    timeline = _read(path)
    if not timeline.spans and not timeline.measuring:
        raise ReportError(f"{path} holds no task")
    return timeline


def _read(path: str | os.PathLike[str]) -> Timeline:
    try:
        text = files.read_json(path, "timeline")
        rows = [event for event in text["traceEvents"] if event["ph"] == "X"]
        spans = [
            Span(
                op=str(event["name"]),
                node=str(event["args"].get("node", f"host {event['pid']}")),
                begin=float(event["ts"]) / 1e6,
                end=float(event["ts"] + event["dur"]) / 1e6,
                key=str(event["args"]["key"]),
                iteration=int(event["args"].get("iteration", 1)),
                bytes=int(event["args"].get("bytes", 0)),
                elements=int(event["args"].get("elements", 0)),
            )
            for event in rows
        ]
        other = text.get("otherData", {})
        clocks = other.get("clocks", {}).values()
        trips = [float(clock["round_trip_us"]) for clock in clocks]
        dropped = sum(int(clock.get("dropped", 0)) for clock in clocks)
        view, job = int(other.get("view", 0)), str(other.get("job", ""))
        begin = float(other.get("begin_us", 0.0)) / 1e6
    except files.FileError as error:
        raise ReportError(str(error)) from error
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"{path} is not a timeline that HIPRESS_TIMELINE wrote") from error
    recorded, error = bool(other.get("recorded")), max(trips, default=0.0) / 2e6
    training = [span for span in spans if MEASURING not in span.key]
    measuring = tuple(span for span in spans if MEASURING in span.key)
    return Timeline(
        str(path), training, recorded, error, view, job, begin, dropped, measuring=measuring
    )


def load_all(place: str | os.PathLike[str]) -> list[Timeline]:
    """Return the timelines of a path, in the order of views.

    A path names a file, or the value of HIPRESS_TIMELINE in an elastic job, whose views have files
    with longer names. Files of one job are merged.
    """
    path = Path(place)
    pattern = f"{glob.escape(path.stem)}-view[0-9]*{glob.escape(path.suffix)}"
    of_views = [] if path.exists() else sorted(path.parent.glob(pattern))
    if not of_views:
        return [load(path)]
    by_job: dict[tuple[int, str], list[Timeline]] = defaultdict(list)
    for file in of_views:
        timeline = _read(file)
        by_job[timeline.view, timeline.job].append(timeline)
    whole = [_together(parts) for parts in by_job.values()]
    return sorted(whole, key=lambda timeline: (timeline.view, timeline.path))


def _together(parts: Sequence[Timeline]) -> Timeline:
    """Return one timeline of a job whose nodes have written a file each."""
    first = min(parts, key=lambda part: len(part.path))
    begin = min(part.begin for part in parts)

    def moved(spans: Sequence[Span], by: float) -> list[Span]:
        return [replace(span, begin=span.begin + by, end=span.end + by) for span in spans]

    return replace(
        first,
        spans=[span for part in parts for span in moved(part.spans, part.begin - begin)],
        measuring=tuple(s for part in parts for s in moved(part.measuring, part.begin - begin)),
        clock_error=max(part.clock_error for part in parts),
        begin=begin,
        dropped=sum(part.dropped for part in parts),
        parts=len(parts),
    )


def covered(intervals: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the union of intervals, in order and disjoint."""
    union: list[list[float]] = []
    for begin, end in sorted(intervals):
        if union and begin <= union[-1][1]:
            union[-1][1] = max(union[-1][1], end)
        else:
            union.append([begin, end])
    return [(begin, end) for begin, end in union]


def _length(intervals: Sequence[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in intervals)


@dataclass(frozen=True)
class Shares:
    """Seconds of a node's activities during a step. Their sum is the step's duration."""

    compute: float
    """Seconds in which a codec task ran."""
    network: float
    """Seconds in which no codec ran, but a message was in transit from or to the node."""
    waiting: float
    """All other seconds."""


def shares(timeline: Timeline, step: int) -> dict[str, Shares]:
    """Return the shares of each node, by name."""
    begin, end = timeline.steps()[step]
    busy: dict[str, dict[bool, list[tuple[float, float]]]] = {}
    for span in timeline.spans:
        if span.op not in COMPUTE + NETWORK:
            continue
        low, high = max(span.begin, begin), min(span.end, end)
        if high > low:
            kinds = busy.setdefault(span.node, {True: [], False: []})
            kinds[span.op in COMPUTE].append((low, high))
    found = {}
    for node, kinds in sorted(busy.items()):
        compute = _length(covered(kinds[True]))
        either = _length(covered(kinds[True] + kinds[False]))
        found[node] = Shares(compute, either - compute, end - begin - either)
    return found


def summary(timeline: Timeline) -> str:
    """Return the report as text."""
    steps, step = timeline.steps(), timeline.middle_step()
    lengths = [end - begin for begin, end in list(steps.values())[1:] or list(steps.values())]
    nodes = {span.node for span in timeline.spans}
    kind = "recorded" if timeline.recorded else "simulated"
    more = f" and {timeline.parts - 1} more" if timeline.parts > 1 else ""
    view = f"view {timeline.view}, " if timeline.view else ""
    lines = [
        f"{view}{timeline.path}{more}: {kind}, {len(nodes)} nodes, {len(timeline.spans)} tasks, "
        f"{len(steps)} steps; a step's synchronization takes "
        f"{1e3 * statistics.median(lengths):.2f} ms (median), "
        f"{1e3 * min(lengths):.2f} to {1e3 * max(lengths):.2f} ms",
    ]
    if timeline.recorded:
        lines.append(f"clocks agree to within {1e6 * timeline.clock_error:.0f} us")
    if timeline.dropped:
        lines.append(f"{timeline.dropped} tasks are missing: a process keeps a million")
    if timeline.measuring:
        keys = {span.key for span in timeline.measuring}
        lines.append(
            f"left out: {len(timeline.measuring)} tasks of {len(keys)} keys that measured the "
            "network, to choose what is compressed"
        )
    lines.append(f"{'operation':10} {'tasks':>7} {'total ms':>10} {'mean us':>9} {'GB/s':>7}")
    by_op: dict[str, list[Span]] = defaultdict(list)
    for span in timeline.spans:
        by_op[span.op].append(span)
    for op in (*COMPUTE, *NETWORK):
        spans = by_op.get(op)
        if not spans:
            continue
        total = sum(span.end - span.begin for span in spans)
        moved = sum(4 * s.elements if op in COMPUTE else s.bytes for s in spans)
        rate = f"{moved / total / 1e9:7.2f}" if total > 0 and moved else "      -"
        mean = 1e6 * total / len(spans)
        lines.append(f"{op:10} {len(spans):7} {1e3 * total:10.2f} {mean:9.1f} {rate}")
    lines.append(f"step {step}, {'node':12} {'codec ms':>9} {'network ms':>11} {'waiting ms':>11}")
    for node, share in shares(timeline, step).items():
        lines.append(
            f"  {node:16} {1e3 * share.compute:11.2f} {1e3 * share.network:11.2f} "
            f"{1e3 * share.waiting:11.2f}"
        )
    slow = _slowest_keys(timeline)
    if slow:
        lines.append("gradients that took longest (median, from push to result):")
        lines += [f"  {1e3 * seconds:9.2f} ms  {key}" for key, seconds in slow]
    return "\n".join(lines)


def _slowest_keys(timeline: Timeline) -> list[tuple[str, float]]:
    times: dict[str, list[float]] = defaultdict(list)
    for span in timeline.spans:
        if span.op == "gradient" and span.iteration > 1:
            times[span.key].append(span.end - span.begin)
    medians = [(key, statistics.median(found)) for key, found in times.items()]
    return sorted(medians, key=lambda pair: -pair[1])[:5]


def totals(timeline: Timeline, step: int) -> dict[str, float]:
    """Return the seconds of each operation in a step, over all nodes and tasks."""
    begin, end = timeline.steps()[step]
    found: dict[str, float] = defaultdict(float)
    for span in timeline.spans:
        if span.op in COMPUTE + NETWORK and begin <= span.begin < end:
            found[span.op] += span.end - span.begin
    return dict(found)


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
    from matplotlib.patches import Patch

    step = timeline.middle_step()
    begin, end = timeline.steps()[step]
    spans = [s for s in timeline.spans if s.op in COLORS and s.end > begin and s.begin < end]
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
                axis.broken_barh(bars, (row + y, 0.28), color=COLORS[name])
        ticks.append(row + 0.5)
        names.append(node)
    axis.set_yticks(ticks, names)
    axis.set_ylim(0, max(len(nodes), 1))
    seen = {s.op for s in spans}
    handles = [Patch(color=COLORS[op], label=op) for op in COLORS if op in seen]
    axis.legend(handles=handles, loc="upper right", ncols=len(handles), fontsize=7, framealpha=0.8)
    kind = "measured" if timeline.recorded else "predicted"
    axis.set_title(
        f"{kind}: step {step}, {1e3 * (end - begin):.2f} ms "
        "(per node: codecs above, receives, sends below)",
        fontsize=10,
    )
    axis.set_xlabel("ms")


def _nodes(axis, timeline: Timeline) -> None:
    found = shares(timeline, timeline.middle_step())
    names = list(found)[:32]
    left = [0.0] * len(names)
    for label, field, color in (
        ("codec", "compute", COLORS["encode"]),
        ("network alone", "network", COLORS["send"]),
        ("waiting", "waiting", COLORS["waiting"]),
    ):
        values = [1e3 * getattr(found[name], field) for name in names]
        axis.barh(names, values, left=left, label=label, color=color)
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
    for shift, column, label, color in (
        (-0.2, 1, "measured", COLORS["encode"]),
        (0.2, 2, "predicted", COLORS["receive"]),
    ):
        positions = [i + shift for i in range(len(rows))]
        bars = axis.bar(
            positions, [1e3 * row[column] for row in rows], 0.4, label=label, color=color
        )
        axis.bar_label(bars, fmt="%.1f", fontsize=7)
    axis.set_xticks(range(len(rows)), names, fontsize=8)
    axis.set_ylabel("ms")
    axis.legend(fontsize=8)
    axis.set_title("predicted beside measured", fontsize=10)
