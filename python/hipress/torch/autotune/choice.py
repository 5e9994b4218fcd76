"""Choices of a process group before its first step.

The choices are the method (type "auto"), the topology, and the size from which on gradients are
compressed (``plan="auto"``). All ranks of the group call these functions together. The slowest
rank's seconds count, as in training.
"""

from __future__ import annotations

import logging
import math
import os
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from hipress.autotune import choice
from hipress.autotune.explanation import number
from hipress.autotune.frontend import RankReductions
from hipress.autotune.methods import BF16_HOOK, MAXMIN8, Method, candidates, vectors
from hipress.autotune.threshold import NEVER, SIZES, least_size, measure_sizes, preview
from hipress.config import AUTO
from hipress.torch import exchange
from hipress.torch.autotune.frontend import (
    GroupFrontend,
    Sample,
    Shape,
    most_frequent_dtype,
    sample_buckets,
)
from hipress.torch.autotune.hooks import MEANS, Hook
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.settings import Settings

SHARED_HOSTS = ("ps", "hierarchical")
"""Topologies that are measured if ranks share hosts."""
_log = logging.getLogger("hipress")


def choose_method(
    settings: Settings,
    engine: ProcessGroupEngine,
    group: dist.ProcessGroup,
    device: torch.device,
    shapes: Mapping[str, Shape],
    dtypes: Mapping[str, torch.dtype],
    feedback: bool | None = None,
    hooks: Mapping[str, Hook] = MEANS,
    without: Collection[Method] = (),
    reductions: RankReductions | None = None,
    known: Mapping[str, Any] | None = None,
    later: Mapping[str, Shape] | None = None,
) -> GroupFrontend:
    """Choose a method by the times of the model's gradients, and return the front end.

    If ranks share hosts and the settings do not name a topology, it is chosen first, for the whole
    training. ``known`` is the ``state_dict()`` of an earlier choice, equal on all ranks, which
    replaces the measurement. ``later`` are shapes of gradients that may come later, such as those
    of frozen parameters, and are not measured.
    """
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    dtype = most_frequent_dtype(sizes, dtypes)
    without = [*without, *(method for method in (BF16_HOOK,) if method.name not in hooks)]
    methods = candidates(dtype != torch.float32, feedback is not False, without)

    frontend = GroupFrontend(settings, engine, group, device, dtype, shapes, hooks, reductions)
    matrices = sizes.keys() - vectors(shapes)
    largest = max(map(sizes.get, matrices), default=0)
    sentence = ""
    if settings.chooses_topology and largest >= settings.min_size:
        sentence = _choose_topology(frontend)
    made = choice.choose(frontend, methods, feedback, largest, settings.min_size, known)
    if sentence:
        made.explanation.history.append(sentence)
    frontend.choice, frontend.all_shapes = made, {**shapes, **(later or {})}
    return frontend


def _choose_topology(frontend: GroupFrontend) -> str:
    """Set the fastest topology if several ranks share hosts, and return the reason."""
    settings = frontend.auto_settings
    count = settings.devices_per_host
    if count == 1:
        count = ranks_per_host(frontend.group)
    # With momentum, gradients that are summed in a host before they are encoded would get none.
    if not 1 < count < frontend.num_ranks or settings.momentum:
        return ""
    params = settings.params_after_warm_up
    probe = MAXMIN8 if settings.type == AUTO else Method(settings.type, settings.type, params)
    frontend.auto_settings = replace(
        settings, params=params, devices_per_host=count, warmup_steps=0
    )
    found = frontend.measure([probe._replace(topology=name) for name in SHARED_HOSTS])
    times = {name: each.seconds for name, each in zip(SHARED_HOSTS, found)}
    best, *others = sorted(times, key=times.get)
    rest = "; ".join(f"{other} {number(1e3 * times[other])} ms" for other in others)
    sentence = (
        f"auto: topology {best}, for hosts have {count} ranks each: a step's gradients take "
        f"{number(1e3 * times[best])} ms by {probe.name} ({rest})"
    )
    if frontend.rank == 0:
        _log.warning("%s", sentence)
    hosts = settings.devices_per_host if best == "ps" else count
    frontend.auto_settings = replace(settings, topology=best, devices_per_host=hosts)
    return sentence


def choose_settings(
    settings: Settings,
    engine: ProcessGroupEngine,
    group: dist.ProcessGroup,
    device: torch.device,
    shapes: Mapping[str, Shape],
    sizes: Mapping[str, int],
    dtypes: Mapping[str, torch.dtype],
) -> Settings:
    """Return settings with measured choices, for another type than "auto".

    If the settings name no topology, it is the fastest. With ``plan="auto"`` they have the
    ``min_size`` from which on compression pays.

    For a plan all ranks synchronize gradients of a few sizes, several in a bucket, uncompressed and
    compressed (:mod:`hipress.autotune.threshold`). Compression must save 3% of the time. Then they
    synchronize gradients of the model's sizes in turns, compressed as planned and uncompressed. If
    uncompressed gradients are faster, nothing is compressed. It takes seconds.
    """
    chooses_topology = settings.chooses_topology and settings.type != AUTO
    if not chooses_topology and settings.plan != AUTO:
        return settings
    dtype = most_frequent_dtype(sizes, dtypes)
    if chooses_topology:
        frontend = GroupFrontend(settings, engine, group, device, dtype, shapes)
        _choose_topology(frontend)
        settings = frontend.auto_settings
    if settings.plan != AUTO:
        return settings
    params = settings.params_after_warm_up
    measured = replace(settings, params=params, plan=None, min_size=0, warmup_steps=0)
    shapes = {name: (size,) for name, size in sizes.items()}
    frontend = GroupFrontend(measured, engine, group, device, dtype, shapes)
    least, _ = least_size(frontend, measure_sizes(frontend, SIZES), settings.type)
    least = max(least, settings.min_size)
    if any(size >= least for size in sizes.values()):
        buckets = sample_buckets(shapes)
        samples = [
            Sample(replace(measured, min_size=min_size), buckets, frontend)
            for min_size in (least, NEVER)
        ]
        ratio = preview(*(sample.slowest for sample in samples))
        if frontend.rank == 0:
            _log.log(
                logging.WARNING if ratio > 1 else logging.INFO,
                "plan auto: %sthis model's gradients took %.2f times as long compressed as not",
                "nothing is compressed, for " if ratio > 1 else "",
                ratio,
            )
        least = NEVER if ratio > 1 else least
    return replace(settings, min_size=least)


def this_host() -> str:
    """Return a text that is equal in processes that share a kernel and its network interfaces.

    These are the processes of one host, except containers with separate networks. If Linux does not
    provide the text, each process has a different one.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.stat('/proc/self/ns/net').st_ino}"
    except OSError:  # a sandbox may hide /proc
        return f"{socket.gethostname()} {os.getpid()}"


def ranks_per_host(group: dist.ProcessGroup) -> int:
    """Return the number of consecutive ranks on each host.

    It is 1 if there is one host, or if the ranks of a host are not consecutive. It is also 1 if
    hosts have different numbers, except that the last one may have fewer. All ranks of the group
    call this together.
    """
    return block_length(exchange.gather(group, this_host(), "host names", str))


def block_length(hosts: Sequence[str]) -> int:
    """See :func:`ranks_per_host`.

    >>> block_length(["a", "a", "b", "b", "c"])
    2
    >>> block_length(["a", "b", "a", "b"])
    1
    """
    length = next((i for i, host in enumerate(hosts) if host != hosts[0]), 0)
    blocks = [hosts[i : i + length] for i in range(0, len(hosts), length)] if length else []
    together = all(len(set(block)) == 1 for block in blocks)
    return length if together and len({block[0] for block in blocks}) == len(blocks) > 1 else 1
