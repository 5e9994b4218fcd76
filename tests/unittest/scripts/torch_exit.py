"""Ends while a callback of the last step still runs."""

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch
from hipress.autotune.measurement import Measurement
from hipress.torch.autotune import frontend, synchronizer

# Uncompressed, without a trial: then all data in transit is Gloo's.
frontend.GroupFrontend.measure = lambda self, methods: [
    Measurement(float(i > 0), self.elements) for i, _ in enumerate(methods)
]
timer = synchronizer.TunedSynchronizer.timer


def late(self):  # as a thread that does not get a processor
    ended = timer(self)
    return lambda: (time.sleep(0.5), ended())


synchronizer.TunedSynchronizer.timer = late


class Slow:
    def __del__(self, sleep=time.sleep):  # modules go after what was registered for the exit
        sleep(1)


dist.init_process_group("gloo")
slow, model = Slow(), DistributedDataParallel(torch.nn.Linear(200, 200))
compression = hipress.torch.compress(model, min_size=1000)
model(torch.ones(2, 200)).sum().backward()
print(compression.explain().sentence, flush=True)
