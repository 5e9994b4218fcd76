"""Buckets on their device: CompLL's CUDA kernels, emulated, on tensors in host memory, over Gloo.

What needs a GPU is in test_torch_cuda.py.
"""

import contextlib
import re
from types import SimpleNamespace

import pytest

import cuda_emulation
from harness.torch_ranks import returned, run_ranks, torch
from test_torch_cuda import Given, LateDevice, bits, given
from torch_states import flat_state

MIN_SIZE = 1000


class Prompt:
    """A hipress.torch.executors.staging.Cuda on the CPU, where all work completes at once."""

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

    def empty(self, count, dtype):
        return torch.empty(count, dtype=dtype)

    def upload(self, data):
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)

    def run(self, stream, work, tensors):
        work()

    def future(self):
        return torch.futures.Future()


def on_the_cpu(cuda=None):
    """Return a device whose kernels are emulated."""
    from hipress.torch.executors.cuda.device import Device

    return Device(torch.device("cpu"), cuda or Prompt(), cuda_emulation.kernels())


def play_the_gpu():
    """Let HiPress treat the CPU as a device, for encode_on="device"."""
    from hipress.torch.executors.cuda import device

    device.DEVICES["cpu"] = lambda where: on_the_cpu()


class Job:
    """Model in training whose gradients are given."""

    def __init__(self, where, type, dtype=torch.float32, optimizer=False, **options):
        import hipress.torch

        self.model, self.dtype, self.optimizer = Given().to(dtype), dtype, None
        options = {"min_size": MIN_SIZE, "encode_on": where, "timeout": 20, **options}
        if optimizer:
            sgd = torch.optim.SGD(self.model.parameters(), lr=0.0)
            named = self.model.named_parameters()
            self.run, self.optimizer = (
                self.model,
                hipress.torch.DistributedOptimizer(sgd, named, type, **options),
            )
            self.compression = self.optimizer.compression
        else:
            # Buckets of one large gradient, of large and small ones; DDP rebuilds them.
            self.run = torch.nn.parallel.DistributedDataParallel(self.model, bucket_cap_mb=0.04)
            self.compression = hipress.torch.compress(self.run, type, **options)

    def step(self, rank, step, poison=None, passes=1):
        """Return the averaged gradients' bits. ``poison``: factor of one of this rank's
        gradients."""
        self.model.zero_grad()
        for k in range(passes):
            gradients = [g.to(self.dtype) for g in given(rank, step + 100 * k, "cpu")]
            if poison is not None:
                gradients[2][77] *= poison
            with self.run.no_sync() if k + 1 < passes else contextlib.nullcontext():
                self.run(gradients).backward()
        if self.optimizer:
            self.optimizer.step()
        return bits(p.grad for p in self.model.parameters())

    def state(self):
        found = flat_state(self.compression.state_dict())
        return {k: bits([v]) if isinstance(v, torch.Tensor) else v for k, v in found.items()}


HALF = {"dtype": torch.float16}
CASES = [
    ("onebit", {"topology": "tree"}),
    ("onebit", HALF),
    ("tbq", {"topology": "ring", "threshold": 0.3}),
    ("maxmin", {"warmup_steps": 1}),
    ("maxmin", {"topology": "tree", "dtype": torch.bfloat16}),
    ("maxminef", {"topology": "ring"}),
    ("dgc", {"ratio": 0.05, "topology": "ring"}),
    ("dgc", {"ratio": 0.05, "warmup_steps": 1, **HALF}),
    ("dgc", {"ratio": 0.05, "warmup_steps": 2, "warmup": 2}),
    ("topk", {"ratio": 0.02}),
    ("terngrad", {"topology": "butterfly"}),
    ("none", {"topology": "ring", **HALF}),
    ("onebit", {"topology": "hierarchical", "devices_per_host": 2}),
    ("onebit", {"optimizer": True}),
    ("onebit", {"shared_momentum": 0.9, "dtype": torch.bfloat16}),
]


def every_case(rank):
    from hipress.torch.executors.host import HostExecutor

    play_the_gpu()
    # Small ones by the group's all-reduce, which adds in another order than the engine.
    HostExecutor._needs_user_group = lambda self, flat: True
    found = []
    for type, options in CASES:
        for where in ("host", "device"):
            job = Job(where, type, **options)
            steps = 2 + options.get("warmup_steps", 0) + options.get("warmup", 0)
            found.append(([job.step(rank, step) for step in range(steps)], job.state()))
    return found


@pytest.fixture(scope="module", autouse=True)
def kernels():
    """Compile the kernels, unless a cache has them, before jobs with time limits start."""
    from hipress.compression.compressor import Compressor

    device = on_the_cpu()
    for type in sorted({type for type, _ in CASES} - {"none"}):
        device.kernels.algorithm(Compressor(type).config)


@pytest.mark.slow
def test_the_device_gives_the_hosts_bits_and_residuals():
    """GPU kernels, emulated on the host, give the bits and residuals of the host's codecs.

    Cost: The emulation runs each thread of each kernel in turn.
    """
    for found in returned(run_ranks(every_case, 3, timeout=120)):
        for (type, options), host, device in zip(CASES, found[::2], found[1::2]):
            assert host[0] == device[0], (type, options)
            assert host[1] == device[1], (type, options)
            assert len(host[1]) > 5


def other_modes(rank):
    play_the_gpu()
    return [overflows(rank), accumulates(rank), moves(rank), refuses(rank)]


def overflows(rank):
    """Train with a NaN of rank 1 in the first step, then an Inf of rank 0."""
    found = []
    for type in ("onebit", "dgc", "maxmin"):
        host, device = Job("host", type), Job("device", type)
        for step, culprit in enumerate([1, None, 0, None]):
            poison = float("nan" if culprit else "inf") if culprit == rank else None
            one, two = host.step(rank, step, poison), device.step(rank, step, poison)
            assert host.state() == device.state(), (type, step)
            if culprit is None:
                assert one == two, (type, step)
            for name, p in device.model.named_parameters():
                large = p.numel() >= MIN_SIZE and name in "ce"
                assert p.grad.isnan().all() if culprit is not None and large else True, name
            found += two
    return found


def accumulates(rank):
    one, two = (Job(where, "onebit").step(rank, 0, passes=3) for where in ("host", "device"))
    assert one == two
    return one


def moves(rank):
    """Load states from the host to the device and back, and from another codec's residuals."""
    jobs = [Job(where, "dgc", ratio=0.05) for where in ("host", "device", "host")]
    kept = Job("host", "dgc", ratio=0.05)
    for step, job in enumerate(jobs):
        assert job.step(rank, step) == kept.step(rank, step)
        if step < 2:
            jobs[step + 1].compression.load_state_dict(job.compression.state_dict())
    assert jobs[2].state() == kept.state()
    saved = everyones(kept.compression.state_dict())
    for type in ("onebit", "maxmin"):
        two = [Job(where, type) for where in ("host", "device")]
        for job in two:
            job.compression.load_state_dict(saved)
        for step in range(3, 5):
            assert two[0].step(rank, step) == two[1].step(rank, step), type
            assert two[0].state() == two[1].state(), type
    return jobs[2].step(rank, 3)


def everyones(state):
    found = [None, None]
    torch.distributed.all_gather_object(found, state)
    return {key: value for each in found for key, value in each.items()}


def refuses(rank):
    """Damage rank 1's payloads, of which rank 0 makes the sums, in transit."""
    from hipress.torch.executors.cuda.cuda_program import CudaProgram

    job = Job("device", "onebit")
    job.step(rank, 0)
    if rank == 1:
        send = CudaProgram._raise_refused

        def damage(self, statuses):
            send(self, statuses)
            for message in self.exchanges[0].send.values():
                message.payload(0)[:8] = 0x3F  # two means above 0

        CudaProgram._raise_refused = damage
    found = []
    for attempt in (lambda: job.step(rank, 1), job.compression.poll):
        try:
            attempt()
            found.append("no error")
        except RuntimeError as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


@pytest.mark.slow
def test_overflow_accumulation_checkpoints_and_refused_payloads():
    one, two = returned(run_ranks(other_modes, 2, timeout=120))
    assert one[:3] == two[:3]
    refused = r"HipressError: bucket \d \(.*\): a payload of [ace] was refused: it .*two means must"
    assert re.search(refused, one[3][0]), one[3]
    assert "rank 0 refused a payload" in two[3][0], two[3]
    assert one[3][0] == one[3][1] and two[3][0] == two[3][1]


def misuse(rank):
    found = []
    for where in ("gpu", "device", "device" if rank else "host"):
        try:
            Job(where, "onebit")
            found.append("no error")
        except ValueError as error:
            found.append(str(error))
    play_the_gpu()
    from hipress.compression.compiler.runtime import cuda_build
    from hipress.torch.executors.cuda import device

    kernels = SimpleNamespace(algorithm=lambda config: cuda_build.build(None))
    device.DEVICES["cpu"] = lambda where: SimpleNamespace(kernels=kernels)
    cuda_build.nvcc = lambda: None
    try:
        Job("device", "onebit")
    except ValueError as error:
        found.append(str(error))
    return found


@pytest.mark.slow
def test_misuse_is_one_sentence():
    for rank, found in enumerate(returned(run_ranks(misuse, 2))):
        cpu = "encode_on='device' is for gradients on a GPU, and these are on cpu: leave it 'host'"
        assert found[0].endswith("encode_on must be 'host' or 'device', not 'gpu'")
        assert found[1].endswith(cpu)
        assert found[2] == ("" if rank else "rank 1: ") + cpu
        assert "encode_on='device' is not possible here: there is no CUDA compiler" in found[3]


class Late(LateDevice):
    """Device work that completes only when its completion is queried."""

    def run(self, stream, work, tensors):
        stream.add(lambda: work() is None)

    def upload(self, data):
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def alone(device, **counts):
    """Create a bucket's plan on one rank, of gradients by name."""
    from hipress.torch.executors.cuda.cuda_program import CudaProgram
    from hipress.torch.gradient import Gradient
    from hipress.torch.settings import Settings
    from hipress.torch.state.error_feedback import Codecs, ErrorFeedback, keep_on

    codecs = Codecs("onebit", {})
    states, gradients, at = ErrorFeedback(codecs, 0, 1), [], 0
    keep_on(device.device, states)
    for name, count in counts.items():
        gradients.append(Gradient(name, at, count))
        at += count
    graphs = [Settings("onebit").graph(count, 1, 0) for count in counts.values()]
    return CudaProgram(device, None, gradients, graphs, 0, 1, torch.float32, states, 7, codecs)


def test_small_gradients_are_one_launch():
    device = on_the_cpu()
    plan = alone(device, a=500, b=300, c=70_000, d=100)
    library = next(iter(plan._readers.values()))[1].library
    for _ in range(2):
        before = library.launches
        plan.run(torch.randn(70_900))
        # a, b and d together are encoded and decoded, each one's sum is made and encoded; c alone
        # takes two launches to encode.
        assert library.launches - before == (1 + 1) + 3 * (1 + 1) + (2 + 1 + 2 + 1)


def train_late(seed, forgotten=""):
    """Return buckets after each step, and reports about them, on one rank."""
    late = Late(seed)
    device, flats, plans = on_the_cpu(late), [], []
    for b, count in enumerate([150, 90, 300]):
        flats.append(torch.zeros(count))
        plans.append(alone(device, **{f"g{b}": count}))
    slot, found, said = next(iter(plans[1]._layout.slots.values())), [], []
    compute, steps = plans[1].stages[0], []

    def damage(flat):
        steps.append(0)
        if len(steps) == 2:
            slot.message.payload(slot.index)[:8].fill_(0x3F)  # two means above 0

    compute.insert(1, damage)
    if forgotten == "the bucket":
        device.side.wait_event = lambda event: None
    record = device.side.record_event
    if forgotten == "the report":
        device.side.record_event = lambda: [record(), SimpleNamespace(query=lambda: True)][1]
    for step in range(3):
        for b, (flat, plan) in enumerate(zip(flats, plans)):
            generator = torch.Generator().manual_seed(9 * step + b)
            values = torch.randn(flat.numel(), generator=generator)
            late.main.add(lambda flat=flat, values=values: flat.copy_(values) is not None)
            said.append(device.poll())
            device.enqueue(flat, lambda plan=plan, flat=flat: plan.run(flat))
            done = record()
            device.report(plan.numbers, plan.problem)
            if forgotten != "the result":
                late.main.wait_event(done)  # as the future does
        for flat in flats:
            late.main.add(lambda flat=flat: found.append(bits([flat])) is None)
    late.finish_work()
    said.append(device.poll())
    return found, [text for text in said if text]


def test_a_late_device_gives_the_same():
    expected = None
    for seed in range(6):
        found, said = train_late(seed)
        assert len(said) == 1 and "a payload of g1 was refused: it" in said[0], seed
        nan = torch.frombuffer(bytearray(found[4][0]), dtype=torch.float32).isnan()
        assert nan.all() and (expected or found) == found, seed
        expected = found


@pytest.mark.parametrize("forgotten", ["the bucket", "the result", "the report"])
def test_the_late_device_shows_what_is_not_waited_for(forgotten):
    """The late device shows missing waits: without one of three waits, some order of events gives
    another result."""
    expected = train_late(0)
    assert any(train_late(seed, forgotten) != expected for seed in range(1, 20))
