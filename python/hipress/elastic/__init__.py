"""Elastic training: workers join and leave while the job trains.

A *view* is a numbered list of workers that train together. When a worker fails, leaves or joins,
the remaining workers agree on the next view and continue in it::

    view 4: ranks 0 1 2 --- step 70 --- step 71 --X  worker 2 dies in step 72
                                                  |
    membership: agents agree on view 5 -----------+
                                                  |
    training: roll back step 72, or copy its result
    view 5: ranks 0 1 ------------------------- step 72 --- step 73 ---

:mod:`~hipress.elastic.membership` agrees on the workers of each view. It uses no framework and no
gradients. :mod:`~hipress.elastic.training` trains in one view after another: it rolls steps back or
commits them, and copies state to new workers. Adapters for frameworks are in their own packages:
``hipress.torch.elastic``, ``hipress.tensorflow.elastic``, ``mxnet_hipress.elastic``.

docs/concepts/elastic.md explains the ideas.
"""

from hipress.elastic.membership.agent import Agent
from hipress.elastic.membership.membership_errors import (
    ElasticError,
    Evicted,
    TrainingOver,
    ViewChanged,
)
from hipress.elastic.membership.view import NO_STATE, Member, View

__all__ = [
    "NO_STATE",
    "Agent",
    "ElasticError",
    "Evicted",
    "Member",
    "TrainingOver",
    "View",
    "ViewChanged",
]
