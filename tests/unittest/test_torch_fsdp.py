"""FSDP2 with compressed reduce-scatters, and hybrid sharding with compressed all-reduces."""

import copy

import numpy as np

from test_torch_ddp import loss_of, network, succeed
from torch_cluster import run_ranks, torch


def shard(model, mesh):
    from torch.distributed.fsdp import fully_shard

    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def full(model):
    return [p.full_tensor().detach() for p in model.parameters()]


def close_to_exact(rank, type, params, most):
    """Gradients after one step are near the uncompressed ones; returns the parameters after 3."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch

    world_size = dist.get_world_size()
    mesh = init_device_mesh("cpu", (world_size,))
    plain, model = network(), network()
    shard(model, mesh)
    compression = hipress.torch.compress_fsdp(model, type, min_size=1000, **params)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        if step == 0:
            sum(loss_of(plain, r, 0) for r in range(world_size)).div(world_size).backward()
            for a, b in zip(model.parameters(), plain.parameters(), strict=True):
                error = (a.grad.full_tensor() - b.grad).abs().max()
                assert error <= most * b.grad.abs().max() + 1e-7, error
        optimizer.step()
    assert len(compression.state_dict()) > 5
    try:
        hipress.torch.compress_fsdp(model, "nonsense" if rank == 1 else type)
    except ValueError as error:
        assert "nonsense" in str(error)
    else:
        raise AssertionError("rank 1's wrong name was not refused on all ranks")
    return [p.numpy().tobytes() for p in full(model)]


def test_reduce_scatter():
    for type, params, most in (("none", {}, 1e-5), ("maxmin", {"bits": 8}, 0.05)):
        succeed(run_ranks(close_to_exact, 3, type, params, most))


def error_feedback(rank):
    """What topk leaves out comes later: over steps of the same gradient, nothing is lost."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch

    torch.manual_seed(0)
    layer = torch.nn.Linear(100, 100, bias=False)
    from torch.distributed.fsdp import fully_shard

    fully_shard(layer, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    compression = hipress.torch.compress_fsdp(layer, "topk", ratio=0.25, min_size=10)
    x = torch.linspace(-1, 1, 100)[None] * (rank + 1)
    total, state = 0, {}
    for step in range(60):
        layer.weight.grad = None
        (layer(x) * torch.linspace(0.1, 1, 100)).sum().backward()
        total = total + layer.weight.grad.full_tensor()
        if step == 30:  # a new compression goes on from the other's state
            state = copy.deepcopy(compression.state_dict())
            compression = hipress.torch.compress_fsdp(layer, "topk", ratio=0.25, min_size=10)
            compression.load_state_dict(state)
    exact = torch.outer(torch.linspace(0.1, 1, 100), torch.linspace(-1, 1, 100)) * 1.5
    assert (total / 60 - exact).abs().max() < 0.1 * exact.abs().max()
    return total.numpy().tobytes()


def test_the_residual_keeps_what_was_not_sent():
    succeed(run_ranks(error_feedback, 2))


def hybrid(rank):
    """2 hosts of 2 ranks: sharded inside, compressed averages between."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    plain, model = network(), network()
    shard(model, mesh["shard"])
    hipress.torch.compress_fsdp(
        model, "maxmin", bits=8, min_size=500, replicate_group=mesh["replicate"].get_group()
    )
    loss_of(model, rank, 0).backward()
    sum(loss_of(plain, r, 0) for r in range(4)).div(4).backward()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        error = (a.grad.full_tensor() - b.grad).abs().max()
        assert error <= 0.05 * b.grad.abs().max() + 1e-7, error
    found = [p.grad.full_tensor().numpy() for p in model.parameters()]
    everybody = [None] * 4
    dist.all_gather_object(everybody, [g.tobytes() for g in found])
    return [np.asarray(g).tobytes() for g in found]


def test_hybrid_sharding():
    succeed(run_ranks(hybrid, 4))
