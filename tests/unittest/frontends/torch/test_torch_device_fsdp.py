"""FSDP2's modules synchronized on their device, which a CPU emulates."""

import re

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from hipress.compression.compiler.runtime import cuda_build
from test_torch_cuda import bits, gpu, run
from test_torch_device import kernels, play_the_gpu  # noqa: F401, compiles them
from test_torch_fsdp import MIN_SIZE, backward, sharded
from torch_states import flat_state

CASES = [  # codec, dtype of the reductions, hybrid, options
    ("onebit", torch.float32, False, {}),
    ("maxmin", torch.bfloat16, False, {"warmup_steps": 1}),
    ("dgc", torch.float32, False, {"ratio": 0.05}),
    ("none", torch.float16, False, {}),
    ("onebit", torch.bfloat16, False, {"shared_momentum": 0.9, "warmup_steps": 1}),
    ("onebit", torch.float32, True, {"shared_momentum": 0.9}),
]


def job(where, type, dtype=torch.float32, hybrid=False, **options):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy

    import hipress.torch

    mesh = init_device_mesh("cpu", (4,))
    if hybrid:
        both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        mesh, options["replicate_group"] = both["shard"], both["replicate"].get_group()
    model = sharded(mesh, mp_policy=MixedPrecisionPolicy(reduce_dtype=dtype))
    options = {"min_size": MIN_SIZE // 2 if hybrid else MIN_SIZE, "encode_on": where, **options}
    return model, hipress.torch.compress_fsdp(model, type, **options)


def trained(rank, model, compression):
    """Return the gradients of three steps, the state after them, and what synchronized them."""
    grads = []
    for step in range(3):
        backward(model, rank, step)
        grads += bits(p.grad.to_local() for p in model.parameters())
    state = flat_state(compression.state_dict())
    buckets = compression._buckets.values()
    compressing = [getattr(b, "program", None) or getattr(b, "native", None) for b in buckets]
    made = {type(each).__name__ for each in compressing if each}
    kept = {k: bits([v]) if isinstance(v, torch.Tensor) else v for k, v in state.items()}
    return grads, kept, made


def every_case(rank):
    from hipress.torch.executors.host import HostExecutor

    play_the_gpu()
    # Small ones by the group's collectives, which add in another order than the engine.
    HostExecutor._needs_user_group = lambda self, flat: True
    found = []
    for codec, dtype, hybrid, options in CASES:
        for where in ("host", "device"):
            found.append(trained(rank, *job(where, codec, dtype, hybrid, **options)))
    return found


@pytest.mark.slow
def test_the_device_gives_the_hosts_bits_and_residuals():
    for found in returned(run_ranks(every_case, 4, timeout=120)):
        for case, host, device in zip(CASES, found[::2], found[1::2], strict=True):
            assert host[0] == device[0], case
            assert host[1] == device[1], case
            assert (host[2], device[2]) == ({"HostBucket"}, {"CudaProgram"}), case


def refuses(rank):
    """Refuse a payload that is damaged in transit, and a device that is no GPU."""
    from hipress.torch.executors.cuda.cuda_program import CudaProgram

    with pytest.raises(ValueError, match="encode_on='device' is for gradients on a GPU"):
        job("device", "onebit")
    play_the_gpu()
    model, compression = job("device", "onebit")
    backward(model, rank, 0)
    *_, bucket = compression._buckets.values()
    last = bucket.program  # only the step's end can report it
    if rank == 1:
        send = CudaProgram._raise_refused

        def damage(self, statuses):
            send(self, statuses)
            for message in self.exchanges[0].send.values():
                if self is last:
                    message.payload(0)[:8] = 0x3F  # two means above 0

        CudaProgram._raise_refused = damage
    try:
        backward(model, rank, 1)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


@pytest.mark.slow
def test_a_refused_payload_ends_the_step_that_had_it():
    said = run_ranks(refuses, 4, timeout=120)[0]  # which has a shard of every parameter
    assert re.search(r"HipressError: module .*a payload of parts.\d.* was refused: it", said), said


def alone(rank, kind="cuda"):
    """Train hybrid sharding of one rank, whose hook is called; it has no reduce-scatter."""
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch

    found = []
    for where in ("host", "device"):
        both = init_device_mesh(kind, (1, 1), mesh_dim_names=("replicate", "shard"))
        model = sharded(both["shard"])
        group = both["replicate"].get_group()
        compression = hipress.torch.compress_fsdp(
            model, "onebit", min_size=MIN_SIZE, encode_on=where, replicate_group=group
        )
        found.append(trained(rank, model, compression))
    return found


@gpu
@pytest.mark.skipif(not cuda_build.nvcc(), reason="there is no nvcc")
def test_hybrid_sharding_with_one_rank_on_nccl():
    host, device = run(alone)
    assert host[:2] == device[:2]
    assert (host[2], device[2]) == ({"HostBucket"}, {"CudaProgram"})
