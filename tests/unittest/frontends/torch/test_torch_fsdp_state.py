"""Residuals of FSDP2's ranks, which continue in jobs of other sizes, sharded or not."""

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import succeed
from test_torch_fsdp import gradient_of, returned

SHAPES = {"uneven": (37, 65), "few_rows": (3, 700), "bias": (1500,)}
RANKS = {"fsdp2": 2, "fsdp3": 3, "fsdp4": 4, "hsdp": 4, "ddp": 2}


class Layer(torch.nn.Module):
    """Layer whose gradient is given: random, or, without a step, zeros."""

    def __init__(self, name):
        super().__init__()
        self._name = name
        self.weight = torch.nn.Parameter(torch.zeros(SHAPES[name]))

    def forward(self, rank, step):
        gradient = gradient_of(self._name, SHAPES[self._name], rank, step or 0)
        return (self.weight * (gradient * (step is not None))).sum()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleDict({name: Layer(name) for name in SHAPES})

    def forward(self, rank, step):
        return sum(layer(rank, step) for layer in self.layers.values())


def job(kind, type, params, frozen=()):
    """Return a model that is synchronized in this way on the first ranks, and None on other ranks.

    Args:
        frozen: Layers that are unfrozen after the call.
    """
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    model, rank = Model(), dist.get_rank()
    ranks = list(range(RANKS[kind]))
    options = {"min_size": 100, **params}
    for name in frozen:
        model.layers[name].requires_grad_(False)
    if kind == "ddp":
        group = dist.new_group(ranks)
        if rank in ranks:
            model = DistributedDataParallel(model, process_group=group)
            return model, hipress.torch.compress(model, type, **options)
        return None
    if kind == "hsdp":
        both = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("replicate", "shard"))
        mesh, options["replicate_group"] = both["shard"], both["replicate"].get_group()
    else:
        mesh = DeviceMesh("cpu", ranks)
    if rank not in ranks:
        return None
    for layer in model.layers.values():
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    compression = hipress.torch.compress_fsdp(model, type, **options)
    return model.requires_grad_(), compression


def result(model, rank, step):
    """Return the whole gradients of one step, by name."""
    for p in model.parameters():
        p.grad = None
    model(rank, step).backward()
    grads = {n.removeprefix("module."): p.grad for n, p in model.named_parameters()}
    return {
        n: (g.full_tensor() if hasattr(g, "full_tensor") else g).clone() for n, g in grads.items()
    }


def moves(rank, pairs, frozen=((), ())):
    """Make one step in one job; then, in another, steps of zero gradients, whose results are the
    residuals.

    Args:
        frozen: For each of both jobs, layers that are unfrozen after the call.
    """
    import torch.distributed as dist

    for left, taken in pairs:
        state, rest = {}, {}
        made = job(left, "topk", {"ratio": 0.3}, frozen[0])
        if made:
            given = result(made[0], rank, 0)
            state = made[1].state_dict()
            for name, shape in SHAPES.items():
                world = range(RANKS[left])
                mean = sum(gradient_of(name, shape, r, 0) for r in world) / len(world)
                rest[name] = mean - given[f"layers.{name}.weight"]
        states, rests = [None] * 4, [None] * 4
        dist.all_gather_object(states, state)
        dist.all_gather_object(rests, rest)
        made = job(taken, "topk", {"ratio": 0.3}, frozen[1])
        if made:
            model, compression = made
            compression.load_state_dict({k: v for each in states for k, v in each.items()})
            steps = [result(model, rank, None) for _ in range(9)]
            for name in SHAPES:
                total = sum(step[f"layers.{name}.weight"] for step in steps)
                assert rests[0][name].abs().max() > 0.1
                torch.testing.assert_close(
                    total,
                    rests[0][name],
                    rtol=0,
                    atol=2e-6,
                    msg=lambda text, at=(left, taken, name): f"{at}: {text}",
                )
            assert compression.step == 10
        dist.barrier()


PAIRS = [
    ("fsdp3", "fsdp2"),
    ("fsdp2", "fsdp4"),
    ("fsdp3", "ddp"),
    ("ddp", "fsdp3"),
    ("hsdp", "fsdp3"),
    ("fsdp3", "hsdp"),
    ("hsdp", "ddp"),
]


@pytest.mark.slow
def test_another_number_of_ranks_gets_what_was_left():
    returned(run_ranks(moves, 4, PAIRS, timeout=90))


def resume(rank, kind, type, params, folder):
    """Compare six steps with three, a checkpoint, and three in a new model: the same bits."""
    import torch.distributed.checkpoint as dcp

    import hipress.torch

    def steps(made, numbers):
        found = [result(made[0], rank, step) for step in numbers]
        return [t.numpy().tobytes() for step in found for t in step.values()]

    straight = steps(job(kind, type, params), range(6))
    first = job(kind, type, params)
    early = steps(first, range(3))
    dcp.save({"hipress": first[1]}, checkpoint_id=folder)
    second = job(kind, type, params)
    hipress.torch.load_checkpoint(second[1], folder)
    assert early + steps(second, range(3, 6)) == straight
    return straight


DGC = {"ratio": 0.1, "warmup_steps": 4}


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("kind", "type", "params"),
    [
        ("fsdp3", "dgc", DGC),
        ("hsdp", "dgc", DGC),
        ("fsdp3", "onebit", {"shared_momentum": 0.9, "warmup_steps": 1, "min_size": 2200}),
    ],
)
def test_a_job_goes_on_with_the_same_bits(tmp_path, kind, type, params):
    succeed(run_ranks(resume, RANKS[kind], kind, type, params, str(tmp_path)))


def streams(rank):
    made = job("hsdp", "maxmin", {})
    result(made[0], rank, 0)
    return {key: each.stream for key, each in made[1].error_feedback.states.items()}


def test_every_shard_draws_random_numbers_of_its_own():
    found = returned(run_ranks(streams, 4))
    drawn = [stream for one in found for stream in one.values()]
    assert len(set(drawn)) == len(drawn) > 8
