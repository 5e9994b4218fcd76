"""Folder with the residuals of all ranks, in or next to a framework's checkpoint."""

from __future__ import annotations

import logging
import os
import shutil

import torch
import torch.distributed as dist
from torch.distributed import checkpoint

from hipress.base import files
from hipress.torch.authentication import authenticate
from hipress.torch.private import device_of
from hipress.torch.state.checkpoint import is_complete, load_checkpoint
from hipress.torch.synchronizer import Synchronizer

_log = logging.getLogger("hipress")


def save_folder(compression: Synchronizer, folder: str) -> None:
    """Save the state of all ranks, which call this together. The folder is replaced at the end."""
    partial, first = f"{folder}.partial", dist.get_rank() == 0
    if first:  # before any rank writes: all wait for the first rank's plan
        shutil.rmtree(partial, ignore_errors=True)
    authenticate()  # to plan a checkpoint, PyTorch's ranks send each other pickles
    try:
        checkpoint.save({"hipress": compression}, checkpoint_id=partial)
        if first:
            _replace_folder(partial, folder)
    except BaseException:
        if first:
            shutil.rmtree(partial, ignore_errors=True)
        raise


def load_folder(compression: Synchronizer, folder: str) -> None:
    """Load the state if every rank can read it. Otherwise rank 0 logs a warning.

    All ranks call this together. A rank that loaded it alone would count other steps.
    """
    # If it reduces shards, or is of several groups, ranks outside one group must agree, too.
    group = getattr(compression, "group", None) or dist.group.WORLD
    everywhere = torch.tensor(int(is_complete(folder)), device=device_of(group))
    dist.all_reduce(everywhere, dist.ReduceOp.MIN, group)
    if everywhere:
        load_checkpoint(compression, folder)
    elif dist.get_rank() == 0:
        _log.warning(
            "%s is missing or was not saved to its end: training resumes without what compression "
            "had left for later steps",
            folder,
        )


def forget(compression: Synchronizer) -> None:
    """Reset a compression to before its first step.

    Then the state of a job of another size can be loaded. If there is none, no old state may
    remain.
    """
    for part in getattr(compression, "parts", [compression]):  # one for each process group
        part.replace_codec(part.settings)
        part.reshard({})
        if part.shared is not None:  # its sums belong to keys that do not exist any more
            part.shared = part.shared.renewed()
        part.step = 0


def _replace_folder(new: str, folder: str) -> None:
    """Rename the folder of a complete checkpoint. If this fails, the previous checkpoint stays."""
    old = f"{folder}.old"
    shutil.rmtree(old, ignore_errors=True)
    if os.path.isdir(folder):
        os.replace(folder, old)
    try:
        files.replace(new, folder)
    except BaseException:
        if os.path.isdir(old) and not os.path.isdir(folder):
            os.replace(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
