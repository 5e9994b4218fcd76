"""DiLoCo and LocalSGD: weights that are synchronized every H steps."""

import copy
import re
from pathlib import Path

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from torch_states import flat_state

H = 4


def network(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)
    )


def train(model, optimizer, rank, steps, first=0):
    for step in range(first, first + steps):
        generator = torch.Generator().manual_seed(1000 * rank + step)
        inputs = torch.randn(16, 32, generator=generator)
        optimizer.zero_grad()
        (model(inputs) - inputs[:, :8]).square().mean().backward()
        optimizer.step()


def inner_of(model, rate=0.05):
    return torch.optim.AdamW(model.parameters(), lr=rate)


def outer_of(parameters):
    return torch.optim.SGD(parameters, lr=0.7, momentum=0.9, nesterov=True)


def reference(world_size, steps, turns, delay, alpha, early=()):
    """Compute DiLoCo as its papers define it, all ranks in one process.

    Args:
        turns: Each fragment's parameter numbers, and the step (modulo H) at which it begins.
        early: The steps before the first outer step after which weights become their mean.

    Returns:
        The weights of each rank.
    """
    models = [network() for _ in range(world_size)]
    inners = [inner_of(model) for model in models]
    outer = [torch.nn.Parameter(p.detach().clone()) for p in models[0].parameters()]
    optimizer = outer_of(outer)
    pending, first = {}, max(early, default=0)
    for step in range(1, steps + delay + 1):
        over = step > steps  # data in transit then is still used
        for rank, (model, inner) in enumerate(zip(models, inners)):
            train(model, inner, rank, 0 if over else 1, first=step - 1)
        weights = [list(model.parameters()) for model in models]
        with torch.no_grad():
            if step in early:
                for i, mean in enumerate(torch.stack(same).mean(0) for same in zip(*weights)):
                    for values in (outer[i], *(mine[i] for mine in weights)):
                        values.copy_(mean)
            for turn, numbers in turns:
                if step > first and (step - first) % H == turn and not over:
                    means = {
                        i: outer[i] - torch.stack([mine[i] for mine in weights]).mean(0)
                        for i in numbers
                    }
                    pending[step + delay] = means
            for i, mean in pending.pop(step, {}).items():
                outer[i].grad = mean
        optimizer.step()
        with torch.no_grad():
            for i in (i for i, p in enumerate(outer) if p.grad is not None):
                for mine in weights:
                    mine[i].copy_(alpha * mine[i] + (1 - alpha) * outer[i])
        optimizer.zero_grad(set_to_none=True)
    return [[p.detach().numpy() for p in model.parameters()] for model in models]


def diloco_script(rank, steps, modules, options):
    import hipress.torch

    model = network(seed=rank)  # the first rank's weights become everybody's
    inner, outer = inner_of(model), outer_of(model.parameters())
    parts = [torch.nn.Sequential(*model[:2]), torch.nn.Sequential(*model[2:])]
    with hipress.torch.DiLoCo(parts if modules else model, inner, outer, H, **options):
        train(model, inner, rank, steps)
    return [p.detach().numpy() for p in model.parameters()]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("steps", "modules", "options", "turns"),
    [
        (2 * H, False, {}, [(0, range(6))]),
        (2 * H + 1, False, {"fragment_update_alpha": 0.25}, [(0, range(6))]),
        (
            3 * H - 1,
            True,
            {"fragment_sync_delay": 1, "fragment_update_alpha": 0.5},
            [(2, range(2)), (0, range(2, 6))],
        ),
        # The middle of all 6792 numbers is in the second layer's weights.
        (
            2 * H + 3,
            False,
            {"fragments": 2, "fragment_sync_delay": 3},
            [(2, range(2)), (0, range(2, 6))],
        ),
        (
            5 + 2 * H,
            False,
            {"fragments": 2, "early_steps": 5, "early_sync_every": 2},
            [(2, range(2)), (0, range(2, 6))],
        ),
    ],
    ids=["DiLoCo", "mixed", "two modules, delayed", "two fragments, delayed", "early steps"],
)
def test_weights_are_what_the_papers_say(steps, modules, options, turns):
    found = returned(run_ranks(diloco_script, 3, steps, modules, options))
    delay, alpha = options.get("fragment_sync_delay", 0), options.get("fragment_update_alpha", 0.0)
    early = [2, 4, 5] if "early_steps" in options else []
    for mine, expected in zip(found, reference(3, steps, turns, delay, alpha, early)):
        for a, b in zip(mine, expected):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-5)


class Both:
    """Pair of optimizers, as a training loop has them."""

    def __init__(self, optimizers):
        self.optimizers = optimizers

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


def several_script(rank):
    import hipress.torch

    found = []
    for cut in (6, 2):
        model = network()
        parameters = list(model.parameters())
        inners = [torch.optim.AdamW(p, lr=0.05) for p in (parameters[:cut], parameters[cut:]) if p]
        with hipress.torch.DiLoCo(
            model, inners if cut == 2 else inners[0], outer_of(model.parameters()), H
        ) as diloco:
            train(model, Both(inners), rank, 2 * H)
        assert diloco.step == 2 * H
        found.append([p.detach().numpy().tobytes() for p in model.parameters()])
    assert found[0] == found[1]


def test_a_step_of_several_inner_optimizers_is_that_of_all():
    returned(run_ranks(several_script, 2))


def local_script(rank):
    import hipress.torch

    model = network()
    alone = copy.deepcopy(model)
    optimizer = inner_of(model)
    with hipress.torch.LocalSGD(model, optimizer, sync_every=H):
        train(model, optimizer, rank, H)
    everybody = []
    for other in range(2):
        copied = copy.deepcopy(alone)
        train(copied, inner_of(copied), other, H)
        everybody.append(torch.cat([p.detach().flatten() for p in copied.parameters()]))
    mine = torch.cat([p.detach().flatten() for p in model.parameters()])
    torch.testing.assert_close(mine, torch.stack(everybody).mean(0), rtol=1e-5, atol=1e-6)
    return mine.numpy().tobytes()


def test_local_sgd_averages_the_weights():
    first, second = returned(run_ranks(local_script, 2))
    assert first == second


def compressed_script(rank, type_, topology):
    import hipress.torch

    model = network()
    inner = inner_of(model)
    diloco = hipress.torch.DiLoCo(
        model,
        inner,
        torch.optim.SGD(model.parameters(), lr=1.0),
        H,
        topology=topology,
        compression=type_,
        min_size=512,
        fragments=2,
    )
    with diloco:
        train(model, inner, rank, 3 * H)
    stats = diloco.compression.stats()
    assert stats.compressed > 2 * stats.uncompressed, stats
    state = diloco.state_dict()
    residuals = [v for k, v in flat_state(state["compression"]).items() if k.endswith("/residual")]
    assert any(values.abs().max() > 0 for values in residuals)
    weights = torch.cat([w.flatten() for k, w in state.items() if k.startswith("outer/")])
    return weights.numpy().tobytes()


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ps", "ring"])
@pytest.mark.parametrize("type_", ["sparseloco", "onebit"])
def test_compressed_outer_weights_are_the_same_bits_on_all_ranks(type_, topology):
    assert len(set(returned(run_ranks(compressed_script, 3, type_, topology)))) == 1


def resumed_script(rank):
    """A job that continues from a checkpoint ends with the state of an uninterrupted one."""
    import hipress.torch

    def made():
        model = network()
        inner = inner_of(model)
        options = {"fragments": 2, "fragment_sync_delay": 1, "fragment_update_alpha": 0.5}
        diloco = hipress.torch.DiLoCo(
            model,
            inner,
            outer_of(model.parameters()),
            H,
            compression="sparseloco",
            min_size=64,
            **options,
        )
        return model, inner, diloco

    model, inner, diloco = made()
    with diloco:
        train(model, inner, rank, 2 * H + 2)  # when the first fragment has just been sent
        saved = copy.deepcopy([model.state_dict(), inner.state_dict(), diloco.state_dict()])
        train(model, inner, rank, H + 1, first=2 * H + 2)
    assert any(key.startswith("under_way/") for key in saved[2])
    again, inner, diloco = made()
    for part, state in zip((again, inner, diloco), saved):
        part.load_state_dict(state)
    with diloco:
        train(again, inner, rank, H + 1, first=2 * H + 2)
    for a, b in zip(model.parameters(), again.parameters()):
        assert torch.equal(a, b)


def test_training_goes_on_from_a_checkpoint_bit_for_bit():
    returned(run_ranks(resumed_script, 2))


def pytorch_script(rank, path):
    """Load a checkpoint with PyTorch, which leaves out what a new DiLoCo does not have."""
    import torch.distributed.checkpoint as dcp

    import hipress.torch

    def made():
        model = network()
        inner = inner_of(model)
        return model, inner, hipress.torch.DiLoCo(model, inner, outer_of(model.parameters()), H)

    model, inner, diloco = made()
    with diloco:
        train(model, inner, rank, H)
    dcp.save({"diloco": diloco}, checkpoint_id=path)
    with pytest.raises(ValueError, match=r"lacks \d+ tensors of the outer optimizer"):
        dcp.load({"diloco": made()[2]}, checkpoint_id=path)


def test_pytorch_checkpoint_without_outer_momentum_is_refused(tmp_path):
    returned(run_ranks(pytorch_script, 2, str(tmp_path / "state")))


def saving_script(rank):
    import hipress.torch

    model = network()
    inner = inner_of(model)
    diloco = hipress.torch.DiLoCo(
        model, inner, outer_of(model.parameters()), H, min_size=64, compression="topk"
    )
    with diloco:
        train(model, inner, rank, H)
    return diloco.state_dict()


def larger_script(rank, states):
    import hipress.torch

    model = network()
    inner = inner_of(model)
    diloco = hipress.torch.DiLoCo(
        model, inner, outer_of(model.parameters()), H, min_size=64, compression="topk"
    )
    states = copy.deepcopy(states)  # tensors that processes hand over stay shared
    together = {**states[0], "compression": states[0]["compression"] | states[1]["compression"]}
    diloco.load_state_dict(together)
    with diloco:
        train(model, inner, rank, H)
    return torch.cat([p.detach().flatten() for p in model.parameters()]).numpy().tobytes()


def test_a_job_of_another_size_takes_the_residuals():
    states = returned(run_ranks(saving_script, 2))
    assert len(set(returned(run_ranks(larger_script, 3, states)))) == 1


def nan_script(rank):
    import hipress.torch

    model = network()
    inner = torch.optim.SGD(model.parameters(), lr=0.01)
    diloco = hipress.torch.DiLoCo(
        model, inner, outer_of(model.parameters()), H, compression="sparseloco", min_size=64
    )
    with diloco:
        train(model, inner, rank, 2 * H - 1)
        before = copy.deepcopy(diloco.state_dict())
        if rank == 1:
            with torch.no_grad():
                model[0].weight[3, 3] = float("nan")
        train(model, inner, rank, 1, first=2 * H - 1)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[f"outer/{name}"]), name


def test_a_nan_takes_all_ranks_back_to_the_synchronisation_before():
    returned(run_ranks(nan_script, 2))


def after_a_nan_script(rank, delay):
    import hipress.torch

    model = network()
    inner = inner_of(model)
    with hipress.torch.DiLoCo(
        model, inner, outer_of(model.parameters()), H, fragments=2, fragment_sync_delay=delay
    ) as diloco:
        train(model, inner, rank, H)
        if rank == 1:
            with torch.no_grad():
                model[0].weight[3, 3] = float("nan")
        train(model, inner, rank, 2 * H, first=H)
        before = copy.deepcopy(diloco.state_dict())
        train(model, inner, rank, H, first=3 * H)
    assert all(bool(p.isfinite().all()) for p in model.parameters())
    for name, outer in diloco.state_dict().items():
        assert not name.startswith("outer/") or not torch.equal(outer, before[name]), name


@pytest.mark.parametrize("delay", [0, 1])
def test_after_a_nan_training_goes_on(delay):
    """Training continues after a NaN, in all fragments, and with the inner optimizer's state."""
    returned(run_ranks(after_a_nan_script, 2, delay))


def ending_script(rank):
    import hipress.torch

    model = network(seed=rank)
    model[1] = torch.nn.Linear(64, 64).requires_grad_(False)  # in each rank another one
    inner = inner_of(model)
    with hipress.torch.DiLoCo(model, inner, outer_of(model.parameters()), H) as diloco:
        weights = [[p.detach().clone() for p in model.parameters()]]
        for step in range(H + 2):
            train(model, inner, rank, 1, first=step)
            if step == H - 1:
                weights.append([p.detach().clone() for p in model.parameters()])
                diloco.synchronize()  # nothing was trained since
                weights.append([p.detach().clone() for p in model.parameters()])
        weights.append([p.detach().clone() for p in model.parameters()])
        diloco.synchronize()
        weights.append([p.detach().clone() for p in model.parameters()])
    return weights


def test_in_the_end_all_ranks_have_the_mean_of_their_weights():
    ranks = returned(run_ranks(ending_script, 2))
    for first, second in zip(*(rank[0] for rank in ranks)):
        assert torch.equal(first, second)
    for before, after in zip(*ranks[0][1:3]):
        assert torch.equal(before, after)
    for first, second, end, other in zip(*(r[i] for i in (3, 4) for r in ranks)):
        assert torch.equal(end, other)
        torch.testing.assert_close(end, (first + second) / 2, rtol=0, atol=1e-6)


def refused_script(rank):
    import hipress.torch

    model = network()
    sentences = []

    def refused(**options):
        inner, outer = inner_of(model), outer_of(model.parameters())
        arguments = {"sync_every": H, "outer_optimizer": outer, **options}
        with pytest.raises(ValueError) as caught:
            hipress.torch.DiLoCo(model, inner, **arguments)
        sentences.append(str(caught.value))

    refused(sync_every=0)
    refused(fragment_sync_delay=H)
    refused(fragment_update_alpha=1.0)
    refused(fragments=5)
    refused(early_steps=-1)
    refused(early_steps=3, early_sync_every=0)
    refused(compression="nonsense")
    refused(sync_every=H + rank)
    used = outer_of(model.parameters())
    train(model, used, 0, 1)
    refused(outer_optimizer=used)
    refused(outer_optimizer=outer_of(model[0].parameters()))
    refused(outer_optimizer=outer_of((model[0] if rank == 1 else model).parameters()))
    return sentences


def test_wrong_settings_are_refused_with_a_sentence():
    for sentences in returned(run_ranks(refused_script, 2)):
        expected = [
            "sync_every must be 1 or more",
            "fragment_sync_delay must be in [0, sync_every)",
            "fragment_update_alpha must be in [0, 1)",
            "too few steps for 5 fragments",
            "early_steps must be 0 or more, not -1",
            "early_sync_every must be 1 or more, not 0",
            'unknown compression type "nonsense"',
            "every 4",
            "has made steps before",
            "lacks 4 of the model's parameters",
            "lacks 4 of the model's parameters",
        ]
        for sentence, part in zip(sentences, expected, strict=True):
            assert part in sentence


def preset_script(rank, name, given):
    import hipress.torch

    def trained(start):
        model = network(seed=rank)
        inner = inner_of(model)
        with start(model, inner) as diloco:
            train(model, inner, rank, 2 * H)
        return [p.detach().numpy().tobytes() for p in model.parameters()], diloco

    def written_out(model, inner):
        outer = torch.optim.SGD(model.parameters(), **given["outer"])
        return hipress.torch.DiLoCo(model, inner, outer, H, **given["more"])

    preset = getattr(hipress.torch.DiLoCo, name)
    own, diloco = trained(lambda model, inner: preset(model, inner, **given["changed"]))
    assert preset(network(), inner_of(network())).sync_every == given["steps"]
    assert own == trained(written_out)[0]
    return own, diloco.compression.stats().uncompressed


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (
            "sparseloco",
            {
                "steps": 30,
                "changed": {"sync_every": H},
                "outer": {"lr": 1.0},
                "more": {
                    "compression": {"type": "sparseloco", "ratio": 1 / 64, "decay": 0.95},
                    "min_size": 64,
                },
            },
        ),
        (
            "streaming",
            {
                "steps": 100,
                "changed": {"sync_every": H, "fragments": 3, "min_size": 512},
                "outer": {"lr": 0.7, "momentum": 0.9, "nesterov": True},
                "more": {
                    "compression": {"type": "maxmin", "bits": 4},
                    "fragments": 3,
                    "fragment_sync_delay": 1,
                    "fragment_update_alpha": 0.5,
                    "min_size": 512,
                },
            },
        ),
    ],
)
def test_presets_are_what_the_papers_had(name, given):
    (first, uncompressed), (second, _) = returned(run_ranks(preset_script, 2, name, given))
    assert first == second or name == "streaming"  # whose ranks keep half of their local weights
    assert (uncompressed < 100) == (name == "sparseloco")  # all but the last layer's bias


def without_with_script(rank):
    """Return weights of training with and without a with-statement, and after it has ended."""
    import hipress.torch

    options = {"fragments": 2, "fragment_sync_delay": 1}
    weights = []
    for uses_with in (True, False):
        model = network(seed=rank)
        inner = inner_of(model)
        earlier = hipress.torch.LocalSGD(model, inner, H)
        diloco = hipress.torch.DiLoCo(model, inner, outer_of(model.parameters()), H, **options)
        if uses_with:
            with diloco:
                train(model, inner, rank, 2 * H)
        else:
            train(model, inner, rank, 2 * H)
            assert diloco.is_pending
            with pytest.raises(ValueError, match="has pending fragments"):
                hipress.torch.LocalSGD(model, inner, H)
            with pytest.raises(ValueError, match="has pending fragments"):
                earlier.__enter__()
            diloco.finish()
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]).numpy())
        assert diloco.step == 2 * H
    next_one = hipress.torch.LocalSGD(model, inner, H)
    train(model, inner, rank, H)
    assert (diloco.step, next_one.step) == (2 * H, H)
    next_one.detach()
    train(model, inner, rank, 1)
    assert next_one.step == H
    return weights


def test_diloco_synchronizes_without_with_statement():
    for with_statement, without in returned(run_ranks(without_with_script, 2)):
        assert with_statement.tobytes() == without.tobytes()


def guide_script(rank, codes):
    """Run the guide's scripts in this process group, and return the weights after each."""
    found = []
    for code in codes:
        code = re.sub(r"^dist\.(init|destroy)_process_group\(.*\)$", "", code, flags=re.MULTILINE)
        scope = {}
        exec(code, scope)
        weights = [p.detach().flatten() for p in scope["model"].parameters()]
        found.append(torch.cat(weights).numpy().tobytes())
        assert scope["diloco"].step >= 30
    return found


def test_code_of_the_guide_synchronizes_weights():
    page = Path(__file__).resolve().parents[4] / "docs/guides/train-over-slow-links.md"
    codes = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    codes = [code for code in codes if "hipress.torch.DiLoCo(" in code and "mesh" not in code]
    assert len(codes) == 2
    if not hasattr(torch.optim, "Muon"):
        codes = codes[:1]
    first, second = returned(run_ranks(guide_script, 2, codes))
    assert first == second


def making_state_script(rank):
    """Return the steps counted after an optimizer's state was made, and after one real step."""
    from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict

    import hipress.torch

    model = network()
    inner = inner_of(model)
    diloco = hipress.torch.LocalSGD(model, inner, H)
    get_optimizer_state_dict(model, inner)
    assert inner.state
    counted = [diloco.step]
    train(model, inner, rank, 1)
    return [*counted, diloco.step]


def test_step_that_makes_optimizer_state_is_not_counted():
    assert returned(run_ranks(making_state_script, 1)) == [[0, 1]]


def averaged_already_script(rank):
    """Return the errors for models and optimizers that average gradients in each step."""
    import torch.distributed as dist
    from torch.distributed._composable import replicate
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    def refused(model, inner, **options):
        with pytest.raises(ValueError) as caught:
            hipress.torch.DiLoCo(model, inner, outer_of(model.parameters()), H, **options)
        return str(caught.value)

    model = network()
    wrapped = DistributedDataParallel(model)
    said = [
        refused(wrapped, inner_of(wrapped)),
        refused(torch.nn.Sequential(wrapped), inner_of(wrapped)),
        refused(replicate(network()), inner_of(model)),
    ]
    optimizer = hipress.torch.DistributedOptimizer(inner_of(model), model.named_parameters())
    said.append(refused(model, optimizer))
    sites = [dist.new_group([0]), dist.new_group([1])]
    wrapped = DistributedDataParallel(network(), process_group=sites[rank])
    inner = inner_of(wrapped)
    with hipress.torch.LocalSGD(wrapped, inner, H):
        train(wrapped, inner, rank, H)
    weights = [p.detach().numpy().tobytes() for p in wrapped.parameters()]
    return said, weights


def test_diloco_refuses_gradients_that_its_ranks_average():
    (said, weights), (_, others) = returned(run_ranks(averaged_already_script, 2))
    parts = ["wrapped in DistributedDataParallel"] * 2
    parts += ["replicate() has replicated", "the inner optimizer is a DistributedOptimizer"]
    for sentence, part in zip(said, parts, strict=True):
        assert part in sentence
    assert weights == others


def test_the_simulator_cuts_models_where_they_are_cut():
    from hipress.simulator.models import Layer, Model
    from hipress.simulator.rounds import cut
    from hipress.torch.integrations.outer import parts_of

    sizes = [5, 900, 3, 3, 400, 1, 2000, 10, 600]
    module = torch.nn.ParameterList([torch.zeros(size) for size in sizes])
    layers = tuple(Layer(str(i), size) for i, size in enumerate(sizes))
    model = Model("", "", 1, layers, (1.0,) * 9, (1.0,) * 9)
    for fragments in range(1, 8):
        ours = [[layer.name for layer in part.layers] for part in cut(model, fragments)]
        assert ours == [[name for name, _ in part] for part in parts_of(module, fragments)]
