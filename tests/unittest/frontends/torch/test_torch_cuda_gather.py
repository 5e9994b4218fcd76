"""Gathers of weights on a GPU, through host memory: order of copies, and the CPU's bits.

A test device, whose work comes as late as it may, shows what is awaited. Tests that need a GPU skip
where there is none.
"""

import datetime
from types import SimpleNamespace

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from hipress.compression.compiler.runtime import cuda_build
from test_torch_cuda import LateDevice, bits, gpu
from test_torch_device import on_the_cpu, play_the_gpu
from test_torch_fsdp_gather import gathered, network, train

ROW, RANKS = 6, 3


class LateGpu(LateDevice):
    """Test device with all functions that gathers of weights need."""

    def empty(self, count, dtype):
        return torch.full((count,), 99, dtype=torch.uint8).to(dtype)

    def host_memory(self, size):
        with torch.inference_mode(False):
            return super().host_memory(size)

    def progress(self):
        with torch.inference_mode():  # because FSDP2's tensors may be of this mode, in any thread
            return super().progress()

    def exact_host_memory(self, count, dtype):
        memory = torch.zeros(count, dtype=dtype)
        self.memory.append(memory.view(torch.uint8))
        return memory

    def run(self, stream, work, tensors):
        stream.add(lambda: [work()] != [])

    def copy(self, target, source, stream):
        stream.add(lambda: target.copy_(source) is not None)
        if self.prompt and not any(_within(target, each) for each in self.memory):
            while self.progress():
                pass


def _within(part, memory):
    return 0 <= part.data_ptr() - memory.data_ptr() < memory.numel()


@pytest.fixture(autouse=True)
def poll_at_once(monkeypatch):
    from hipress.torch.executors import staging

    monkeypatch.setattr(staging, "_POLL_SECONDS", 0.0)


def gathers(device, staging, steps=3, modules=3):
    """Return what the main stream reads after each of two gathers a step, and what was reported.

    The weights of a step are one more than those of the step before. The host adds the difference
    to a replica, as in an exchange that gets every rank's row. The weights are computed on another
    stream, so that only the event of the copy up shows when the replica may change.
    """
    replicas = [staging.replica(ROW * RANKS, torch.float32) for _ in range(modules)]
    outputs = [torch.empty(ROW * RANKS) for _ in range(modules)]
    weights = [torch.empty(ROW) for _ in range(modules)]
    sent, found, reported, optimizer = [None] * modules, [], [], device.stream()
    for step in range(steps):
        for m in range(modules):
            output, replica, w = outputs[m], replicas[m], 10.0 * m + step + 1
            row, own = output[ROW : 2 * ROW], weights[m]
            device.main.add(lambda row=row, w=w: row.fill_(w) is not None)
            optimizer.add(lambda own=own, w=w: own.fill_(w) is not None)
            with device.use(optimizer):
                fetched = staging.fetch(own)
            difference = fetched.host(10) - replica[ROW : 2 * ROW]
            fetched.release()
            staging.wait(sent[m], 10)
            replica.add_(difference.repeat(RANKS))
            total = staging.empty(1, torch.float32)
            staging.queue(lambda row=row, t=total: torch.sum(row, 0, out=t[0]), [row])
            staging.report(total, lambda numbers: reported.append(numbers.item()) or "")
            mark = staging.mark()
            for _ in range(2):  # before the forward and the backward pass
                sent[m] = staging.send(output, replica, mark)
                staging.join()
                device.main.add(lambda output=output: found.append(sorted(set(output.tolist()))))
                device.main.add(lambda row=row: row.fill_(-1.0) is not None)  # FSDP writes it
                mark = staging.mark()
    device.finish_work()
    assert staging.poll() == ""
    return found, reported


def expected_gathers(steps=3, modules=3):
    weights = [10.0 * m + step + 1 for step in range(steps) for m in range(modules)]
    return [[w] for w in weights for _ in range(2)], [ROW * w for w in weights]


def test_gathers_wait_for_each_copy_in_any_order_of_events():
    from hipress.torch.executors.weight_staging import StagedWeights

    for seed in range(30):
        device = LateGpu(seed)
        assert gathers(device, StagedWeights(device)) == expected_gathers(), seed
        device = LateGpu(seed)
        assert gathers(device, StagedWeights(device), 6, 1) == expected_gathers(6, 1), seed


@pytest.mark.parametrize("omitted", ["copy down", "copy up", "replica", "output", "check"])
def test_late_device_shows_an_omitted_wait(omitted):
    from hipress.torch.executors import weight_staging

    class Forgetful(weight_staging.StagedWeights):
        def fetch(self, flat, part=None):
            fetched = super().fetch(flat, part)
            if omitted == "copy down":
                fetched._ready = SimpleNamespace(query=lambda: True)
            return fetched

        def join(self):
            if omitted != "copy up":
                super().join()

        def wait(self, event, timeout):
            if omitted != "replica":
                super().wait(event, timeout)

        def send(self, target, source, after):
            return super().send(target, source, self.up if omitted == "output" else after)

        def queue(self, work, tensors):
            if omitted == "check":
                self.device.run(self.down, work, tensors)
            else:
                super().queue(work, tensors)

    def right(seed, *counts):
        device = LateGpu(seed)
        staging = Forgetful(device)
        staging.up.happened = True  # where the stream is given as an event
        return gathers(device, staging, *counts) == expected_gathers(*counts)

    assert not all(right(seed, *counts) for seed in range(30) for counts in [(3, 3), (6, 1)])


def test_weights_of_a_gpu_that_hangs_are_an_error():
    from hipress.torch.executors.weight_staging import StagedWeights

    device = LateGpu(0)
    staging = StagedWeights(device)
    device.main.add(lambda: False)
    with pytest.raises(TimeoutError, match=r"waited 0.05 s for the GPU to compute this data"):
        staging.wait(staging.mark(), 0.05)


def _stage_late():
    """Make gathers treat tensors in host memory as a test device's."""
    from hipress.torch.executors.weight_staging import StagedWeights
    from hipress.torch.integrations.fsdp_gather import WeightGathers

    def staging(self, device):
        if self._staging is None:
            self._staging = StagedWeights(LateGpu(7, prompt=True))
        return self._staging

    WeightGathers.staging = staging


CASES = [
    ("exact", {}),
    ("blocks", {"dtype": torch.bfloat16}),
    ("lossless", {"dtype": torch.bfloat16}),
    ("differences", {}),
    ("differences", {"dtype": torch.bfloat16, "accumulate": 2}),
    ("differences", {"reshard_after_forward": False}),
]


def _every_case(rank, where):
    from hipress.torch.executors.host import HostExecutor

    # Gradients by the group's reduce-scatter, which adds in another order than the engine.
    HostExecutor._needs_user_group = lambda self, flat: True
    encode_on = "host"
    if where == "late":
        _stage_late()
    elif where == "device":
        play_the_gpu()
        encode_on = "device"
    found = []
    for gather, options in CASES:
        losses, whole, seen, made = train(
            rank, gather, 3, inspect=True, encode_on=encode_on, **options
        )
        kind = type(made.staging(torch.device("cpu"))).__name__
        assert kind == {"late": "StagedWeights", "device": "EncodedWeights"}.get(where, kind)
        found.append((losses, bits(whole.values()), bits(seen), made.exchanges))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("where", ["late", "device"])
def test_gathers_on_a_device_give_the_bits_of_those_in_host_memory(where):
    from hipress.compression.compressor import Compressor

    codecs = [Compressor("maxmin", bits=each, stochastic=0) for each in (4, 8)]
    for codec in [*codecs, Compressor("lossless")] if where == "device" else ():
        on_the_cpu().kernels.algorithm(codec.config)  # compiled before the time runs
    expected = returned(run_ranks(_every_case, 2, "cpu"))
    assert returned(run_ranks(_every_case, 2, where, timeout=120)) == expected


def _train_and_infer(rank, where):
    """Return the weights that training steps and evaluations in inference mode compute with."""
    import hipress.torch

    if where == "late":
        _stage_late()
    else:
        play_the_gpu()
    encode_on, found = "device" if where == "device" else "host", []
    for gather, _ in CASES[:3]:
        model = network()
        hipress.torch.compress_fsdp(model, "none", gather=gather, encode_on=encode_on)
        optimizer, seen = torch.optim.AdamW(model.parameters()), gathered(model)
        for _ in range(3):
            model(torch.ones(2, 7)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.inference_mode():  # FSDP2 itself needs a training step before
                model(torch.ones(2, 7))
        found.append(bits(seen))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("where", ["late", "device"])
def test_gathers_on_a_device_work_in_inference_mode(where):
    first, second = returned(run_ranks(_train_and_infer, 2, where, timeout=120))
    assert first == second


def _changed_weights(rank):
    """Change weights so that no version shows it, on a test device."""
    import hipress.torch

    _stage_late()
    model = network()
    hipress.torch.compress_fsdp(model, "none", gather="differences")
    x = torch.ones(2, 7)
    model.set_requires_gradient_sync(False)
    model(x).sum().backward()
    for parameter in model.parameters():
        parameter.to_local().data.mul_(0.5)
    for _ in range(3):
        model(x).sum().backward()


@pytest.mark.slow
def test_unseen_change_of_staged_weights_is_an_error():
    for found in run_ranks(_changed_weights, 2):
        assert "were changed otherwise than by an optimizer" in found, found


# On a GPU.


def _on_its_gpu(rank, encode_on, gather):
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=60))
    _, _, seen, _ = train(rank, gather, 4, inspect=True, device="cuda", encode_on=encode_on)
    return bits(seen)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are no two GPUs")
@pytest.mark.skipif(not cuda_build.nvcc(), reason="there is no nvcc")
@pytest.mark.parametrize("gather", ["blocks", "differences"])
def test_two_gpus_that_encode_give_the_bits_of_their_hosts(gather):
    host, device = (
        returned(run_ranks(_on_its_gpu, 2, where, gather, join=False, gpu=True, timeout=120))
        for where in ("host", "device")
    )
    assert host == device


@gpu
@pytest.mark.parametrize("gather", ["exact", "blocks", "differences"])
def test_two_processes_on_one_gpu_compute_with_the_same_weights(gather):
    found = returned(run_ranks(_trained_on_gpu, 2, gather, gpu=True))
    assert found[0][1] == found[1][1]
    assert found[0][0][-1] < found[0][0][0]
    if gather == "exact":
        assert found == returned(run_ranks(_trained_on_gpu, 2, None, gpu=True))


def _trained_on_gpu(rank, gather):
    losses, _, seen, _ = train(rank, gather, 12, inspect=True, device="cuda")
    return losses, bits(seen)


@gpu
def test_exact_host_memory_is_page_locked_and_freed():
    from hipress.torch.executors.staging import Cuda

    device = torch.device("cuda", torch.cuda.current_device())
    for count in (0, 1, 3_000_001):
        memory = Cuda(device).exact_host_memory(count, torch.float32)
        assert memory.nbytes == 4 * count and not memory.any()
        assert memory.is_pinned() or not count
        there = torch.ones(count, device=device)
        there.copy_(memory, non_blocking=True)
        del memory
        torch.cuda.synchronize()
        assert not there.any()
