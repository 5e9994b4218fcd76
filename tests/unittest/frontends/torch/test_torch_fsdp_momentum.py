"""Shared momentum in FSDP2: all ranks get all results, for their next gradients."""

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_equality import reference
from test_torch_fsdp import MIN_SIZE, backward, gradient_of, returned, sharded, whole_shapes
from test_torch_fsdp_state import job, result

FACTOR, WARM_UP = 0.9, 1


def equals_reference(rank, world_size, type, params):
    """Encode FACTOR times the last result plus the gradient: the reference's bits."""
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch
    from hipress.topology.graph import worker
    from hipress.torch.executors.collectives import reduce_scatter
    from hipress.torch.gradient import chunk_of
    from hipress.torch.state.error_feedback import Codecs

    model = sharded(init_device_mesh("cpu", (world_size,)))
    compression = hipress.torch.compress_fsdp(
        model, type, min_size=MIN_SIZE, warmup_steps=WARM_UP, shared_momentum=FACTOR, **params
    )
    runs, sums = {}, {name: torch.zeros(shape) for name, shape in whole_shapes().items()}
    for step in range(WARM_UP + 3):
        backward(model, rank, step)
        for name, parameter in model.named_parameters():
            shape = torch.Size(whole_shapes()[name])
            chunk = chunk_of(shape, world_size)
            local = [gradient_of(name[6:], shape, r, step) for r in range(world_size)]
            found = parameter.grad.full_tensor()
            if step < WARM_UP or shape.numel() < MIN_SIZE:
                want = sum(local) / world_size + FACTOR * sums[name]
                torch.testing.assert_close(found, want, rtol=0, atol=1e-6)
            else:
                if name not in runs:
                    graph = reduce_scatter(shape.numel(), chunk, world_size, to_all=True)
                    runs[name] = reference(graph, Codecs(type, params), world_size, name)
                given = [(g + FACTOR * sums[name]).reshape(-1) for g in local]
                wants = runs[name].step({worker(r): g.numpy() for r, g in enumerate(given)})
                want = torch.from_numpy(wants[worker(rank)]).reshape(shape)
                assert torch.equal(found, want), (name, step)
            sums[name] = found.clone()
    assert len(runs) == 5
    # What is compressed is kept as payloads; what goes uncompressed, as it is.
    assert set(compression.shared.sums) == set(sums) - set(runs)
    return {name: values for name, (_, values) in compression.shared.state().items()}


def all_codecs(rank):
    return [equals_reference(rank, 3, "onebit", {}), equals_reference(rank, 3, "maxminef", {})]


def test_what_is_compressed_is_the_next_value_of_the_shared_sum():
    first, *others = returned(run_ranks(all_codecs, 3))
    for other in others:
        for mine, theirs in zip(first, other, strict=True):
            assert mine.keys() == theirs.keys()
            assert all(torch.equal(values, theirs[name]) for name, values in mine.items())


def moves(rank, pairs, frozen=((), ())):
    """Continue sums in another job, sharded or not: without gradients it returns FACTOR times them.

    Args:
        frozen: For each of both jobs, layers that are unfrozen after the call.
    """
    import torch.distributed as dist

    params = {"shared_momentum": FACTOR, "min_size": 2000}  # some compressed, some not
    for left, taken in pairs:
        state, given = {}, {}
        made = job(left, "none", params, frozen[0])
        if made:
            given = [result(made[0], rank, step) for step in range(2)][-1]
            state = made[1].state_dict()
        states, results = [None] * 4, [None] * 4
        dist.all_gather_object(states, state)
        dist.all_gather_object(results, given)
        made = job(taken, "none", params, frozen[1])
        if made:
            made[1].load_state_dict({k: v for each in states for k, v in each.items()})
            for name, values in result(made[0], rank, None).items():
                torch.testing.assert_close(
                    values,
                    FACTOR * results[0][name],
                    rtol=1e-6,
                    atol=1e-6,
                    msg=lambda text, at=(left, taken, name): f"{at}: {text}",
                )
        dist.barrier()


PAIRS = [("fsdp3", "fsdp2"), ("fsdp3", "ddp"), ("ddp", "fsdp3"), ("hsdp", "fsdp2")]


@pytest.mark.slow
def test_it_goes_on_in_another_job():
    returned(run_ranks(moves, 4, PAIRS, timeout=90))
