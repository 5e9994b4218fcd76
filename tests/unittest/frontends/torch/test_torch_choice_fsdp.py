"""Type "auto" of FSDP2, sharded and hybrid."""

from __future__ import annotations

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_choice import FAST, SLOW
from test_torch_ddp import loss_of, network

fsdp = pytest.importorskip("torch.distributed.fsdp", reason="needs torch")
if not hasattr(fsdp.FSDPModule, "set_custom_reduce_scatter"):
    pytest.skip("needs FSDPModule.set_custom_reduce_scatter", allow_module_level=True)

CHANGES = 30, 60


def trained(rank, times, kind, hybrid, count):
    """Train without learning. Gradients take the given milliseconds with each method, and others
    from a step on. Return the methods, the messages, the error of the sums of all gradients, and
    the last gradients of all ranks."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch
    from known_times import measure

    now = dict(times[0])
    lines = measure(
        lambda method_name: now.get(method_name, 5 * max(now.values())) * (1 if rank else 0.8)
    )
    size = dist.get_world_size()
    if hybrid:
        mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("replicate", "shard"))
        group = mesh["replicate"].get_group()
        model = network()
        for layer in model:
            if list(layer.parameters()):
                fully_shard(layer, mesh=mesh["shard"])
        fully_shard(model, mesh=mesh["shard"])
    else:
        group, model = None, network()
        for layer in model:
            if list(layer.parameters()):
                fully_shard(layer)
        fully_shard(model)
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.0)
    compression = hipress.torch.compress_fsdp(
        model, min_size=1000, replicate_group=group, optimizer=optimizer
    )
    plain, method_names = network(), []
    sums = [[torch.zeros_like(p) for p in plain.parameters()] for _ in range(2)]
    for step in range(count):
        if step in CHANGES:
            now.clear()
            now.update(times[1 + CHANGES.index(step)])
        for of, total in zip((model, plain), sums):
            of.zero_grad()
            loss_of(of, rank, step).backward()
            for parameter, each in zip(of.parameters(), total):
                grad = parameter.grad
                each += grad.full_tensor() if of is model else grad
        optimizer.step()
        method_names.append(compression._controller.method.name)
    ours, exact = (torch.cat([each.flatten() for each in total]) for total in sums)
    dist.all_reduce(exact)
    exact /= size
    error = ((ours - exact).norm() / exact.norm()).item()
    log_rank = compression._controller._frontend.log_rank
    return method_names, lines, error, ours, str(compression.explain()), log_rank


FASTER = {"uncompressed": 30.0, "maxminef bits=2": 50.0, "bf16": 60.0, "maxmin bits=8": 61.0}


@pytest.mark.slow
def test_it_follows_the_network_and_loses_nothing():
    times = [FAST, {**SLOW, "uncompressed": 50.0, "maxminef bits=2": 1.0}, FASTER]
    first, second = returned(run_ranks(trained, 2, times, "SGD", False, 90))
    method_names, lines, error, ours, said, _ = first
    assert method_names == second[0] and torch.equal(ours, second[3]) and said == second[4]
    assert set(method_names[:30]) == {"uncompressed"} == set(method_names[80:]), method_names
    assert set(method_names[50:60]) == {"maxminef bits=2"}
    assert set(method_names) <= {"uncompressed", "maxminef bits=2", "maxmin bits=8"}
    assert not second[1] and lines[0].startswith("auto: uncompressed, the fastest:")
    assert len([line for line in lines if "times as long as they did" in line]) == 2
    assert error < 0.02  # of rounding; what waited in residuals was sent


def test_hybrid_sharding_with_adam():
    times = [{**SLOW, "maxminef bits=2": 1.0}] * 3
    found = returned(run_ranks(trained, 4, times, "Adam", True, 6))
    # Two shard groups choose, and one process writes the journal.
    assert sorted(log_rank for *_, log_rank in found) == [0, 1, 2, 3]
    for method_names, _, error, ours, said, _ in found:
        assert set(method_names) == {"maxmin bits=8"} and torch.equal(ours, found[0][3])
        assert error < 0.02 and "maxminef" not in said


def refused(rank):
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    model = fully_shard(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError) as error:
        hipress.torch.compress_fsdp(model, "onebit", optimizer=optimizer)
    return (str(error.value),)


def test_an_optimizer_is_for_auto_alone():
    for (said,) in returned(run_ranks(refused, 2)):
        assert "optimizer= is for type 'auto': leave it out with 'onebit'" in said
