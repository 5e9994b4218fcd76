"""What a node has of type "auto", for its front ends."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hipress.config import CompressionConfig
from hipress.secopa.auto import AutoPlan
from hipress.secopa.explanation import Explanation
from hipress.tuning.store import StoreChoice
from hipress.tuning.store_ranks import FIRST


class Known(NamedTuple):
    """A key that is initialised."""

    name: str
    size: int
    """Elements."""
    dtype: int
    """Type flag."""
    compress: bool
    """Whether its gradients may be compressed."""


class TunedNode:
    """A node whose compression may be chosen."""

    auto: AutoPlan | StoreChoice | None = None
    """With ``plan="auto"``, or type "auto", what measures and decides."""
    sees_results = False
    """Whether the front end gives type "auto" results and times (:meth:`after`)."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = CompressionConfig()
        self.auto_keys = itertools.count(FIRST)
        """Numbers of keys that type "auto" makes for itself, each once, as keys stay."""
        self.known_keys: dict[int, Known] = {}
        """Those whose gradients are pushed."""

    def is_no_gradient(self, key: int) -> None:
        """Notes that a key is not one whose gradients are pushed in each step."""
        del self.known_keys[key]

    def allows_feedback(self) -> bool | None:
        """Whether all optimizers bear error feedback as they are; None: it is not known. For type
        "auto", of which front ends know more."""
        return None

    def compresses_shape(self, shape: Sequence[int]) -> bool:
        """Whether a gradient of this shape may be compressed: with type "auto" one of a bias or a
        normalisation is not."""
        return len(shape) > 1 or not isinstance(self.auto, StoreChoice)

    def explain(self) -> Explanation:
        """Why gradients are synchronised as they are, and what was measured; to be printed."""
        if isinstance(self.auto, StoreChoice) and self.auto.watching:
            return self.auto.explanation
        return Explanation(f"{self._asked}, as was asked for")

    @property
    def is_settled(self) -> bool:
        """Whether no step tries another way any more; False before the first gradient."""
        watched = isinstance(self.auto, StoreChoice) and self.auto.watching
        return not watched or self.auto.is_settled

    def look(self, keys: Sequence[int], gradients: Sequence[np.ndarray]) -> None:
        """Shows type "auto" gradients that are about to be pushed, after :meth:`before_push`."""
        if self.looks:
            self.auto.look(keys, gradients)

    @property
    def looks(self) -> bool:
        """Whether type "auto" wants to see the gradients of this step."""
        return isinstance(self.auto, StoreChoice) and self.auto.looks

    def after(self, keys: Sequence[int], results: Sequence[np.ndarray], seconds: float) -> None:
        """Shows type "auto" the sums of a step, and the seconds that they took; for front ends
        that set :attr:`sees_results`."""
        if isinstance(self.auto, StoreChoice):
            self.auto.after(keys, results, seconds)
