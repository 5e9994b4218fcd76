"""Ends while a callback of the last step still runs."""

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import hipress.torch
from hipress.secopa.choice import Measured
from hipress.torch.tuning import choice, following

# Uncompressed, without a trial: then all that is on its way is Gloo's.
choice.Meter.measure = lambda meter: [
    Measured(float(i > 0), meter.elements) for i, _ in enumerate(meter._ways)
]
timer = following.Following.timer


def late(self):  # as a thread that does not get a processor
    ended = timer(self)
    return lambda: (time.sleep(0.5), ended())


following.Following.timer = late


class Slow:
    def __del__(self, sleep=time.sleep):  # modules go after what was registered for the exit
        sleep(1)


dist.init_process_group("gloo")
slow, model = Slow(), DistributedDataParallel(torch.nn.Linear(200, 200))
compression = hipress.torch.compress(model, min_size=1000)
model(torch.ones(2, 200)).sum().backward()
print(compression.explain().sentence, flush=True)
