"""Fits of a profile to a profiling job's timeline (see :mod:`hipress.cli.profile_job`)."""

from __future__ import annotations

import itertools
import os
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hipress.base import files
from hipress.planning import profiles
from hipress.planning.cluster import HEADER, SHARED_PAYLOAD
from hipress.planning.curve import Curve, Fit, fit, fit_link

BURST_SIZE = SHARED_PAYLOAD // 4 + 16
"""Elements of a small gradient that is too large to share a message."""
PART_SIZE = 16
"""Elements of a gradient whose payload shares a message."""
GROUPS = {BURST_SIZE: (3, 6, 12), PART_SIZE: (32, 64, 128, 256)}
"""Numbers of gradients in one call, by size, which show the cost of one more. All together are few
bytes, because on a slow link each packet wakes its receiver, which is no cost of a message."""


class FittingError(ValueError):
    """Timeline without the data for a profile."""


@dataclass
class _Samples:
    """Measurements of one curve: seconds by size."""

    by_size: dict[float, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, size: float, seconds: float) -> None:
        self.by_size[size].append(seconds)

    def rows(self) -> list[tuple[float, float, int]]:
        """Return (size, median seconds, number of measurements), by size."""
        return [
            (size, statistics.median(times), len(times))
            for size, times in sorted(self.by_size.items())
        ]

    def fit(self, what: str, how: Callable[..., Fit] = fit) -> Fit:
        rows = self.rows()
        if len(rows) < 2:
            raise FittingError(f"the timeline has too few measurements of {what}")
        return how([row[0] for row in rows], [max(row[1], 1e-9) for row in rows])


def check_place(machines: int, workers: int) -> None:
    """Refuse hops both between machines and within one, which one curve cannot describe."""
    if 1 < machines < workers:
        raise FittingError(
            f"{workers} workers on {machines} machines: what is measured would be neither the "
            "network nor one machine's memory; profile with one worker on each machine"
        )


def profile(trace: str | os.PathLike[str], types: Mapping[str, Mapping[str, object]]) -> dict:
    """Return the profile of a timeline with these parameters by compression type."""
    return _Trace(trace).profile(types)


class _Trace:
    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            text = files.read_json(path, "timeline")
            events = [e for e in text["traceEvents"] if e["ph"] == "X"]
        except files.FileError as error:
            raise FittingError(str(error)) from error
        except (KeyError, TypeError) as error:
            raise FittingError(f"{path} is not a timeline: {error}") from error
        self._events: dict[str, list[dict]] = defaultdict(list)
        for event in events:
            event["begin"] = event["ts"] / 1e6
            event["end"] = (event["ts"] + event["dur"]) / 1e6
            # The first iteration touches memory and makes connections.
            if event["args"]["iteration"] > 1:
                self._events[event["args"]["key"]].append(event)
        self._dropped = sum(c["dropped"] for c in text["otherData"]["clocks"].values())
        self._workers = sum(n.startswith("worker") for n in text["otherData"]["clocks"])
        if self._workers < 2:
            raise FittingError("a profile needs the timeline of at least two workers")

    def profile(self, types: Mapping[str, Mapping[str, object]]) -> dict:
        machines, cores, threads = self._place()
        send, task = self._ring()
        samples = {"send": [list(row) for row in send.rows()]}
        codecs = {}
        for name, params in {"none": {}, **types}.items():
            codecs[name], samples[name] = self._codec(name, params, task)
        link = send.fit("send", fit_link)
        handling, samples["messages"] = self._one_more(BURST_SIZE, codecs["none"], task)
        part, samples["parts"] = self._one_more(PART_SIZE, codecs["none"])
        shared = machines == 1
        return {
            "format": profiles.FORMAT,
            "version": profiles.VERSION,
            "name": f"{platform.node() or 'cluster'}-{self._workers}",
            "created": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
            "machine": {"kernel": platform.release(), "processor": _processor()},
            "nodes": self._workers,
            "shared_host": shared,
            "threads": cores if shared else threads,
            "node_threads": threads,
            "task": task,
            "network": {
                "send": _curve(link),
                "message": self._message(link.curve),
                "handling": handling,
                "part": part,
            },
            "codecs": codecs,
            "samples": samples,
            "check": self._checks(types),
            "dropped_events": self._dropped,
        }

    def _place(self) -> tuple[int, int, int]:
        for key in self._events:
            if key.startswith("colocated/place/"):
                machines, cores, threads = map(int, key.split("/")[2:])
                check_place(machines, self._workers)
                return machines, cores, threads
        raise FittingError("the timeline is not one of a profiling job")

    def _of(self, topology: str, codec: str) -> dict[int, list[dict]]:
        """Return events by the gradient's elements."""
        start = f"{topology}/{codec}/"
        return {int(k[len(start) :]): v for k, v in self._events.items() if k.startswith(start)}

    def _ring(self) -> tuple[_Samples, float]:
        """Return messages in transit, and the time between a task's end and its consumer's begin.

        The first N hops of an iteration form a circle, so errors of the nodes' clocks cancel out in
        their sum.
        """
        send, gaps = _Samples(), []
        for events in self._of("ring", "none").values():
            for iteration in {e["args"]["iteration"] for e in events}:
                now = [e for e in events if e["args"]["iteration"] == iteration]
                sends = sorted((e for e in now if e["name"] == "send"), key=lambda e: e["begin"])
                receives = sorted(
                    (e for e in now if e["name"] == "receive"), key=lambda e: e["end"]
                )
                if len(sends) != len(receives) or len(sends) < self._workers:
                    continue
                hops = list(zip(sends, receives))[: self._workers]
                total = sum(r["end"] - s["begin"] for s, r in hops)
                send.add(HEADER + hops[0][0]["args"]["bytes"], max(total / len(hops), 1e-9))
                gaps += _gaps(now)
        return send, statistics.median(gaps) if gaps else 0.0

    def _codec(self, name: str, params: Mapping[str, object], task: float) -> tuple[dict, dict]:
        encode, decode, add, merge = _Samples(), _Samples(), _Samples(), _Samples()
        sizes: dict[int, float] = {}
        for elements, events in self._of("ring", name).items():
            for e in events:
                seconds = e["end"] - e["begin"]
                if e["name"] == "encode":
                    encode.add(elements, seconds)
                    sizes[elements] = e["args"]["bytes"]
                elif e["name"] == "decode":
                    decode.add(elements, seconds)
                elif e["name"] == "merge":
                    add.add(elements, seconds)
        for elements, events in self._of("colocated", name).items():
            for e in events:
                if e["name"] == "merge":
                    merge.add(elements * self._workers, e["end"] - e["begin"])
        curves = {"encode": encode, "decode": decode, "add": add, "merge": merge}
        per_element, fixed = _payload(sizes)
        row = {"params": dict(params), "bytes_per_element": per_element, "fixed_bytes": fixed}
        row.update({op: _curve(s.fit(f"{op} of {name}")) for op, s in curves.items()})
        return row, {op: [list(r) for r in s.rows()] for op, s in curves.items()}

    def _message(self, link: Curve) -> float:
        """Return the seconds between small messages of a node, without the link's time."""
        arrivals: dict[tuple, list[float]] = defaultdict(list)
        start = f"ring/group/{BURST_SIZE}/{GROUPS[BURST_SIZE][-1]}/"
        for key, events in self._events.items():
            if not key.startswith(start):
                continue
            for e in events:
                if e["name"] == "receive":
                    at = (e["args"]["node"], e["args"]["iteration"])
                    arrivals[at].append(e["end"])
        spans = [
            (max(times) - min(times)) / (len(times) - 1)
            for times in arrivals.values()
            if len(times) > 2
        ]
        if not spans:
            raise FittingError("the timeline has no burst of small messages")
        return max(0.0, statistics.median(spans) - link.w * (HEADER + 4 * BURST_SIZE))

    def _one_more(
        self, elements: int, plain: Mapping[str, object], task: float = 0.0
    ) -> tuple[float, list[list[float]]]:
        """Return the processor seconds of one more message on both its nodes, and the measurements.

        Where small gradients share messages, it is a part of a message. A measurement has the
        seconds by number of gradients in one call. ``task`` is the time of each task in addition to
        its codec.
        """
        start = f"colocated/busy/{elements}/"
        names = [key[len(start) :].split("/") for key in self._events if key.startswith(start)]
        rows = sorted([int(count), int(nanoseconds) / 1e9, 1] for count, nanoseconds in names)
        if len(rows) < 2:
            raise FittingError(f"the timeline has too few groups of {elements} elements")
        # As for links (fit_link), one disturbed row must not decide.
        slope = statistics.median(
            (b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(rows, 2)
        )
        n = self._workers
        tasks = {"encode": n, "add": n - 1, "decode": n}  # of a gradient, around a ring
        codecs = sum(
            times * (task + Curve(plain[op]["w"], plain[op]["b"], plain[op]["o"])(elements))
            for op, times in tasks.items()
        )
        return max(0.0, slope - codecs) / (2 * (n - 1)), rows

    def _checks(self, types: Mapping[str, object]) -> dict[str, dict[str, float]]:
        """Return measured seconds of a large gradient on all nodes at once, by codec."""
        found = {}
        for name in ("none", *types):
            rounds: dict[int, list[dict]] = defaultdict(list)
            for e in self._events.get(f"colocated/check/{name}", []):
                if e["name"] == "gradient":
                    rounds[e["args"]["iteration"]].append(e)
            if rounds:
                seconds = statistics.median(
                    max(e["end"] for e in r) - min(e["begin"] for e in r) for r in rounds.values()
                )
                elements = next(iter(rounds.values()))[0]["args"]["elements"]
                found[name] = {"elements": elements, "seconds": seconds}
        return found


def _gaps(events: Sequence[dict]) -> list[float]:
    """Return the seconds between dependent tasks on one node, which are the executor's overhead."""
    gaps = []
    by_node: dict[str, list[dict]] = defaultdict(list)
    for e in events:
        if e["name"] != "gradient":
            by_node[e["args"]["node"]].append(e)
    follows = {("receive", "merge"), ("merge", "encode"), ("encode", "send")}
    for row in by_node.values():
        row.sort(key=lambda e: e["end"])
        for first, second in zip(row, row[1:]):
            if (first["name"], second["name"]) in follows:
                gap = second["begin"] - first["end"]
                if gap >= 0:
                    gaps.append(gap)
    return gaps


def _payload(sizes: Mapping[int, float]) -> tuple[float, float]:
    """Return (bytes per element, fixed bytes) of payloads, from the largest and the smallest."""
    if len(sizes) < 2:
        raise FittingError("the timeline has too few encoded gradients")
    small, large = min(sizes), max(sizes)
    slope = (sizes[large] - sizes[small]) / (large - small)
    return slope, max(0.0, sizes[small] - slope * small)


def _curve(fitted: Fit) -> dict[str, object]:
    return {**fitted.to_json(), "poor": fitted.poor}


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()
