"""PowerSGD: gradients as products of two thin factors, which can be summed directly.

A gradient M of [rows, cols] is sent as P Qᵀ, with P of [rows, rank] and Q of [cols, rank]. The
method is algorithm 2 of Vogels, Karimireddy, Jaggi, NeurIPS 2019, arXiv:1905.13727. Each step is
one power iteration from the Q of the previous step. Unlike a codec's payloads, factors are linear
in the gradient. So they are averaged without being encoded again, and every topology gives the same
result except for rounding. The sums have (rows + cols)·rank numbers instead of rows·cols: a 512th
for 4096 x 4096 at rank 4.

    project   M = gradient + residual; P = M Q₀         then P is averaged, with small gradients
    back      P made orthonormal; Q = Mᵀ P              then Q is averaged
    expand    gradient = P Qᵀ; residual = M - P Q'ᵀ with this rank's own Q', so that it is what
              this rank did not send, not its difference to other ranks; Q₀ = Q made orthonormal

Each is one pass over memory, in the library (``src/operator/contrib/low_rank.h``), over parts of a
matrix in several threads. The rounding of each sum is fixed, so all ranks end with the same bits on
any mixture of CPUs.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from hipress.config import LOW_RANK
from hipress.native.library import abi, check_call, lib
from hipress.runtime.error_feedback import START
from hipress.torch.dtypes import floats

MIN_GAIN = 2
"""Ratio of a matrix to its factors, in elements, below which it is not compressed."""

_PAD = 32  # LowRankShape::kPad
_FLOATS = ("last", "next", "last_p", "last_q", START, "own_q")


def pays(shape: Sequence[int], rank: int) -> bool:
    """Return whether factors of such a gradient are short, and its rows not mostly padding."""
    if len(shape) < 2 or not shape[0]:
        return False
    rows, cols = _matrix(shape)
    return MIN_GAIN * rank * (rows + cols) <= rows * cols and _padded(cols) <= 2 * cols


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    return shape[0], math.prod(shape[1:])


def _padded(count: int) -> int:
    return (count + _PAD - 1) // _PAD * _PAD


class _Before(NamedTuple):
    """State from before a transaction's first step.

    Where the library exchanges two arrays, it is the address of the one that held the state.
    """

    transaction: int
    step: int
    last: int
    last_q: int
    values: dict[str, torch.Tensor]


class Factors:
    """A rank's state of one gradient, with the state_dict() of a Compressor.

    It consists of the residual, float32[rows * cols], and ``start_q``, float32[rank, cols padded],
    which is equal on all ranks. It takes 8 bytes per element, because M does not overwrite the
    previous one. So a step with a NaN changes nothing. The first dimension of the gradient's shape
    are the rows, all other ones the columns.
    """

    state_names = ("residual",)  # states with a number for each element of the gradient

    def __init__(self, shape: Sequence[int], rank: int) -> None:
        self.rows, self.cols = _matrix(shape)
        self.rank, self.step, self.stream = rank, 0, 0
        p, q = (rank, _padded(self.rows)), (rank, _padded(self.cols))
        m = (self.rows, _padded(self.cols))
        self._memory = {name: floats(*shape) for name, shape in zip(_FLOATS, (m, m, p, q, q, q))}
        self.matrix = abi.HipressLowRank(self.rows, self.cols, rank)
        for name, values in self._memory.items():
            setattr(self.matrix, name, values.data_ptr())
        self._by_address = {values.data_ptr(): values for values in self._memory.values()}
        self._before: _Before | None = None
        self._start()

    @property
    def sizes(self) -> tuple[int, int]:
        """Elements of P and Q, padded."""
        return self._memory["last_p"].numel(), self._memory[START].numel()

    def state_dict(self) -> dict[str, Any]:
        """Return the state, as a Compressor does."""
        residual = np.empty(self.rows * self.cols, np.float32)
        matrix = ctypes.byref(self.matrix)
        check_call(lib.HipressLowRankResidual(matrix, residual.ctypes.data), RuntimeError)
        start = self._memory[START].numpy().copy()
        states = {"residual": residual, START: start}
        config = f"type={LOW_RANK},rank={self.rank}"
        about = {"type": LOW_RANK, "config": config, "step": self.step, "stream": self.stream}
        return {**about, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the result of :meth:`state_dict`."""
        count, states = self.rows * self.cols, state["states"]
        residual = torch.as_tensor(states.get("residual", floats(count)), device="cpu")
        if residual.numel() != count:
            raise ValueError(
                f"the state has a residual of {residual.numel()} elements for a gradient of {count}"
            )
        # The library exchanges `last` and `next`, and `last_q` and `own_q`.
        last = self._by_address[self.matrix.last]
        last[:, : self.cols] = residual.view(self.rows, self.cols)
        self._memory["last_p"].zero_()
        start, known = self._memory[START], states.get(START)
        if known is not None and tuple(known.shape) == start.shape:
            # Restored bit for bit, so it is not made orthonormal again.
            start.copy_(torch.as_tensor(known, device="cpu"))
        else:  # a Q of another rank does not fit
            start.zero_()
            self._start()
        self.step, self.stream = state["step"], state["stream"]

    def save(self, transaction: int) -> None:
        """Save what :meth:`roll_back` restores, before the first step of a transaction.

        Do nothing if the transaction is 0. No step of the matrix may be in progress. Only factors
        are copied, because a step writes M to other memory than the previous one. That stays until
        the next step, which is another transaction's.
        """
        if not transaction:
            return
        before = self._before
        if before and before.transaction == transaction and self.matrix.last != before.last:
            raise ValueError(
                "a matrix of low rank has two steps in one transaction: begin one for each step"
            )
        values = {name: self._memory[name].clone() for name in ("last_p", START)}
        matrix = self.matrix
        self._before = _Before(transaction, self.step, matrix.last, matrix.last_q, values)
        self._by_address[matrix.own_q][0, 0] = math.nan  # until the step has made its Q

    def commit(self, transaction: int) -> None:
        """End a transaction's step that other ranks have completed.

        If this rank has sent its Q but not received the sum, what it did not send becomes the
        residual. The next step must not begin with this ``start_q``, which then is the last step's.
        """
        before, matrix = self._before, self.matrix
        if before is None or before.transaction < transaction:
            return
        sent = not math.isnan(self._by_address[matrix.own_q][0, 0])
        if sent and matrix.last == before.last:
            matrix.last, matrix.next = matrix.next, matrix.last
            matrix.last_q, matrix.own_q = matrix.own_q, matrix.last_q
            p = self._memory["last_p"]
            ctypes.memmove(p.data_ptr(), matrix.p, p.numel() * p.element_size())
            self.step = before.step + 1
        self._before = None

    def roll_back(self, transaction: int) -> None:
        """Restore the state, bit for bit, from before this transaction or a later one."""
        before, matrix = self._before, self.matrix
        if before is None or before.transaction < transaction:
            return
        if matrix.last != before.last:
            matrix.last, matrix.next = matrix.next, matrix.last
        if matrix.last_q != before.last_q:
            matrix.last_q, matrix.own_q = matrix.own_q, matrix.last_q
        for name, values in before.values.items():
            self._memory[name].copy_(values)
        self.step, self._before = before.step, None

    def _start(self) -> None:
        check_call(lib.HipressLowRankStart(ctypes.byref(self.matrix)), RuntimeError)
