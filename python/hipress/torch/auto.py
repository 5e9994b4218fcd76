"""``plan="auto"``: the ranks find out from which size on compressing a gradient pays.

Before the first step, all ranks together synchronise gradients of a few sizes, uncompressed and
compressed, as training would: several in a bucket. The means of the logarithms of what they
measured give two curves; rank 0 compares them, and all take its answer. The way of
:mod:`hipress.secopa.auto` in the key-value store, over a process group.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace

import torch
import torch.distributed as dist

from hipress.secopa.auto import GAIN, ROUNDS, SIZES, TOGETHER, threshold
from hipress.secopa.curve import fit
from hipress.torch.engine import Engine
from hipress.torch.settings import AUTO, Settings
from hipress.torch.synchronizer import Synchronizer

AT_LEAST = 2
"""Gradients in a bucket; of small ones, which come in crowds, as many as make TOGETHER."""
NEVER = 1 << 62
"""A min_size that no gradient reaches."""
_log = logging.getLogger("hipress")


def choose(
    settings: Settings, engine: Engine, group: dist.ProcessGroup, device: torch.device
) -> None:
    """With plan AUTO, raises ``settings.min_size`` to where compression pays.

    It must save 3% of the time of an uncompressed all-reduce. All ranks of the group call it
    together; it takes seconds.

    :param device: where the gradients are
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    if settings.plan != AUTO:
        return
    params = dict(settings.params)
    if "warmup" in params:  # what is sent in most steps, not in the first ones
        params["warmup"] = 0
    compressed = replace(settings, params=params, plan=None, min_size=0, warmup_steps=0)
    plain = replace(compressed, min_size=NEVER)
    times = [
        [_seconds(way, size, engine, group, device) for size in SIZES]
        for way in (plain, compressed)
    ]
    means = torch.tensor(times, dtype=torch.float64, device=device).log()
    dist.all_reduce(means, group=group)
    raw, short = (means / engine.world_size).exp().tolist()
    answer = [threshold(fit(SIZES, raw).curve, fit(SIZES, short).curve)]
    dist.broadcast_object_list(answer, dist.get_global_rank(group, 0), group=group)
    least = answer[0]
    if engine.rank == 0:
        detail = ", ".join(
            f"{size}: {1e3 * a:.3g} and {1e3 * b:.3g}" for size, a, b in zip(SIZES, raw, short)
        )
        if least is None:
            _log.warning(
                "plan auto: nothing is compressed, for %s would not save %.0f%% of an uncompressed "
                "all-reduce here", settings.type, 100 * (1 - GAIN)
            )  # fmt: skip
        else:
            _log.info("plan auto: %s pays from %d elements on", settings.type, least)
        _log.info("plan auto: ms by elements, uncompressed and compressed: %s", detail)
    settings.min_size = NEVER if least is None else max(least, settings.min_size)


def _seconds(
    settings: Settings, size: int, engine: Engine, group: dist.ProcessGroup, device: torch.device
) -> float:
    """Of one gradient in a bucket of several."""
    count = max(AT_LEAST, TOGETHER // size)
    names = [f"{size}/{i}" for i in range(count)]
    shapes = [(name, torch.empty(size, device="meta")) for name in names]
    synchronizer = Synchronizer(settings, engine, group, shapes)
    entries = tuple((name, i * size, size) for i, name in enumerate(names))
    generator = torch.Generator().manual_seed(engine.rank)
    values = (0.01 * torch.randn(count * size, generator=generator)).to(device)
    least = math.inf
    for turn in range(ROUNDS):
        flat = values.clone()
        dist.barrier(group)
        began = time.perf_counter()
        synchronizer.synchronize(flat, entries, "plan auto").wait()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if turn:
            least = min(least, time.perf_counter() - began)
    return least / count
