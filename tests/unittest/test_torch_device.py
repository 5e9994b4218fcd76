"""Buckets on their device: CompLL's CUDA kernels, emulated, on tensors in host memory."""

import contextlib
from types import SimpleNamespace

import pytest

from test_torch_cuda import Given, bits, given
from torch_cluster import run_ranks, torch

MIN_SIZE = 1000


class Prompt:
    """hipress.torch.staging.Cuda on the CPU, where everything is done at once."""

    def stream(self):
        return SimpleNamespace(record_event=self.event, wait_event=lambda event: None)

    current_stream = stream

    def event(self):
        return SimpleNamespace(query=lambda: True)

    def use(self, stream):
        return contextlib.nullcontext()

    def host_memory(self, size):
        return torch.empty(size, dtype=torch.uint8)

    def copy(self, target, source, stream):
        target.copy_(source)

    def upload(self, data):
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)

    def run(self, stream, work, tensors):
        work()

    def future(self):
        return torch.futures.Future()


def play_the_gpu():
    """Lets HiPress take the CPU for a device."""
    from hipress.torch import device
    from hipress.torch.cuda_ops import CudaKernels

    kernels = CudaKernels(emulate=True)
    device.DEVICES["cpu"] = lambda where: device.Device(where, Prompt(), kernels)


def synchronized(rank, where, type, dtype=torch.float32, steps=4, **options):
    """The averaged gradients of some steps, and the residuals after them."""
    import hipress.torch

    model, found = Given().to(dtype), []
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.04)
    compression = hipress.torch.compress(
        ddp, type, min_size=MIN_SIZE, encode_on=where, timeout=20, **options
    )
    for step in range(steps):
        model.zero_grad()
        ddp([g.to(dtype) for g in given(rank, step, "cpu")]).backward()
        found.append(bits(p.grad for p in model.parameters()))
    state = compression.state_dict()
    for key, value in state.items():
        if isinstance(value, torch.Tensor):
            state[key] = bits([value])
    return found, state


HALF = {"dtype": torch.float16}
CASES = [
    ("onebit", {"topology": "tree"}),
    ("onebit", HALF),
    ("tbq", {"topology": "ring", "threshold": 0.3}),
    ("maxmin", {"warmup_steps": 1}),
    ("maxmin", {"topology": "tree", "dtype": torch.bfloat16}),
    ("maxminef", {"topology": "ring"}),
    ("dgc", {"ratio": 0.05, "topology": "ring"}),
    ("dgc", {"ratio": 0.05, "warmup_steps": 2, **HALF}),
    ("topk", {"ratio": 0.02}),
    ("terngrad", {"topology": "butterfly"}),
    ("2bit", {"topology": "star"}),
    ("none", {"topology": "ring", **HALF}),
    ("onebit", {"topology": "hierarchical", "devices_per_host": 2}),
]


def on_host_and_device(rank):
    play_the_gpu()
    return [
        (type, synchronized(rank, "host", type, **o), synchronized(rank, "device", type, **o))
        for type, o in CASES
    ]


@pytest.mark.parametrize("world_size", [2, 4])
def test_the_device_gives_the_hosts_bits(world_size):
    for found in run_ranks(on_host_and_device, world_size, timeout=300):
        assert not isinstance(found, str), found
        for (type, host, device), (_, options) in zip(found, CASES):
            assert host[0] == device[0], (type, options)
            assert host[1] == device[1], (type, options)
