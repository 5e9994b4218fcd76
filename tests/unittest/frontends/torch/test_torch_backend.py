"""The backend "hipress": compressed all-reduces for unmodified callers."""

import os

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import loss_of, network, succeed
from test_torch_device import play_the_gpu


def values(rank, count):
    return torch.randn(count, generator=torch.Generator().manual_seed(rank))


def all_reduces(rank, environment):
    """Return sums, means, uncompressed results, and many at a time, on a group of the backend."""
    import torch.distributed as dist

    import hipress.torch  # noqa: F401

    os.environ.update(environment)
    group = dist.new_group(backend="hipress")
    assert dist.get_backend(group) == "hipress"
    world_size = dist.get_world_size()
    found = []
    exact = sum(values(r, 50_000) for r in range(world_size))
    for op, scale in ((dist.ReduceOp.SUM, 1), (dist.ReduceOp.AVG, world_size)):
        tensor = values(rank, 50_000)
        dist.all_reduce(tensor, op=op, group=group)
        error = (tensor - exact / scale).abs().max() * scale
        # CGX's bound: 2 * range / (2^bits - 1) * n (n + 1), here of a range of about 8.
        assert 0.01 < error < 2 * 8 / 15 * world_size * (world_size + 1), error
        found.append(tensor)
    small = torch.full((10,), float(rank))
    dist.all_reduce(small, op=dist.ReduceOp.AVG, group=group)
    assert (small == (world_size - 1) / 2).all()
    integers = torch.full((50_000,), rank)
    dist.all_reduce(integers, group=group)
    assert (integers == sum(range(world_size))).all()
    most = values(rank, 50_000)
    dist.all_reduce(most, op=dist.ReduceOp.MAX, group=group)
    assert torch.equal(most, torch.stack([values(r, 50_000) for r in range(world_size)]).amax(0))
    constants = [torch.full((20_000,), float(rank + i)) for i in range(10)]
    works = [dist.all_reduce(tensor, group=group, async_op=True) for tensor in constants]
    for work in works:
        work.wait()
    for i, tensor in enumerate(constants):  # what is constant is exact
        assert (tensor == sum(r + i for r in range(world_size))).all(), i
    gathered = [torch.zeros(3) for _ in range(world_size)]
    dist.all_gather(gathered, torch.full((3,), float(rank)), group=group)
    assert [int(t[0]) for t in gathered] == list(range(world_size))
    dist.barrier(group=group)
    return [t.numpy().tobytes() for t in found]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "environment", [{}, {"BITS": "8", "bucket_size": "512", "HIPRESS_TOPOLOGY": "ring"}]
)
def test_all_reduce(environment):
    succeed(run_ranks(all_reduces, 3, environment))


def many(rank):
    """Run operations right after each other, while Gloo's thread frees the tensors of the last
    ones."""
    import datetime

    import torch.distributed as dist

    import hipress.torch  # noqa: F401

    dist.init_process_group("hipress", timeout=datetime.timedelta(seconds=10))
    for i in range(300):
        tensor = torch.full((12_000,), rank + i)
        dist.all_reduce(tensor)
        assert int(tensor[-1]) == 2 * i + 1
        dist.broadcast(torch.full((12_000,), 1.0), i % 2)
        dist.all_gather([torch.zeros(2000), torch.zeros(2000)], torch.ones(2000))
    dist.barrier()
    return "done"


def test_what_is_passed_on_does_not_wait_for_itself():
    assert run_ranks(many, 2, join=False) == ["done", "done"]


def ddp_on_the_backend(rank):
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch  # noqa: F401

    os.environ["HIPRESS_MIN_SIZE"] = "1000"
    group = dist.new_group(backend="hipress")
    model = network()
    ddp = DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(ddp, rank, step).backward()
        optimizer.step()
    return [p.detach().numpy().tobytes() for p in model.parameters()]


def test_ddp_needs_no_change():
    succeed(run_ranks(ddp_on_the_backend, 2))


def on_the_device(rank, where):
    """Return sums and means of three dtypes on two groups, with more of a size than there are
    buffers."""
    import torch.distributed as dist

    import hipress.torch  # noqa: F401
    from hipress.torch.executors.cuda import cuda_program

    made, init = [], cuda_program.CudaProgram.__init__
    cuda_program.CudaProgram.__init__ = lambda *args: made.append(0) or init(*args)
    os.environ["HIPRESS_MIN_SIZE"] = "1000"
    if where == "device":
        os.environ["HIPRESS_ENCODE_ON"] = where
        play_the_gpu()
    found = []
    for _ in range(2):
        group = dist.new_group(backend="hipress")
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
            for dtype in (torch.float32, torch.float16, torch.bfloat16):
                tensors = [values(rank + 10 * i, 3001).to(dtype) for i in range(6)]
                works = [dist.all_reduce(t, op, group, async_op=True) for t in tensors]
                for work in works:
                    work.wait()
                found += tensors
    assert bool(made) == (where == "device")
    return [t.float().numpy().tobytes() for t in found]


@pytest.mark.slow
def test_on_the_device():
    hosts = run_ranks(on_the_device, 3, "host")
    succeed(hosts)
    assert run_ranks(on_the_device, 3, "device", timeout=120) == hosts


def refuse(rank):
    import torch.distributed as dist

    import hipress.torch  # noqa: F401

    found = []
    for environment in (
        {"HIPRESS_COMPRESSION": "onebit"},
        {"HIPRESS_BITS": "9"},
        {"HIPRESS_ENCODE_ON": "device"},
    ):
        os.environ.update(environment)
        try:
            group = dist.new_group(backend="hipress")
            made = len(dist.distributed_c10d._world.pg_map)
            dist.all_reduce(torch.zeros(20_000), group=group)
        except ValueError as error:
            found.append(str(error))
        for name in environment:
            del os.environ[name]
    assert len(dist.distributed_c10d._world.pg_map) == made  # none that no process will use
    return found


def test_what_cannot_be_is_refused():
    for residual, bits, device in run_ranks(refuse, 2):
        assert "keeps a residual" in residual
        assert "bits" in bits and "1, 2, 3" in bits
        assert "encode_on='device' is for gradients on a GPU, and these are on cpu" in device


def test_codec_in_environment_may_have_parameters(monkeypatch):
    from hipress.torch.integrations.process_group import settings_from_environment

    monkeypatch.setenv("HIPRESS_COMPRESSION", "maxmin:bits=8")
    settings = settings_from_environment()
    assert (settings.type, settings.params) == ("maxmin", {"bits": 8})
    monkeypatch.setenv("HIPRESS_COMPRESSION", "dgc:ratio=0.1")
    with pytest.raises(ValueError, match="HIPRESS_COMPRESSION is dgc, which keeps a residual"):
        settings_from_environment()
