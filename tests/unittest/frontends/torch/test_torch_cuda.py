"""Gradients on a GPU: staged in host memory, with the same bits as on the CPU.

A test device, whose copies come as late as they may, shows in what order they are awaited. What
runs on a GPU skips where there is none.
"""

import datetime
import os
import random
import threading
from collections import deque
from types import SimpleNamespace

import pytest

from harness.torch_ranks import run_ranks, torch
from hipress.compression.compiler.runtime import cuda_build
from torch_states import flat_state

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


class Event:
    def __init__(self, device):
        self.device, self.happened = device, False

    def query(self):
        for _ in range(self.device.random.randint(1, 5)):
            self.device.progress()
        return self.happened


class Stream:
    """Queue of functions; one that returns False is not done yet."""

    def __init__(self, device):
        self.device, self.queue = device, deque()

    def add(self, work):
        with self.device.lock:
            self.queue.append(work)

    def record_event(self):
        event = Event(self.device)
        self.add(lambda: setattr(event, "happened", True))
        return event

    def wait_event(self, event):
        self.add(lambda: event.happened)


class LateDevice:
    """A staging.Cuda on the CPU. Work runs when its completion is queried, and then only some of
    it, from any stream.

    Args:
        prompt: Whether copies to the device run at once, for code that reads its memory right away.
    """

    def __init__(self, seed, prompt=False):
        self.lock, self.random, self.prompt = threading.RLock(), random.Random(seed), prompt
        self.streams, self.memory, self.here = [], [], threading.local()
        self.main = self.stream()

    def stream(self):
        self.streams.append(Stream(self))
        return self.streams[-1]

    def current_stream(self):
        return getattr(self.here, "stream", self.main)

    def use(self, stream):
        device = self

        class Use:
            def __enter__(self):
                device.here.stream = stream

            def __exit__(self, *unused):
                del device.here.stream

        return Use()

    def host_memory(self, size):
        self.memory.append(torch.full((size,), 255, dtype=torch.uint8))  # NaN, as numbers
        return self.memory[-1]

    def copy(self, target, source, stream):
        stream.add(lambda: target.copy_(source) is not None)
        if self.prompt and all(target.data_ptr() != each.data_ptr() for each in self.memory):
            self.finish_work()

    def future(self):
        return torch.futures.Future()

    def progress(self):
        """Run one piece of work, of a stream that can continue."""
        with self.lock:
            for stream in self.random.sample(self.streams, len(self.streams)):
                if stream.queue and stream.queue[0]() is not False:
                    stream.queue.popleft()
                    return True
        return False

    def finish_work(self):
        while self.progress():
            pass
        assert not any(stream.queue for stream in self.streams), "a stream waits for ever"


def train_on(device, staged, steps=4, buckets=5, in_flight=3, count=50):
    """Return buckets after each step, which doubles their gradients."""
    flats = [torch.zeros(count - 5 * b) for b in range(buckets)]
    found = []
    for step in range(steps):
        fetched, done = [], []

        def synchronize(fetched=fetched, done=done):
            each = fetched.pop(device.random.randrange(len(fetched)))  # the engine has threads
            each.host(10).mul_(2)
            with staged.returning():
                each.copy_back()
                done.append(device.current_stream().record_event())

        for b, flat in enumerate(flats):
            value = 1.0 + 10 * step + b
            device.main.add(lambda flat=flat, value=value: flat.fill_(value) is not None)
            fetched.append(staged.fetch(flat))
            if len(fetched) == in_flight:
                synchronize()
        while fetched:
            synchronize()
        for event in done:  # as the futures do
            device.main.wait_event(event)
        for flat in flats:  # the optimizer reads them
            device.main.add(lambda flat=flat: found.append(flat[0].item()))
    device.finish_work()
    return found


def expected(steps=4, buckets=5):
    return [2 * (1.0 + 10 * step + b) for step in range(steps) for b in range(buckets)]


def test_copies_wait_for_each_other_and_memory_is_used_again(monkeypatch):
    from hipress.torch.executors import staging
    from hipress.torch.executors.staging import Staged

    monkeypatch.setattr(staging, "_POLL_SECONDS", 0.0)

    for seed in range(30):
        device = LateDevice(seed)
        assert train_on(device, Staged(device)) == expected(), seed
        assert len(device.memory) == 3


@pytest.mark.parametrize("forgotten", ["the bucket", "the way down", "the way up"])
def test_the_late_device_shows_what_is_not_waited_for(forgotten):
    """The late device shows missing waits: without one of three waits, some order of events gives
    other numbers."""
    from hipress.torch.executors import staging

    class Forgetful(staging.Staged):
        def fetch(self, flat):
            if forgotten == "the way up":
                for _, returned in self._free:
                    returned.happened = True
            here = self.device.main
            if forgotten == "the bucket":
                self.device.main = Stream(self.device)  # which has nothing to wait for
                self.device.streams.append(self.device.main)
            fetched = super().fetch(flat)
            self.device.main = here
            if forgotten == "the way down":
                fetched._ready = SimpleNamespace(query=lambda: True)
            return fetched

    def right(seed):
        device = LateDevice(seed)
        return train_on(device, Forgetful(device)) == expected()

    assert not all(right(seed) for seed in range(30))


def test_a_gpu_that_hangs_is_an_error():
    from hipress.torch.executors.staging import Staged

    device = LateDevice(0)
    device.main.add(lambda: False)
    fetched = Staged(device).fetch(torch.ones(3))
    with pytest.raises(TimeoutError, match=r"waited 0.05 s for the GPU"):
        fetched.host(0.05)


class Given(torch.nn.Module):
    """Model whose gradients are given, to the bit, whatever computes them."""

    SHAPES = {"a": (299, 41), "b": (40,), "c": (5001,), "d": (7, 3), "e": (90, 100)}

    def __init__(self):
        super().__init__()
        for name, shape in self.SHAPES.items():
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape)))

    def forward(self, gradients):
        return sum((p * g).sum() for p, g in zip(self.parameters(), gradients, strict=True))


def given(rank, step, device):
    generator = torch.Generator().manual_seed(100 * step + rank)
    shapes = Given.SHAPES.values()
    return [torch.randn(shape, generator=generator).to(device) for shape in shapes]


def bits(tensors):
    return [t.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes() for t in tensors]


def late_devices():
    """Make HiPress treat tensors in host memory as a test device's."""
    from hipress.torch.executors.engine import ProcessGroupEngine
    from hipress.torch.executors.staging import Staged

    late = Staged(LateDevice(7, prompt=True))
    ProcessGroupEngine.staging = lambda self, device: late


def synchronized(rank, where, type, dtype=torch.float32, wrapper="ddp", encode_on="host", **params):
    """Return the averaged gradients of some steps, and the residuals after them."""
    import hipress.torch

    if where == "late":
        late_devices()
    device = "cuda" if where == "cuda" else "cpu"
    model, found = Given().to(device, dtype), []
    options = {"min_size": 1000, "encode_on": encode_on}
    if wrapper == "ddp":
        options["warmup_steps"] = 1
    if wrapper == "ddp":
        # Buckets of one large gradient, of large and small ones; DDP rebuilds them.
        run = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.04)
        compression = hipress.torch.compress(run, type, **options, **params)
    else:
        run, optimizer = model, torch.optim.SGD(model.parameters(), lr=0.0)
        optimizer = hipress.torch.DistributedOptimizer(
            optimizer, model.named_parameters(), {"type": type, **params}, **options
        )
        compression = optimizer.compression
    for step in range(5):
        model.zero_grad()
        run([g.to(dtype) for g in given(rank, step, device)]).backward()
        if wrapper != "ddp":
            optimizer.step()
        found += bits(p.grad for p in model.parameters())
    state = {
        k: v for k, v in flat_state(compression.state_dict()).items() if isinstance(v, torch.Tensor)
    }
    assert state and all(not v.is_cuda for v in state.values())
    return found, sorted(state), bits(state[k] for k in sorted(state))


CASES = [
    ("onebit", torch.float32, "ddp", {}),
    ("dgc", torch.float16, "ddp", {"ratio": 0.05, "warmup": 0}),
    ("maxminef", torch.float32, "optimizer", {}),
]


def every_case(rank, where, encode_on="host"):
    found = []
    for type, dtype, wrapper, params in CASES:
        found.append(synchronized(rank, where, type, dtype, wrapper, encode_on, **params))
    return found


@pytest.mark.slow
def test_staged_gradients_and_residuals_have_the_bits_of_those_in_host_memory():
    plain, late = run_ranks(every_case, 2, "cpu"), run_ranks(every_case, 2, "late")
    assert not any(isinstance(each, str) for each in plain + late), plain + late
    assert plain == late


def test_devices_that_are_refused():
    from hipress.torch.settings import Settings, check_parameters

    def model(*devices):
        like = {"dtype": torch.float32, "numel": lambda: 10, "shape": (10,)}
        made = [SimpleNamespace(device=torch.device(d), **like) for d in devices]
        return [(f"p{i}", p) for i, p in enumerate(made)]

    settings = Settings("onebit")
    check_parameters(model("cuda:1", "cuda:1"), settings)
    with pytest.raises(ValueError, match="'p1' is on cuda:1 and 'p0' on cuda:0; all must be"):
        check_parameters(model("cuda:0", "cuda:1"), settings)
    with pytest.raises(ValueError, match="'p0' is on mps; gradients can be on cpu or cuda"):
        check_parameters(model("mps"), settings)


# On a GPU.


@gpu
def test_two_processes_on_one_gpu_over_gloo_get_the_cpus_bits():
    plain, cuda = run_ranks(every_case, 2, "cpu"), run_ranks(every_case, 2, "cuda", gpu=True)
    assert plain == cuda


def nccl(rank, check):
    import torch.distributed as dist

    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=30))
    torch.cuda.set_device(0)
    return check(rank)


def nccl_bits(rank):
    return every_case(rank, "cuda")


def nccl_device_bits(rank):
    return every_case(rank, "cuda", "device")


def nccl_plan_auto(rank, encode_on="host"):
    import hipress.torch

    model = torch.nn.parallel.DistributedDataParallel(Given().cuda())
    hipress.torch.compress(model, "onebit", plan="auto", encode_on=encode_on)
    model(given(rank, 0, "cuda")).backward()
    return bits(p.grad for p in model.module.parameters())


def no_host_synchronisation(rank, type="onebit", encode_on="host", dtype=torch.float32):
    """Train, where any call in the third step that waits for the device is an error."""
    import hipress.torch

    model = Given().to("cuda", dtype)
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.04)
    hipress.torch.compress(ddp, type, min_size=1000, encode_on=encode_on)
    steps = [[g.to(dtype) for g in given(rank, step, "cuda")] for step in range(4)]
    for step, gradients in enumerate(steps):
        torch.cuda.set_sync_debug_mode("error" if step >= 2 else "default")
        try:
            model.zero_grad()
            ddp(gradients).backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return "done"


def no_host_synchronisation_on_the_device(rank):
    for type, dtype in (("onebit", torch.float32), ("dgc", torch.float16)):
        no_host_synchronisation(rank, type, "device", dtype)
    return "done"


def scaler(rank, encode_on="host"):
    """An Inf makes the scaler skip the step, and the next step has no error."""
    import hipress.torch

    torch.manual_seed(0)
    model = torch.nn.Linear(200, 100).cuda()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    hipress.torch.compress(ddp, "onebit", min_size=1000, encode_on=encode_on)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    scales = []
    for step in range(3):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = ddp(torch.ones(4, 200, device="cuda")).float().square().mean()
        scaler.scale(loss * float("inf") if step == 1 else loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert all(p.isfinite().all() for p in model.parameters())
    return scales


def nccl_device_scaler(rank):
    return scaler(rank, "device")


def nccl_device_plan_auto(rank):
    return nccl_plan_auto(rank, "device")


def run(check):
    (found,) = run_ranks(nccl, 1, check, join=False, gpu=True)
    return found


@gpu
@pytest.mark.skipif(not cuda_build.nvcc(), reason="there is no nvcc")
def test_encoding_on_the_device_with_one_rank_on_nccl():
    from hipress.compression.compressor import Compressor
    from hipress.torch.executors.cuda.kernels import CudaKernels

    for type, *_ in CASES:
        CudaKernels().algorithm(Compressor(type).config)  # compiled before the time runs
    assert run(nccl_device_bits) == run_ranks(every_case, 1, "cpu")[0]
    assert run(no_host_synchronisation_on_the_device) == "done"
    assert run(nccl_device_scaler) == [1024.0, 512.0, 512.0]
    assert not isinstance(run(nccl_device_plan_auto), str)


@gpu
def test_one_rank_on_nccl():
    assert run(nccl_bits) == run_ranks(every_case, 1, "cpu")[0]
    assert run(no_host_synchronisation) == "done"
    assert run(scaler) == [1024.0, 512.0, 512.0]
    assert not isinstance(run(nccl_plan_auto), str)


def backend(rank, where):
    """Run an all-reduce of the "hipress" backend."""
    import torch.distributed as dist

    import hipress.torch  # noqa: F401, registers it

    if where == "late":
        late_devices()
    os.environ["HIPRESS_MIN_SIZE"] = "1000"
    dist.init_process_group("hipress", timeout=datetime.timedelta(seconds=20))
    found = []
    for step in range(6):
        values = given(rank, step, "cuda" if where == "cuda" else "cpu")[0]
        dist.all_reduce(values, op=dist.ReduceOp.AVG)
        found.append(values)
    return bits(found)


@pytest.mark.slow
def test_the_backend_stages_too():
    plain = run_ranks(backend, 2, "cpu", join=False)
    assert isinstance(plain[0], list), plain
    assert plain == run_ranks(backend, 2, "late", join=False)


@gpu
def test_the_backend_on_a_gpu():
    plain, cuda = (
        run_ranks(backend, 2, where, join=False, gpu=where == "cuda") for where in ("cpu", "cuda")
    )
    assert plain == cuda
