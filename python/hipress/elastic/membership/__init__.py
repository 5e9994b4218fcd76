"""Elastic membership: the processes of a job in each epoch, while processes die and join.

>>> agent = Agent.from_environment(on_change=lambda view: engine.abort())
>>> view = agent.join(timeout=60)
"""

from hipress.elastic.membership.agent import Agent
from hipress.elastic.membership.errors import ElasticError, Evicted, TrainingOver, ViewChanged
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
