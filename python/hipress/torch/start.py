"""What every front end does before the first step: check, compare between ranks, connect."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from hipress.torch import auto, device
from hipress.torch.engine import Engine
from hipress.torch.settings import Settings, agree, check_parameters
from hipress.torch.staging import current, device_of
from hipress.torch.synchronizer import group_timeout


def start(
    make_settings: Callable[[], Settings],
    group: dist.ProcessGroup,
    parameters: Sequence[tuple[str, torch.nn.Parameter]] = (),
    timeout: float | None = None,
    **same: str,
) -> tuple[Settings, Engine]:
    """Connects the ranks of ``group``, which all call this together.

    :param make_settings: may raise ValueError or TypeError, which every rank then raises
    :param parameters: whose gradients are synchronised; the same on all ranks
    :param timeout: seconds to wait for another rank; default: the group's
    :param same: other texts that must be the same on all ranks, by name
    :raises ValueError: on every rank, if any rank's parameter or setting is wrong or they differ
    """
    described, problem = dict(same), ""
    where = device_of([p for _, p in parameters])
    try:
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {timeout!r}")
        settings = make_settings()
        check_parameters(parameters, settings)
        if settings.encode_on == "device":
            device.check(where, group, settings)
        described.update(settings.describe())
    except (ValueError, TypeError) as error:
        problem = str(error)
    described["model"] = "; ".join(f"{n} {tuple(p.shape)} {p.dtype}" for n, p in parameters)
    with current(where):
        agree(group, described, problem)
        engine = Engine(group, timeout or group_timeout(group))
        auto.choose(settings, engine, group, where)
    return settings, engine
