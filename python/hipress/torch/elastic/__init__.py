"""Training that continues when a worker dies, leaves or joins, with compressed gradients.

>>> import hipress.torch.elastic as elastic
>>> state = elastic.State(model, optimizer, "onebit", scheduler=scheduler)
>>> @elastic.run
... def train(state):
...     while state.step < 1000:
...         inputs, targets = batch(state.step, state.rank, state.size)
...         state.optimizer.zero_grad()
...         loss(model(inputs), targets).backward()
...         state.optimizer.step()
...         scheduler.step()
...         state.commit()
>>> train(state)

Start it with ``hipress launch --elastic -n 4 python train.py``, or with torchrun, which restarts
all workers together when one dies. The workers of the present *view* make a process group and a
job of the native engine. When a worker fails, the other workers agree on the next view and roll
back the residuals of the step that failed. Then ``train`` is called again for the same step. A
process that joins copies weights, optimizer and step from another one.

With ``State(..., sync_every=H, outer_optimizer=outer)`` the workers synchronize weights every H
steps (:class:`hipress.torch.DiLoCo`), and views change only then.
"""

# What belongs here: PyTorch's part of `hipress.elastic.training`. `adapter` makes and destroys
# process groups, and copies a state over them. `compression` has the synchronizers of one view, and
# `torchrun` reads torchrun's environment.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hipress.elastic.training import view_loop
from hipress.torch.elastic.adapter import TorchAdapter
from hipress.torch.elastic.state import State

__all__ = ["State", "run"]


def run(train: Callable[..., Any]) -> Callable[..., Any]:
    """Make a training function continue when workers die, leave or join.

    Args:
        train: Function whose first argument is a :class:`State`. It is called again in each view
            and continues from ``state.step``. Its other values must depend only on that,
            ``state.rank`` and ``state.size``.

    Returns:
        A function with the same arguments and result.

    Raises:
        hipress.elastic.ElasticError: if too few workers are left for too long, or this process has
            taken part in elastic training before
    """
    return view_loop.run(train, TorchAdapter)
