"""DiLoCo in one process, for the scripts of tests of MXNet and Keras."""

import numpy as np

from hipress import Compressor

H = 4
"""Inner steps in an outer step."""


class Reference:
    """DiLoCo of several networks in one process, as its papers define it.

    The framework makes inner steps; NumPy computes everything else.

    Args:
        nets: A network for each worker.
        step: Makes an inner step: ``step(net, worker, step)``.
        turns: Pairs of a step, modulo H, and the indices of weights that are sent after it.
        delay: Steps from sending weights to using their mean.
        alpha: Share of a worker's own weights that it keeps when it uses a mean.
        rate: Learning rate of the outer optimizer, Nesterov's momentum.
        factor: Momentum of the outer optimizer.
        kind: Codec of weights with ``min_size`` elements or more.
        early: Steps before the first outer step after which weights are averaged.
        weights: Returns copies of a network's trained arrays.
        assign: Sets one of them: ``assign(net, index, values)``.
    """

    def __init__(
        self,
        nets,
        step,
        turns,
        delay,
        alpha,
        rate,
        factor,
        kind,
        min_size,
        early=(),
        *,
        weights,
        assign,
    ):
        self.weights, self.assign = weights, assign
        self.early, self.first = early, max(early, default=0)
        self.nets, self.step, self.turns, self.delay = nets, step, turns, delay
        self.outer, self.pending = self.weights(nets[0]), {}
        self.momentum = [np.zeros_like(w) for w in self.outer]
        self.alpha, self.rate, self.factor = map(np.float32, (alpha, rate, factor))
        kinds = [kind if w.size >= min_size else "none" for w in self.outer]
        self.codecs = [[Compressor(kind) for kind in kinds] for _ in nets]
        self.shared = [codec.for_sum_of(len(nets)) for codec in self.codecs[0]]

    def advance(self, step):
        for worker, net in enumerate(self.nets):
            self.step(net, worker, step)
        if step in self.early:
            self.average()
        if step <= self.first:
            return
        self.take(step)
        for turn, numbers in self.turns:
            if (step - self.first) % H == turn:
                self.pending[step + self.delay] = {i: self.mean(i) for i in numbers}
        if not self.delay:
            self.take(step)

    def average(self):
        for i in range(len(self.outer)):
            self.outer[i] = self.outer[i] - self.mean(i)
            for net in self.nets:
                self.assign(net, i, self.outer[i])

    def mean(self, i):
        pushed = [self.outer[i] - self.weights(net)[i] for net in self.nets]
        payloads = [codecs[i].encode(p.reshape(-1)) for codecs, p in zip(self.codecs, pushed)]
        total = self.codecs[0][i].decode_sum(payloads, pushed[0].size)
        total = self.shared[i].decode(self.shared[i].encode(total), pushed[0].shape)
        return total / np.float32(len(self.nets))

    def take(self, step):
        for i, mean in self.pending.pop(step, {}).items():
            self.momentum[i] = self.factor * self.momentum[i] + mean
            self.outer[i] = self.outer[i] - self.rate * (mean + self.factor * self.momentum[i])
            for net in self.nets:
                self.assign(
                    net, i, self.outer[i] + self.alpha * (self.weights(net)[i] - self.outer[i])
                )
