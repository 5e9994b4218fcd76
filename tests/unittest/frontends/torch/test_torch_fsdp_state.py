"""Residuals of FSDP2's ranks, which continue in jobs of other sizes, sharded or not."""

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import succeed
from test_torch_fsdp import gradient_of, returned

SHAPES = {"uneven": (37, 65), "few_rows": (3, 700), "bias": (1500,)}
RANKS = {"fsdp2": 2, "fsdp3": 3, "fsdp4": 4, "hsdp": 4, "ddp": 2, "ddp1": 1}


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
    if kind in ("ddp", "ddp1"):
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


TOPK = {"ratio": 0.3}


def save_job(rank, kind, type, params, route, path):
    """Make one step and save the state; return what the ranks have not sent of the mean."""
    import torch.distributed.checkpoint as dcp

    model, compression = job(kind, type, params)
    given = result(model, rank, 0)
    if route == "torch.save":
        state = compression.global_state_dict()
        assert bool(state) == (rank == 0)
        if rank == 0:
            torch.save(state, path)
    elif route == "async_save":
        dcp.async_save({"hipress": compression}, checkpoint_id=path).result()
    else:
        dcp.save({"hipress": compression}, checkpoint_id=path)
    ranks = range(RANKS[kind])
    return {
        name: sum(gradient_of(name, shape, r, 0) for r in ranks) / len(ranks)
        - given[f"layers.{name}.weight"]
        for name, shape in SHAPES.items()
    }


def load_job(rank, kind, type, params, route, path):
    """Load the state with PyTorch, and return the sum of the results of gradients of zeros."""
    import torch.distributed.checkpoint as dcp

    model, compression = job(kind, type, params)
    if route == "torch.save":
        compression.load_state_dict(torch.load(path, weights_only=True))
    else:
        dcp.load({"hipress": compression}, checkpoint_id=path)
    assert compression.step == 1
    steps = [result(model, rank, None) for _ in range(9)]
    return {name: sum(step[f"layers.{name}.weight"] for step in steps) for name in SHAPES}


@pytest.mark.slow(keep=2)
@pytest.mark.parametrize(
    ("kind", "other", "route"),
    [
        ("fsdp2", "fsdp3", "save"),
        ("fsdp4", "fsdp2", "async_save"),
        ("fsdp2", "ddp1", "save"),
        ("ddp1", "fsdp2", "save"),
        ("ddp", "fsdp3", "save"),
        ("hsdp", "fsdp3", "save"),
        ("fsdp3", "hsdp", "save"),
        ("fsdp3", "fsdp2", "torch.save"),
        ("hsdp", "ddp", "torch.save"),
    ],
)
def test_job_of_another_size_loads_residuals_with_pytorch(tmp_path, kind, other, route):
    path = str(tmp_path / "state")
    saved = returned(run_ranks(save_job, RANKS[kind], kind, "topk", TOPK, route, path))
    loaded = returned(run_ranks(load_job, RANKS[other], other, "topk", TOPK, route, path))
    for name, left in saved[0].items():
        assert kind == "ddp1" or left.abs().max() > 0.1
        for found in loaded:
            torch.testing.assert_close(found[name], left, rtol=0, atol=2e-6)


@pytest.mark.slow
def test_sharded_job_of_the_same_size_loads_residuals_into_another_codec(tmp_path):
    path = str(tmp_path / "state")
    saved = returned(run_ranks(save_job, 2, "fsdp2", "topk", TOPK, "save", path))
    for found in returned(run_ranks(load_job, 2, "fsdp2", "none", {}, "save", path)):
        for name, left in saved[0].items():
            torch.testing.assert_close(found[name], left, rtol=0, atol=2e-6)


def save_momentum(rank, kind, path):
    import torch.distributed.checkpoint as dcp

    model, compression = job(kind, "none", {"shared_momentum": 0.5})
    given = result(model, rank, 0)
    dcp.save({"hipress": compression}, checkpoint_id=path)
    return given


def load_momentum(rank, kind, path):
    import torch.distributed.checkpoint as dcp

    model, compression = job(kind, "none", {"shared_momentum": 0.5})
    dcp.load({"hipress": compression}, checkpoint_id=path)
    return result(model, rank, None)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "other"), [("ddp", "fsdp3"), ("hsdp", "fsdp2")])
def test_job_of_another_size_loads_shared_momentum_with_pytorch(tmp_path, kind, other):
    path = str(tmp_path / "state")
    saved = returned(run_ranks(save_momentum, RANKS[kind], kind, path))
    for loaded in returned(run_ranks(load_momentum, RANKS[other], other, path)):
        for name, values in loaded.items():
            torch.testing.assert_close(values, 0.5 * saved[0][name], rtol=1e-6, atol=1e-6)


def stages(rank, path):
    """Save and load the states of two stages of a pipeline, each on two ranks.

    Returns:
        Whether the state that both ways of loading restore is the one that this rank saved.
    """
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    mesh, stage = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("stage", "data")), rank // 2

    def compressed():
        model = fully_shard(Model(), mesh=mesh["data"])
        return model, hipress.torch.compress_fsdp(model, "topk", min_size=100, **TOPK)

    def values(compression):
        (part,) = compression.state_dict()[f"rank{compression.rank}"]
        return {key: value for key, value in part.items() if "/states/" in key}

    model, saved = compressed()
    result(model, rank, 0)
    dcp.save({f"hipress{stage}": saved}, checkpoint_id=path)
    _, by_pytorch = compressed()
    dcp.load({f"hipress{stage}": by_pytorch}, checkpoint_id=path)
    _, by_path = compressed()
    hipress.torch.load_checkpoint(by_path, path, key=f"hipress{stage}")
    expected = values(saved)
    assert expected
    return all(
        found.keys() == expected.keys()
        and all(torch.equal(value, expected[key]) for key, value in found.items())
        for found in map(values, (by_pytorch, by_path))
    )


@pytest.mark.slow
def test_stages_of_a_pipeline_load_their_own_states_under_their_own_keys(tmp_path):
    assert returned(run_ranks(stages, 4, str(tmp_path))) == [True] * 4


def inputs_of(rank, step):
    return torch.randn(4, 48, generator=torch.Generator().manual_seed(10 * step + rank))


def layers():
    return torch.nn.Sequential(torch.nn.Linear(48, 64), torch.nn.Tanh(), torch.nn.Linear(64, 16))


def train_sharded(rank, steps, gather, load, save):
    """Train an FSDP2 model with AdamW from a checkpoint, and save one; return the weights.

    If there is a gather, the first one after loading must give the exact weights.
    """
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    torch.manual_seed(0)
    model = layers()
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for layer in model[::2]:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    compression = hipress.torch.compress_fsdp(model, "onebit", min_size=100, gather=gather)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    weights, states = get_state_dict(model, optimizer)
    saved = {"model": weights, "optimizer": states, "compression": compression}
    if load:
        dcp.load(saved, checkpoint_id=load)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
    if load and gather:
        whole = layers()
        whole.load_state_dict({n: p.full_tensor() for n, p in model.named_parameters()})
        with torch.no_grad():
            assert torch.equal(model(inputs_of(rank, 0)), whole(inputs_of(rank, 0)))
    for step in steps:
        assert compression.step == step
        optimizer.zero_grad()
        model(inputs_of(rank, step)).square().mean().backward()
        optimizer.step()
    if save:
        weights, states = get_state_dict(model, optimizer)
        dcp.save({**saved, "model": weights, "optimizer": states}, checkpoint_id=save)
    return [p.full_tensor().detach().numpy().tobytes() for p in model.parameters()]


@pytest.mark.slow(keep=1)
def test_sharded_training_resumes_from_pytorchs_checkpoint_with_the_same_bits(tmp_path):
    path = str(tmp_path / "state")
    straight = succeed(run_ranks(train_sharded, 2, range(6), None, "", ""))
    succeed(run_ranks(train_sharded, 2, range(3), None, "", path))
    assert succeed(run_ranks(train_sharded, 2, range(3, 6), None, path, "")) == straight


@pytest.mark.slow
def test_first_gather_after_loading_is_exact_in_a_job_of_another_size(tmp_path):
    path = str(tmp_path / "state")
    succeed(run_ranks(train_sharded, 2, range(3), "differences", "", path))
    succeed(run_ranks(train_sharded, 3, range(3, 5), "differences", path, ""))
