"""DiLoCo and DeMo of models that are sharded inside a site: each rank exchanges its own shards."""

import copy
import re
from pathlib import Path

import pytest

from harness.torch_ranks import returned, run_ranks, torch

H = 3
SITES = 2


def network(seed=0, width=33):
    """Return a model with uneven shards, and one row that only the first rank of a site has."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(12, width),
        torch.nn.Tanh(),
        torch.nn.Linear(width, 7),
        torch.nn.Linear(7, 1),
    )


def mesh_of(ranks, *names):
    """Return the device mesh of all sites, whose ranks have this shape."""
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", (SITES, *ranks), mesh_dim_names=("site", *names))


def sharded(model, mesh):
    from torch.distributed.fsdp import fully_shard

    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(model, optimizer, site, steps, first=0):
    """Make steps in which all ranks of a site have the same inputs, as one rank would have."""
    for step in range(first, first + steps):
        generator = torch.Generator().manual_seed(1000 * site + step)
        inputs = torch.randn(16, 12, generator=generator)
        optimizer.zero_grad()
        (model(inputs) - inputs[:, :1]).square().mean().backward()
        optimizer.step()


def inner_of(model):
    return torch.optim.AdamW(model.parameters(), lr=0.05)


def outer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)


def whole(tensor):
    from torch.distributed.tensor import DTensor

    tensor = tensor.detach()
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.clone()


def weights_of(model):
    return [whole(p) for p in model.parameters()]


def diloco_of(model, inner, group, name="DiLoCo", **options):
    import hipress.torch

    if name == "DiLoCo":
        return hipress.torch.DiLoCo(model, inner, outer_of(model), H, group=group, **options)
    if name == "LocalSGD":
        return hipress.torch.LocalSGD(model, inner, H, group=group, **options)
    preset = getattr(hipress.torch.DiLoCo, name)
    return preset(model, inner, sync_every=H, group=group, **options)


def trained(model, site, group, steps, **options):
    inner = inner_of(model)
    with diloco_of(model, inner, group, **options):
        train(model, inner, site, steps)
    return weights_of(model)


METHODS = {
    "DiLoCo": {},
    "delayed": {"fragments": 2, "fragment_sync_delay": 1, "fragment_update_alpha": 0.5},
    "early steps": {"early_steps": 4, "early_sync_every": 2},
    "LocalSGD": {"name": "LocalSGD"},
}


def methods_script(rank):
    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    found = {}
    for method, options in METHODS.items():
        # All sites get the first site's weights.
        expected = trained(network(site), site, group, 3 * H, **options)
        # Without a group, sharded models find the ranks with the same shard.
        weights = trained(sharded(network(site), mesh["shard"]), site, None, 3 * H, **options)
        found[method] = expected, weights
    return found


def test_sharded_diloco_gives_the_weights_of_unsharded_diloco():
    for found in returned(run_ranks(methods_script, 4)):
        for method, (expected, weights) in found.items():
            for a, b in zip(expected, weights, strict=True):
                assert torch.equal(a, b), method


def placements_script(rank):
    """Return weights of sites of 4 or 2 ranks in several placements, with those expected."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    def tensor_parallel(model, mesh):
        return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})

    def both(model):
        model = tensor_parallel(model, mesh["b"])
        return fully_shard(model, mesh=mesh["a"])

    mesh = mesh_of((2, 2), "a", "b")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    ways = {
        "hybrid": lambda model: sharded(model, mesh["a", "b"]),
        "tensor parallel": lambda model: tensor_parallel(model, mesh["b"]),
        "FSDP2 and tensor parallel": both,
    }
    found = {}
    for compression in ("none", {"type": "maxmin", "bits": 8}):
        options = {"compression": compression, "min_size": 32}
        expected = trained(network(site, 32), site, group, 2 * H, **options)
        for way, make in ways.items():
            weights = trained(make(network(site, 32)), site, group, 2 * H, **options)
            found[way, str(compression)] = expected, weights
    return found


@pytest.mark.slow
def test_sites_of_hybrid_and_tensor_parallel_models_have_the_same_weights():
    ranks = returned(run_ranks(placements_script, 8))
    for case, (expected, weights) in ranks[0].items():
        tolerance = 1e-5 if "none" in case else 0.1
        for index, (a, b) in enumerate(zip(expected, weights, strict=True)):
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
            assert all(torch.equal(found[case][1][index], b) for found in ranks), case


def compressed_script(rank):
    """Return outer weights of this rank's shards, and whether any were compressed."""
    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    found = {}
    for name, options in {
        "sparseloco": {"name": "sparseloco"},
        "streaming": {"name": "streaming", "fragments": 2, "min_size": 16},
        "onebit": {"compression": "onebit", "min_size": 16},
    }.items():
        model = sharded(network(site), mesh["shard"])
        inner = inner_of(model)
        with diloco_of(model, inner, group, **options) as diloco:
            train(model, inner, site, 4 * H)
        state = diloco.state_dict()
        outer = torch.cat([v.flatten() for k, v in state.items() if k.startswith("outer/")])
        found[name] = outer.numpy().tobytes(), diloco.compression.stats().compressed
    return found


@pytest.mark.slow
def test_compressed_shards_are_the_same_bits_at_all_sites():
    first, second, third, fourth = returned(run_ranks(compressed_script, 4))
    for name in first:
        assert first[name][0] == third[name][0] and second[name][0] == fourth[name][0], name
        assert min(found[name][1] for found in (first, second)) > 0, name


def auto_script(rank):
    """Return type auto's choice, the log, and the outer weights, on a network with known times."""
    import hipress.torch
    from test_torch_diloco_auto import SLOW, know

    every = 12
    lines = know({name: 20 * ms for name, ms in SLOW.items()})  # of a larger model
    mesh = mesh_of((2,), "shard")
    site = mesh["site"].get_local_rank()
    model = sharded(network(site), mesh["shard"])
    inner, outer = inner_of(model), outer_of(model)
    diloco = hipress.torch.DiLoCo(model, inner, outer, every, compression="auto", min_size=16)
    train(model, inner, site, 3 * every)
    diloco.finish()
    schedule = diloco._scheduler.schedule.delay, len(diloco._outer.fragments)
    state = diloco.state_dict()
    weights = torch.cat([v.flatten() for k, v in state.items() if k.startswith("outer/")])
    return str(diloco.compression.settings), schedule, lines, weights.numpy().tobytes()


def test_type_auto_chooses_the_same_for_all_shards():
    found = returned(run_ranks(auto_script, 4))
    settings, (delay, fragments), lines, _ = found[0]
    assert "maxmin" in settings and delay > 0
    assert all(each[:2] == found[0][:2] for each in found)
    assert [bool(each[2]) for each in found] == [True, False, False, False]
    assert found[0][3] == found[2][3] and found[1][3] == found[3][3]


def fragments_script(rank):
    """Train with one module in each fragment, of which rank 1's last has no elements."""
    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    import hipress.torch

    found = []
    for make in (lambda model: model, lambda model: sharded(model, mesh["shard"])):
        model = make(network(site))
        inner = inner_of(model)
        modules = [model[0], model[2], model[3]]
        with hipress.torch.DiLoCo(modules, inner, outer_of(model), H, group=group):
            train(model, inner, site, 2 * H)
        found.append(weights_of(model))
    return found


def test_fragment_without_elements_on_a_rank_is_synchronized():
    for expected, weights in returned(run_ranks(fragments_script, 4)):
        assert all(map(torch.equal, expected, weights))


def nan_script(rank):
    """Make a NaN in the shard of one rank, after the last step before an outer step."""
    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    model = sharded(network(site), mesh["shard"])
    inner = inner_of(model)
    made = []

    def damage(*_):
        made.append(1)
        if len(made) == H and rank == 2:
            parameter = next(model.parameters())
            with torch.no_grad():
                parameter.to_local()[0, 0] = float("nan")
                inner.state[parameter]["exp_avg"].to_local()[0, 0] = float("nan")

    inner.register_step_post_hook(damage)
    diloco = diloco_of(model, inner, group)
    before = weights_of(model)
    train(model, inner, site, H)
    after, state = weights_of(model), inner.state[next(model.parameters())]
    steps = float(state["step"])
    train(model, inner, site, H, first=H)
    diloco.detach()
    return all(map(torch.equal, before, after)), steps, weights_of(model)


def test_nan_in_one_shard_rolls_back_all_ranks_of_all_sites():
    found = returned(run_ranks(nan_script, 4))
    assert [unchanged for unchanged, _, _ in found] == [True] * 4
    assert [steps for _, steps, _ in found] == [H, H, 0, 0]  # of the site of the NaN
    for _, _, weights in found:
        assert all(bool(each.isfinite().all()) for each in weights)
        assert all(map(torch.equal, weights, found[0][2]))


def nan_without_state_script(rank):
    """Make a NaN on rank 0 of an optimizer without states."""
    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    model = sharded(network(site), mesh["shard"])
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    diloco = diloco_of(model, inner, group)
    before = weights_of(model)
    if rank == 0:
        with torch.no_grad():
            next(model.parameters()).to_local()[0, 0] = float("nan")
    diloco.synchronize()
    return [all(map(torch.equal, before, weights_of(model)))]


def test_nan_with_an_optimizer_without_states_rolls_back():
    assert returned(run_ranks(nan_without_state_script, 4)) == [[True]] * 4


def failure_script(rank):
    """End rank 2 after its last inner step; return other ranks' errors, and whether they changed.

    Rank 1 completes its own exchange with rank 3, unless their sites' ranks agree.
    """
    import os

    import hipress.torch

    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    model = sharded(network(site), mesh["shard"])
    inner = inner_of(model)
    made, before = [], []

    def end(*_):
        made.append(1)
        if len(made) == H:
            before.extend(p.to_local().clone() for p in model.parameters())
            if rank == 2:
                os._exit(3)

    inner.register_step_post_hook(end)
    diloco = diloco_of(model, inner, group, timeout=15)
    with pytest.raises(hipress.torch.HipressError) as caught:
        train(model, inner, site, H)
    after = [p.to_local() for p in model.parameters()]
    with pytest.raises(hipress.torch.HipressError):
        diloco.finish()
    return str(caught.value), all(map(torch.equal, before, after))


def test_outer_step_that_fails_for_one_shard_changes_no_weight_of_the_site():
    zero, one, two, three = run_ranks(failure_script, 4)
    assert two == "died with status 3"
    assert "rank 2" in zero[0]
    assert "failed on another rank of the site of rank 1" in one[0]
    assert "rank 3" in three[0] or "rank 1 gave up" in three[0]  # whichever comes first
    assert all(unchanged for _, unchanged in (zero, one, three))


def resumed_script(rank):
    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    options = {"fragments": 2, "fragment_sync_delay": 1, "compression": "onebit", "min_size": 16}

    def made():
        model = sharded(network(site), mesh["shard"])
        inner = inner_of(model)
        return model, inner, diloco_of(model, inner, group, **options)

    model, inner, diloco = made()
    train(model, inner, site, 2 * H)
    saved = copy.deepcopy([model.state_dict(), inner.state_dict(), diloco.state_dict()])
    train(model, inner, site, H + 1, first=2 * H)
    diloco.finish()
    assert any(key.startswith("under_way/") for key in saved[2])
    for name, parameter in model.named_parameters():
        outer = saved[2][f"outer/{name}"]
        assert type(outer) is torch.Tensor and outer.shape == parameter.to_local().shape
    again, inner, diloco = made()
    for part, state in zip((again, inner, diloco), saved):
        part.load_state_dict(state)
    train(again, inner, site, H + 1, first=2 * H)
    diloco.finish()
    assert all(map(torch.equal, weights_of(model), weights_of(again)))
    with pytest.raises(ValueError) as caught:
        diloco.load_state_dict({**saved[2], "shard": f"{1 - rank % 2} of 2"})
    return [str(caught.value)]


@pytest.mark.slow
def test_sharded_training_resumes_from_a_checkpoint_bit_for_bit():
    for rank, (sentence,) in enumerate(returned(run_ranks(resumed_script, 4))):
        assert f"shard {1 - rank % 2} of 2, and this rank has shard {rank % 2} of 2" in sentence


def zero_rate_script(rank):
    """Make a first step with a learning rate of 0, of a parameter that only rank 0 has."""
    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    torch.manual_seed(0)
    model = sharded(torch.nn.Sequential(torch.nn.Linear(12, 1)), mesh["shard"])
    inner = torch.optim.SGD(model.parameters(), lr=0.0)
    diloco = diloco_of(model, inner, group)
    train(model, inner, site, 1)
    return diloco.step


def test_step_with_learning_rate_zero_counts_on_ranks_without_elements():
    assert returned(run_ranks(zero_rate_script, 4)) == [1] * 4


def refused_script(rank):
    import hipress.torch
    from hipress.local_sgd.schedule import Schedule
    from hipress.torch.elastic.compression import TensorOuterSteps

    mesh = mesh_of((2,), "shard")
    group = mesh["site"].get_group()
    model = sharded(network(), mesh["shard"])
    sentences = []

    def refused(make=hipress.torch.DiLoCo, **options):
        arguments = {"outer_optimizer": outer_of(model), "sync_every": H, "group": group, **options}
        with pytest.raises(ValueError) as caught:
            make(model, inner_of(model), **arguments)
        sentences.append(str(caught.value))

    refused(group=torch.distributed.group.WORLD)
    refused(group=mesh["shard"].get_group())
    refused(sync_every=H + (rank == 1))
    refused(sync_every=0 if rank == 3 else H)
    refused(outer_optimizer=torch.optim.Adafactor(model.parameters()))
    with pytest.raises(ValueError) as caught:
        named = list(model.named_parameters())
        TensorOuterSteps(named, inner_of(model), outer_of(model), Schedule(H))
    sentences.append(str(caught.value))
    return sentences


def test_misuse_of_sharded_models_is_refused_on_all_ranks():
    for sentences in returned(run_ranks(refused_script, 4)):
        expected = [
            "give group= the ranks with the same shard, one of each site",
            "give group= the ranks with the same shard, one of each site",
            "differ in schedule: 'every 3",
            "sync_every must be 1 or more, not 0",
            "the outer optimizer is Adafactor, which needs whole parameters",
            "elastic training takes whole parameters only",
        ]
        for sentence, part in zip(sentences, expected, strict=True):
            assert part in sentence


def gathers_script(rank):
    """Compress what FSDP2 sends inside the sites: gradients, and weights as differences."""
    import hipress.torch

    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    model = sharded(network(site), mesh["shard"])
    hipress.torch.compress_fsdp(model, "fp16", min_size=16, gather="differences")
    inner = inner_of(model)
    with diloco_of(model, inner, group):
        train(model, inner, site, 2 * H)
    return weights_of(model)


@pytest.mark.slow
def test_fsdp2_may_be_compressed_inside_the_sites():
    from torch.distributed.fsdp import FSDPModule

    if not hasattr(FSDPModule, "set_custom_all_gather"):
        pytest.skip(f"PyTorch {torch.__version__} has no FSDPModule.set_custom_all_gather")
    first, *others = returned(run_ranks(gathers_script, 4))
    for weights in others:
        assert all(map(torch.equal, first, weights))


def demo_script(rank):
    """Return weights of DeMo, unsharded and sharded, and the losses of compressed shards."""
    import hipress.torch

    mesh = mesh_of((2,), "shard")
    site, group = mesh["site"].get_local_rank(), mesh["site"].get_group()
    exact, compressed = [], []
    for found, make, options in [
        (exact, lambda model: model, {"min_size": 1 << 20}),
        (exact, lambda model: sharded(model, mesh["shard"]), {"min_size": 1 << 20}),
        (compressed, lambda model: sharded(model, mesh["shard"]), {"compression_topk": 4}),
    ]:
        model = make(network(site))
        hipress.torch.broadcast_parameters(model.state_dict(), root_rank=rank % 2, group=group)
        options = {"min_size": 16, "compression_chunk": 4, **options}
        optimizer = hipress.torch.DeMo(model.named_parameters(), 0.01, group=group, **options)
        train(model, optimizer, site, 10)
        found.append(weights_of(model))
    assert optimizer.compression.stats().compressed
    with pytest.raises(ValueError) as caught:
        hipress.torch.DeMo(model.named_parameters(), group=mesh["shard"].get_group())
    return exact, compressed[0], str(caught.value)


def test_demo_steps_by_the_signs_of_the_shards_of_all_sites():
    ranks = returned(run_ranks(demo_script, 4))
    for (unsharded, weights), compressed, sentence in ranks:
        assert all(map(torch.equal, unsharded, weights))
        assert all(map(torch.equal, compressed, ranks[0][1]))
        assert not all(map(torch.equal, compressed, weights))
        assert "of the group of DeMo: shard the model over the ranks of one site" in sentence


def partial_script(rank):
    """Return the gradient of a replicated parameter that is a partial sum on each rank of a site.

    Tensor parallelism has such gradients of the parameters of norms.
    """
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    import hipress.torch

    mesh = mesh_of((2,), "shard")
    inside, group = mesh["shard"], mesh["site"].get_group()
    parameter = torch.nn.Parameter(distribute_tensor(torch.zeros(8), inside, [Replicate()]))
    optimizer = hipress.torch.DeMo([("norm", parameter)], 1.0, group=group)
    values = torch.full((1, 8), float(rank))
    inputs = DTensor.from_local(values, inside, [Shard(0)], run_check=False)
    (inputs * parameter).sum().backward()
    optimizer.synchronize()
    return [parameter.grad.to_local().numpy()]


@pytest.mark.slow
def test_demo_adds_up_partial_gradients_inside_a_site():
    for (gradient,) in returned(run_ranks(partial_script, 4)):
        assert gradient.tolist() == [3.0] * 8  # the mean of 0 + 1 and 2 + 3


def guide_script(rank, code):
    """Run the guide's script in this process group, and return the weights."""
    code = re.sub(r"^dist\.(init|destroy)_process_group\(.*\)$", "", code, flags=re.MULTILINE)
    scope = {}
    exec(code, scope)
    assert scope["diloco"].step >= 30
    return weights_of(scope["model"])


@pytest.mark.slow
def test_code_of_the_guide_synchronizes_a_sharded_model():
    page = Path(__file__).resolve().parents[4] / "docs/guides/train-over-slow-links.md"
    codes = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = [code for code in codes if "fully_shard(" in code]
    first, *others = returned(run_ranks(guide_script, 4, code))
    for weights in others:
        assert all(map(torch.equal, first, weights))
