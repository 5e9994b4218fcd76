"""One rank's part in synchronising a bucket whose matrices go by their factors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from hipress._lib import check_call, lib
from hipress.torch.beside import Joined
from hipress.torch.layout import Exchange, Gradient
from hipress.torch.low_rank import Factors
from hipress.torch.plan import Plan, all_finite
from hipress.torch.tasks import FLAGS, floats

if TYPE_CHECKING:
    from hipress.torch.engine import Engine


class LowRankPlan:
    """One rank's part in synchronising one bucket in host memory: its matrices by their factors,
    and small ones uncompressed beside P.

    :param factors: of the matrices
    :param large: where the matrices lie in the bucket
    :param small: gradients that go as float32 beside P
    :param dtype: of the bucket
    :param plan: makes the plan that averages so many float32 numbers, by name and count
    """

    def __init__(
        self,
        factors: Sequence[Factors],
        large: Sequence[Gradient],
        small: Sequence[Gradient],
        dtype: torch.dtype,
        plan: Callable[[str, int], Plan],
    ) -> None:
        self._factors, self._dtype = list(factors), dtype
        self._large, self._small = list(large), list(small)
        sizes = [each.sizes for each in factors]
        alone = sum(gradient.count for gradient in small)
        self._p = floats(sum(p for p, _ in sizes) + alone)
        self._q = floats(sum(q for _, q in sizes))
        factors_p = self._p[: len(self._p) - alone].split([p for p, _ in sizes])
        self._views = list(zip(factors_p, self._q.split([q for _, q in sizes])))
        self._plans = plan("P", len(self._p)), plan("Q", len(self._q))
        self._joined = Joined(small, self._p[len(self._p) - alone :], dtype)
        self._matrices = np.array([ctypes.addressof(f.matrix) for f in factors], np.uint64)

    @property
    def exchanges(self) -> list[Exchange]:
        """Of P and the small gradients, then of Q."""
        return [exchange for plan in self._plans for exchange in plan.exchanges]

    def run(self, engine: Engine, flat: torch.Tensor, tag: int, what: str) -> None:
        """Replaces the gradients in ``flat`` by their means (or sums); all by NaN if there is a NaN
        or Inf in any rank's, or in a result. Then the next step is as if this one had not been.

        :raises HipressError: as Engine.run()
        """
        if self._reduce(engine, flat, tag, what):
            self._call(lib.HipressLowRankKeep)
            for factors in self._factors:
                factors.step += 1
            return
        for gradient in (*self._large, *self._small):
            flat[gradient.offset : gradient.offset + gradient.count].fill_(float("nan"))

    def _reduce(self, engine: Engine, flat: torch.Tensor, tag: int, what: str) -> bool:
        """Whether all is finite. What is looked at has the same bits on all ranks."""
        p_plan, q_plan = self._plans
        self._prepare(flat)
        self._call(lib.HipressLowRankProject)
        self._joined.take(flat)
        engine.run(p_plan, self._p, tag, what)
        if not all_finite(self._p):
            return False
        self._call(lib.HipressLowRankBack)
        engine.run(q_plan, self._q, tag + len(p_plan.exchanges), what)
        if not all_finite(self._q):
            return False
        self._call(lib.HipressLowRankExpand)
        self._joined.give(flat)
        if flat.dtype != torch.float16:
            return True
        # A gradient and a residual that fit can make a result that does not.
        every = (*self._large, *self._small)
        return all(all_finite(flat[g.offset : g.offset + g.count]) for g in every)

    def _prepare(self, flat: torch.Tensor) -> None:
        for factors, gradient, (p, q) in zip(self._factors, self._large, self._views):
            matrix = factors.matrix
            matrix.gradient = flat.data_ptr() + gradient.offset * flat.element_size()
            matrix.dtype = FLAGS[self._dtype]
            matrix.p, matrix.q = p.data_ptr(), q.data_ptr()

    def _call(self, function: Callable[[int, int], int]) -> None:
        check_call(function(self._matrices.ctypes.data, len(self._matrices)), RuntimeError)
