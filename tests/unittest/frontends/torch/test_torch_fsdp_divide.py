"""Gradient divide factors of FSDP2: compressed gradients have the scale of uncompressed ones."""

import itertools
from types import SimpleNamespace

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_fsdp import backward, sharded

HOSTS, LOCAL = 2, 2
WORLD = HOSTS * LOCAL
FACTORS = (None, 1.0, 2.0, float(WORLD))
DTYPES = (torch.float32, torch.bfloat16)


def set_factor(model, factor, force_sum):
    for module in (model, *model.parts):
        if factor is not None:
            module.set_gradient_divide_factor(factor)
        module.set_force_sum_reduction_for_comms(force_sum)


def premultiply_on_gloo(model):
    """Replace FSDP2's reduce-scatter, whose PREMUL_SUM only NCCL supports, by one for Gloo."""
    import torch.distributed as dist

    from hipress.torch.private_fsdp import ReduceScatter, parts_of

    class Premultiplied(ReduceScatter):
        def allocate(self, size, *, dtype, device):
            return torch.empty(*size, dtype=dtype, device=device)

        def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
            if getattr(op, "op", op) == dist.ReduceOp.PREMUL_SUM:
                input_tensor.mul_(op.__getstate__()[1])
                op = dist.ReduceOp.SUM
            dist.reduce_scatter_tensor(output_tensor, input_tensor, op=op, group=group)

    for module in (model, *model.parts):
        for part in parts_of(module):
            part.set_custom_reduce_scatter(Premultiplied())


def gradients(model, rank):
    backward(model, rank, 0)
    return {n: p.grad.to_local() for n, p in model.named_parameters() if p.grad is not None}


def use_the_frameworks_all_reduce(compression, hybrid):
    """Let the framework reduce gradients itself, as type "auto" does on a fast network."""
    from hipress.autotune.methods import UNCOMPRESSED
    from hipress.torch.autotune.hooks import MEANS, SCATTERS

    compression._controller = SimpleNamespace(
        method=UNCOMPRESSED, begin_step=lambda: None, seconds=[], observer=None
    )
    compression._hooks = MEANS if hybrid else SCATTERS
    compression._may_be_loaded = False
    assert compression.framework_method


def compare_with_fsdp(rank):
    """Return the settings whose gradients differ from those of uncompressed FSDP2."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy

    import hipress.torch

    flat = init_device_mesh("cpu", (WORLD,))
    both = init_device_mesh("cpu", (HOSTS, LOCAL), mesh_dim_names=("replicate", "shard"))
    different = []
    meshes = {"": flat, "given": both["shard"], "native": both}
    for hybrid, dtype, own in itertools.product(meshes, DTYPES, (False, True)):
        policy = MixedPrecisionPolicy(reduce_dtype=dtype)
        plain = sharded(both if hybrid else flat, mp_policy=policy)
        premultiply_on_gloo(plain)
        model, group = sharded(meshes[hybrid], mp_policy=policy), {}
        if hybrid:
            premultiply_on_gloo(model)
        if hybrid == "given":
            group["replicate_group"] = both["replicate"].get_group()
        compression = hipress.torch.compress_fsdp(model, "none", min_size=1000, **group)
        if own:
            use_the_frameworks_all_reduce(compression, hybrid)
        tolerance = 1e-6 if dtype == torch.float32 else 0.02
        for factor, force_sum in itertools.product(FACTORS, (False, True)):
            set_factor(plain, factor, force_sum)
            set_factor(model, factor, force_sum)
            expected, found = gradients(plain, rank), gradients(model, rank)
            assert expected.keys() == found.keys()
            for name, values in expected.items():
                if not torch.allclose(found[name], values, rtol=tolerance, atol=tolerance):
                    ratio = (found[name].norm() / values.norm()).item()
                    different.append((hybrid, dtype, own, factor, force_sum, name, ratio))
        assert compression.step == len(FACTORS) * 2
    return different


def test_every_divide_factor_gives_the_scale_of_uncompressed_fsdp():
    assert returned(run_ranks(compare_with_fsdp, WORLD)) == [[]] * WORLD
