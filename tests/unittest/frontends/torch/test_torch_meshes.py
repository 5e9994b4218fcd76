"""FSDP2 over meshes of one and two dimensions, named or not, and with several groups of parameters:
gradients as without compression, or a message."""

import pytest

pytest.importorskip("torch")

import torch
import torch.distributed.fsdp as fsdp

from harness.torch_ranks import returned, run_ranks

dims = pytest.mark.skipif(
    not hasattr(fsdp, "DataParallelMeshDims"), reason="this PyTorch has no names for dimensions"
)


def linear():
    torch.manual_seed(0)
    return torch.nn.Linear(40, 30)


def gradients(model, rank, mesh=None):
    """Return whole gradients after a step. With a mesh that has all of the model's dimensions,
    inputs are on it, a different one on each rank."""
    from torch.distributed.tensor import DTensor, Replicate

    inputs = torch.full((2, 40), 0.5 * (rank + 1))
    if mesh is not None:
        inputs = DTensor.from_local(inputs, mesh, [Replicate()] * mesh.ndim, run_check=False)
    model(inputs).sum().backward()
    return [p.grad.full_tensor() for p in model.parameters()]


def same(one, other):
    return all(torch.allclose(a, b, atol=1e-3) for a, b in zip(one, other))


def hybrid(rank):
    """Compare gradients of FSDP2 with those compressed by its mesh, or by replicate_group."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    plain = gradients(fully_shard(linear(), mesh=mesh), rank)
    native, given = fully_shard(linear(), mesh=mesh), fully_shard(linear(), mesh=mesh["shard"])
    between = mesh["replicate"].get_group()
    compressions = [
        hipress.torch.compress_fsdp(native, "fp16", min_size=0),
        hipress.torch.compress_fsdp(given, "fp16", min_size=0, replicate_group=between),
    ]
    found = [gradients(model, rank) for model in (native, given)]
    compressed = [each.stats().compressed for each in compressions]
    return [same(plain, each) for each in found], compressed


def test_hybrid_sharding_on_one_host_compresses_the_all_reduce():
    for alike, compressed in returned(run_ranks(hybrid, 4)):
        assert alike == [True, True] and compressed == [(40 * 30 + 30) * 4 // 2] * 2


def named(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import DataParallelMeshDims, fully_shard
    from torch.distributed.tensor import distribute_module

    import hipress.torch

    def made(mesh, **names):
        model = distribute_module(linear(), mesh)
        return fully_shard(model, mesh=mesh, dp_mesh_dims=DataParallelMeshDims(**names))

    one = init_device_mesh("cpu", (2,), mesh_dim_names=("data",))
    two = init_device_mesh("cpu", (1, 2), mesh_dim_names=("host", "device"))
    found = []
    for mesh, names in (
        (one, {"shard": ("data",)}),
        (two, {"shard": ("host", "device")}),
        (two, {"replicate": "host", "shard": "device"}),
        (one, {"replicate": "data"}),
    ):
        model = made(mesh, **names)
        compression = hipress.torch.compress_fsdp(model, "fp16", min_size=0)
        plain = gradients(made(mesh, **names), rank, mesh)
        found.append(same(plain, gradients(model, rank, mesh)) and compression.stats().compressed)
    return found


@dims
def test_gradients_over_named_dimensions_are_compressed():
    assert returned(run_ranks(named, 2)) == [[(40 * 30 + 30) * 4] * 4] * 2


def several(rank):
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo, ShardPlacementResult
    from torch.distributed.tensor import Shard

    import hipress.torch

    other = FSDPMeshInfo(DeviceMesh.from_group(dist.new_group([0, 1]), "cpu"), shard_mesh_dim=0)

    def place(parameter):
        return ShardPlacementResult(Shard(0), other) if parameter.ndim == 1 else None

    mesh = init_device_mesh("cpu", (2,))
    model = fully_shard(linear(), mesh=mesh, shard_placement_fn=place)
    compression = hipress.torch.compress_fsdp(model, "fp16", min_size=0)
    plain = gradients(fully_shard(linear(), mesh=mesh), rank)
    return same(plain, gradients(model, rank)), compression.stats().compressed


@dims
def test_several_groups_of_parameters_in_a_module_are_compressed():
    assert returned(run_ranks(several, 2)) == [(True, (40 * 30 + 30) * 4)] * 2
