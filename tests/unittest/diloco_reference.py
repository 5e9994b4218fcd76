"""DiLoCo in one process, as its papers have it, for the programs of MXNet's and Keras's tests."""

#: Needs network(); weights(net), copies of a net's trained arrays; assign(net, number, values).
REFERENCE = """
import numpy as np
from hipress import Compressor

class Reference:
    # The framework makes the inner steps, by step(net, worker, step); NumPy makes all else.
    # turns: (step of a round modulo H, numbers of the weights that are sent after it)
    # early: the steps before the first round after which weights become their mean
    def __init__(self, nets, step, turns, delay, alpha, rate, factor, kind, min_size, early=()):
        self.early, self.first = early, max(early, default=0)
        self.nets, self.step, self.turns, self.delay = nets, step, turns, delay
        self.outer, self.under_way = weights(nets[0]), {}
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
                self.under_way[step + self.delay] = {i: self.mean(i) for i in numbers}
        if not self.delay:
            self.take(step)

    def average(self):
        for i in range(len(self.outer)):
            self.outer[i] = self.outer[i] - self.mean(i)
            for net in self.nets:
                assign(net, i, self.outer[i])

    def mean(self, i):
        pushed = [self.outer[i] - weights(net)[i] for net in self.nets]
        payloads = [codecs[i].encode(p.reshape(-1)) for codecs, p in zip(self.codecs, pushed)]
        total = self.codecs[0][i].decode_sum(payloads, pushed[0].size)
        total = self.shared[i].decode(self.shared[i].encode(total), pushed[0].shape)
        return total / np.float32(len(self.nets))

    def take(self, step):
        for i, mean in self.under_way.pop(step, {}).items():
            self.momentum[i] = self.factor * self.momentum[i] + mean
            self.outer[i] = self.outer[i] - self.rate * (mean + self.factor * self.momentum[i])
            for net in self.nets:
                assign(net, i, self.outer[i] + self.alpha * (weights(net)[i] - self.outer[i]))
"""
