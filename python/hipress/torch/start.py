"""Start of a compression, before the first step: check, compare between ranks, connect."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.distributed as dist

from hipress.config import AUTO
from hipress.errors import HipressError
from hipress.torch.authentication import GroupNotes, authenticate
from hipress.torch.autotune import choice, optimizers
from hipress.torch.dtypes import of_gradient
from hipress.torch.executors.cuda import device
from hipress.torch.executors.engine import ProcessGroupEngine, engine_of
from hipress.torch.executors.staging import current, device_of
from hipress.torch.private import timeout_of
from hipress.torch.settings import Settings, agree, check_parameters

_WARNING_SECONDS = 10.0
"""Seconds until the log names the rank that this one waits for."""
_log = logging.getLogger("hipress")


def start(
    make_settings: Callable[[], Settings],
    group: dist.ProcessGroup,
    parameters: Sequence[tuple[str, torch.nn.Parameter]] = (),
    timeout: float | datetime.timedelta | None = None,
    sizes: Mapping[str, int] | None = None,
    dtypes: Mapping[str, torch.dtype] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    allow_auto_topology: bool = False,
    **same: str,
) -> tuple[Settings, ProcessGroupEngine]:
    """Connect the ranks of ``group``, which all call this together.

    Every rank raises the error of any rank's ``make_settings()``, and a ValueError if their
    parameters or settings differ. The gradients have the sizes and dtypes of the parameters, unless
    others are given. ``timeout`` is the time to wait for another rank; default: the group's. If the
    type is "auto", the caller chooses another one, and the user's ``optimizer``, if the caller has
    it, must be of one kind on all ranks. If ``allow_auto_topology``, the ranks may choose a
    topology here. ``same`` are other texts that must be the same on all ranks, by name.
    """
    if isinstance(timeout, datetime.timedelta):  # as init_process_group takes it
        timeout = timeout.total_seconds()
    can_be = timeout is None or (isinstance(timeout, (int, float)) and timeout > 0)
    wait = timeout if timeout and can_be else timeout_of(group)
    meeting = meeting_seconds(group, timeout)
    meet(dist.get_process_group_ranks(group), meeting)
    described, problem = dict(same), ""
    where = device_of([p for _, p in parameters])
    try:
        if not can_be:
            raise ValueError(f"timeout must be more than 0 seconds, not {timeout!r}")
        settings = make_settings()
        if not allow_auto_topology:
            settings.refuse_auto_topology()
        check_parameters(parameters, settings)
        if settings.encode_on == "device":
            device.check(where, group, settings)
        described.update(settings.describe())
        if settings.type == AUTO:
            described["optimizer"] = optimizers.describe(optimizer)
    except Exception as error:  # other ranks wait for this rank, so every error is reported
        problem = str(error) or repr(error)
    described["model"] = "; ".join(f"{n} {tuple(p.shape)} {p.dtype}" for n, p in parameters)
    authenticate(group, meeting)
    with current(where):
        agree(group, described, problem)
        engine = engine_of(group, wait)
        sizes = sizes or {n: p.numel() for n, p in parameters}
        dtypes = dtypes or {n: of_gradient(p) for n, p in parameters}
        shapes = {n: tuple(p.shape) for n, p in parameters}
        settings = choice.choose_settings(settings, engine, group, where, shapes, sizes, dtypes)
    return settings, engine


def meeting_seconds(group: dist.ProcessGroup, timeout: object) -> float:
    """Return the seconds to wait for other ranks of a group in :func:`meet`.

    They are ``timeout``, a number or a ``datetime.timedelta``, but at most the group's.
    :func:`start` raises the error of a ``timeout`` that is neither.
    """
    if isinstance(timeout, datetime.timedelta):
        timeout = timeout.total_seconds()
    can_be = isinstance(timeout, (int, float)) and timeout > 0
    return min(timeout, timeout_of(group)) if can_be else timeout_of(group)


def meet(ranks: Sequence[int], timeout: float) -> None:
    """Wait until all ranks are here. All of them call this together, with ranks in one order.

    Otherwise our collective operations could meet those of a rank that is not here, perhaps of its
    backward pass. Neither error would show the cause.

    Raises:
        HipressError: if a rank is not here after ``timeout`` seconds
    """
    notes = GroupNotes("start", ranks, timeout)
    notes.share("here", "")
    late = notes.late("here", _WARNING_SECONDS)
    if late and timeout > _WARNING_SECONDS:
        _log.warning("waiting for rank %d to call compress()", late[0])
        late = notes.late("here")
    if late:
        raise HipressError(
            f"waited {timeout:g} s for rank {late[0]} to call compress(), as all ranks of the "
            "group must, in the same order"
        )
