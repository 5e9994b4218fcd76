"""Timelines in the Trace Event Format, which Perfetto and Chrome's about:tracing draw.

One form for simulated and recorded jobs, so that `hipress report` can draw both: an event has
``name`` (the operation), ``pid`` (a host, named by metadata), ``tid`` (a thread or link), ``ts``
and ``dur`` in microseconds, and ``args`` with key, partition, peer and bytes.
"""

from __future__ import annotations

import json
import os

from hipress.base import files
from hipress.simulator.event_simulation import Run
from hipress.simulator.lower import Label, Lowered
from hipress.simulator.models import Model


def save(
    path: str | os.PathLike[str], result: Run, lowered: Lowered, model: Model, note: dict
) -> int:
    """Write the records of a simulation and return the number of events."""
    events: list[dict] = []
    lanes: dict[tuple[int, str], int] = {}
    for host, lane, start, end, task in result.spans:
        label = lowered.tasks.label[task]
        if not isinstance(label, Label):
            continue
        tid = lanes.setdefault((host, lane), len(lanes))
        args = {
            "key": label.key,
            "partition": label.partition,
            "node": label.node,
            "peer": label.peer,
            "bytes": round(label.bytes),
        }
        events.append(_event(label.op, host, tid, start, end - start, args))
    now = 0.0
    for layer, seconds in zip(reversed(model.layers), reversed(model.backward)):
        if seconds > 0:
            events.append(_event("backward", 0, len(lanes), now, seconds, {"key": layer.name}))
        now += seconds
    lanes[0, "backward pass"] = len(lanes)
    for host in sorted({host for host, _ in lanes}):
        events.append(_name("process_name", host, 0, f"host {host}"))
    for (host, lane), tid in lanes.items():
        events.append(_name("thread_name", host, tid, lane))
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": note})
    files.write(path, "timeline", text)
    return len(events)


def _event(name: str, pid: int, tid: int, start: float, seconds: float, args: dict) -> dict:
    ts, dur = round(start * 1e6, 3), round(seconds * 1e6, 3)
    return {"name": name, "ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def _name(what: str, pid: int, tid: int, name: str) -> dict:
    return {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}
