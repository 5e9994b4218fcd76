"""Elastic training: workers join and leave while the job trains.

:mod:`~hipress.elastic.membership` agrees on the processes of each view; it uses no framework and no
gradients. :mod:`~hipress.elastic.training` trains in one view after another: steps that are rolled
back or committed, state copied to new workers. Adapters for frameworks are in their own packages.
"""

from hipress.elastic.membership import (
    NO_STATE,
    Agent,
    ElasticError,
    Evicted,
    Member,
    TrainingOver,
    View,
    ViewChanged,
)

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
