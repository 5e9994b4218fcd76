"""PowerSGD: gradients as products of two thin factors, which can be summed as they are.

A gradient M of [rows, cols] goes as P Qᵀ, with P of [rows, rank] and Q of [cols, rank] (Vogels,
Karimireddy, Jaggi, NeurIPS 2019, arXiv:1905.13727, algorithm 2, one power iteration a step from the
Q of the step before). Unlike a codec's payloads factors are linear in the gradient, so they are
averaged, not encoded anew by who merges them, and every topology gives the same result but for
rounding. What is summed are (rows + cols)·rank numbers instead of rows·cols: of 4096 x 4096 at rank
4 a 512th.

    project   M = gradient + residual; P = M Q₀         then P is averaged, small gradients with it
    back      P made orthonormal; Q = Mᵀ P              then Q is averaged
    expand    gradient = P Qᵀ; residual = M - P Q'ᵀ with this rank's own Q', so that it is what
              this rank did not send, not how it differs from others; Q₀ = Q made orthonormal

Each is one pass over memory, in the library (``src/operator/contrib/low_rank.h``), over parts of a
matrix in several threads; the rounding of each sum is fixed, so all ranks end with the same bits on
any mixture of CPUs.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from hipress.config import LOW_RANK
from hipress.native.library import abi, check_call, lib
from hipress.torch.dtypes import floats

MIN_GAIN = 2
"""The ratio of a matrix to its factors, in elements, below which it goes uncompressed."""

START = "start_q"
"""The state that has no number for each element: the Q from which all ranks begin the next step."""

_PAD = 32  # LowRankShape::kPad
_FLOATS = ("last", "next", "last_p", "last_q", START, "own_q")


def pays(shape: Sequence[int], rank: int) -> bool:
    """Checks whether factors of such a gradient are short enough, its rows not mostly padding."""
    if len(shape) < 2 or not shape[0]:
        return False
    rows, cols = _matrix(shape)
    return MIN_GAIN * rank * (rows + cols) <= rows * cols and _padded(cols) <= 2 * cols


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    return shape[0], math.prod(shape[1:])


def _padded(count: int) -> int:
    return (count + _PAD - 1) // _PAD * _PAD


class _Before:
    """What a transaction's first step changes, as it was: where the library exchanges two arrays,
    the address of the one that held the state."""

    def __init__(self, transaction: int, factors: Factors) -> None:
        self.transaction, self.step = transaction, factors.step
        self.last, self.last_q = factors.matrix.last, factors.matrix.last_q
        self.values = {name: factors._memory[name].clone() for name in ("last_p", START)}


class Factors:
    """A rank's state of one gradient, with the state_dict() of a Compressor.

    The residual, float32[rows * cols], and ``start_q``, float32[rank, cols padded], which all ranks
    have. It takes 8 bytes for each element: M is not written over the one before, so that a step
    with a NaN leaves nothing behind.

    :param shape: of the gradient; its first dimension are the rows, all others the columns
    """

    state_names = ("residual",)  # of each element of the gradient

    def __init__(self, shape: Sequence[int], rank: int) -> None:
        self.rows, self.cols = _matrix(shape)
        self.rank, self.step, self.stream = rank, 0, 0
        tall, wide = (rank, _padded(self.rows)), (rank, _padded(self.cols))
        whole = (self.rows, _padded(self.cols))
        shapes = dict(zip(_FLOATS, (whole, whole, tall, wide, wide, wide)))
        self._memory = {name: floats(*size) for name, size in shapes.items()}
        self.matrix = abi.HipressLowRank(self.rows, self.cols, rank)
        for name, values in self._memory.items():
            setattr(self.matrix, name, values.data_ptr())
        self._at = {values.data_ptr(): values for values in self._memory.values()}
        self._before: _Before | None = None
        self._start()

    @property
    def sizes(self) -> tuple[int, int]:
        """Elements of P and Q, padded."""
        return self._memory["last_p"].numel(), self._memory[START].numel()

    def state_dict(self) -> dict[str, Any]:
        residual = np.empty(self.rows * self.cols, np.float32)
        matrix = ctypes.byref(self.matrix)
        check_call(lib.HipressLowRankResidual(matrix, residual.ctypes.data), RuntimeError)
        start = self._memory[START].numpy().copy()
        states = {"residual": residual, START: start}
        config = f"type={LOW_RANK},rank={self.rank}"
        about = {"type": LOW_RANK, "config": config, "step": self.step, "stream": self.stream}
        return {**about, "states": states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """:raises ValueError: if it is not such a state"""
        count, states = self.rows * self.cols, state["states"]
        residual = torch.as_tensor(states.get("residual", floats(count)), device="cpu")
        if residual.numel() != count:
            raise ValueError(
                f"the state has a residual of {residual.numel()} elements for a gradient of {count}"
            )
        # The library exchanges `last` and `next`, and `last_q` and `own_q`.
        last = self._at[self.matrix.last]
        last[:, : self.cols] = residual.view(self.rows, self.cols)
        self._memory["last_p"].zero_()
        start, known = self._memory[START], states.get(START)
        if known is not None and tuple(known.shape) == start.shape:
            # To the bit, so not made orthonormal again.
            start.copy_(torch.as_tensor(known, device="cpu"))
        else:  # of another rank it is none for this one
            start.zero_()
            self._start()
        self.step, self.stream = state["step"], state["stream"]

    def save(self, transaction: int) -> None:
        """Saves, before the first step of a transaction, what :meth:`roll_back` puts back; does
        nothing if it is 0. No step of the matrix may be under way.

        It copies factors only: a step writes M beside the one before, where it stays until the
        next step, which is another transaction's.

        :raises ValueError: in a second step of one transaction
        """
        if not transaction:
            return
        before = self._before
        if before and before.transaction == transaction and self.matrix.last != before.last:
            raise ValueError(
                "a matrix of low rank has two steps in one transaction: begin one for each step"
            )
        self._before = _Before(transaction, self)
        self._at[self.matrix.own_q][0, 0] = math.nan  # until the step has made its Q

    def commit(self, transaction: int) -> None:
        """Ends a transaction's step that other ranks have completed: if this rank has sent its Q,
        and did not get the sum, what it did not send becomes the residual. The next step must not
        begin with this ``start_q``, which is the last step's then."""
        before, matrix = self._before, self.matrix
        if before is None or before.transaction < transaction:
            return
        sent = not math.isnan(self._at[matrix.own_q][0, 0])
        if sent and matrix.last == before.last:
            matrix.last, matrix.next = matrix.next, matrix.last
            matrix.last_q, matrix.own_q = matrix.own_q, matrix.last_q
            p = self._memory["last_p"]
            ctypes.memmove(p.data_ptr(), matrix.p, p.numel() * p.element_size())
            self.step = before.step + 1
        self._before = None

    def roll_back(self, transaction: int) -> None:
        """Puts the state back, bit for bit, to what it was before this transaction, or a later
        one."""
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
