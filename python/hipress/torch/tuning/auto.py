"""``plan="auto"``: the ranks find out from which size on compressing a gradient pays.

Before the first step, all ranks together synchronise gradients of a few sizes, uncompressed and
compressed, as training would: several in a bucket. The means of the logarithms of what they
measured give two curves; rank 0 compares them, and all take its answer, as
:mod:`hipress.secopa.auto` does for the key-value store. Then they try it with gradients of the
model's own sizes (:mod:`hipress.torch.tuning.trial`): where uncompressed ones are faster after all,
nothing is compressed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import torch
import torch.distributed as dist

from hipress.secopa.auto import GAIN, ROUNDS, SIZES, TOGETHER, threshold
from hipress.secopa.curve import fit
from hipress.torch.executors.engine import Engine
from hipress.torch.settings import AUTO, Settings
from hipress.torch.tuning import trial

AT_LEAST = 2
"""Gradients in a bucket; of small ones, which come in crowds, as many as make TOGETHER."""
NEVER = 1 << 62
"""A min_size that no gradient reaches."""
_log = logging.getLogger("hipress")


def choose(
    settings: Settings,
    engine: Engine,
    group: dist.ProcessGroup,
    device: torch.device,
    sizes: Mapping[str, int],
    dtypes: Mapping[str, torch.dtype],
) -> None:
    """With plan AUTO, raises ``settings.min_size`` to where compression pays.

    It must save 3% of the time of an uncompressed all-reduce, and then, tried with gradients of the
    model's sizes, must not be slower than none. What is measured has the dtype that most elements
    of the model's gradients have. All ranks of the group call it together; it takes seconds.

    :param device: where the gradients are
    :param sizes: of the model's gradients by name, in elements
    :param dtypes: theirs
    :raises HipressError: if a rank dies or is silent meanwhile
    """
    if settings.plan != AUTO:
        return
    params = dict(settings.params)
    if "warmup" in params:  # what is sent in most steps, not in the first ones
        params["warmup"] = 0
    compressed = replace(settings, params=params, plan=None, min_size=0, warmup_steps=0)
    plain = replace(compressed, min_size=NEVER)
    dtype = trial.most_of(sizes, dtypes)
    times = [
        [_seconds(way, size, engine, group, device, dtype) for size in SIZES]
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
    if any(size >= settings.min_size for size in sizes.values()):
        compressed = replace(compressed, min_size=settings.min_size)
        ratio = trial.ratio(compressed, plain, sizes, engine, group, device, dtype)
        if engine.rank == 0:
            _log.log(
                logging.WARNING if ratio > 1 else logging.INFO,
                "plan auto: %sthis model's gradients took %.2f times as long compressed as not",
                "nothing is compressed, for " if ratio > 1 else "", ratio,
            )  # fmt: skip
        if ratio > 1:
            settings.min_size = NEVER


def _seconds(
    settings: Settings, size: int, engine: Engine, group: dist.ProcessGroup, device: torch.device,
    dtype: torch.dtype,
) -> float:  # fmt: skip
    """Of one gradient in a bucket of several."""
    count = max(AT_LEAST, TOGETHER // size)
    step = trial.Step(settings, [[size] * count], engine, group, device, dtype)
    return min([step.seconds() for _ in range(ROUNDS)][1:]) / count
