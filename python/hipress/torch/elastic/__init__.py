"""Training that goes on when a worker dies, leaves or joins, with compressed gradients.

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

Started by ``hipress launch --elastic -n 4 python train.py``, or by torchrun, which restarts all
workers together when one dies. The workers of the present *view* make a process group and a job of
the native engine. When one of them is gone, the others agree on the next view, put back what error
feedback remembers of the step that failed, and ``train`` is called again for that same step. A
process that joins copies weights, optimizer and step from another one.

With ``State(..., sync_every=H, outer_optimizer=outer)`` the workers synchronise weights every H
steps (:class:`hipress.torch.DiLoCo`), and views change only then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hipress.elastic.training import loop
from hipress.torch.elastic.session import Session
from hipress.torch.elastic.state import State

__all__ = ["State", "run"]


def run(train: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a training function go on when workers die, leave or join.

    :param train: takes a :class:`State` first. It is called anew in each view, and goes on from
        ``state.step``: what it has of its own is to depend on that, ``state.rank`` and
        ``state.size``
    :returns: a function with the same arguments and result
    :raises hipress.elastic.ElasticError: if too few workers are left, for too long, or this process
        has taken part in such training before
    """
    return loop.run(train, Session)
