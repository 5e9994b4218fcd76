"""Weights of FSDP2 models that are gathered by the engine: exactly, in blocks, as differences."""

import os

import pytest

from harness.torch_ranks import returned, run_ranks, torch

fsdp = pytest.importorskip("torch.distributed.fsdp", reason="needs torch")
if not hasattr(fsdp.FSDPModule, "set_custom_all_gather"):
    pytest.skip(
        f"needs FSDPModule.set_custom_all_gather, which PyTorch {torch.__version__} has not",
        allow_module_level=True,
    )

WIDTH = 48


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, 3 * WIDTH + 1)
        self.down = torch.nn.Linear(3 * WIDTH + 1, WIDTH, bias=False)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


def network(device="cpu", **options):
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Linear(7, WIDTH), *(Layer() for _ in range(4)), torch.nn.Linear(WIDTH, 5)
    ).to(device)
    for layer in model[1:-1]:
        fsdp.fully_shard(layer, **options)
    return fsdp.fully_shard(model, **options)


def gathered(model):
    """Return copies of the weights that each module computes with, in the order of the gathers."""
    seen = []

    def hook(module, _):
        seen.extend(p.detach().clone() for p in module.parameters(recurse=False))

    for module in model.modules():
        module.register_forward_pre_hook(hook)
    return seen


def train(
    rank,
    gather,
    steps,
    bits=None,
    inspect=False,
    accumulate=1,
    dtype=None,
    fused=False,
    encode_on="host",
    **options,
):
    import hipress.torch

    if dtype is not None:
        options["mp_policy"] = fsdp.MixedPrecisionPolicy(
            param_dtype=dtype, reduce_dtype=torch.float32
        )
    model = network(**options)
    compression = hipress.torch.compress_fsdp(
        model, "none", gather=gather, gather_bits=bits, encode_on=encode_on
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=fused)
    losses, seen = [], gathered(model) if inspect else []
    for step in range(steps):
        for part in range(accumulate):
            model.set_requires_gradient_sync(part == accumulate - 1)
            generator = torch.Generator().manual_seed(1000 * step + 10 * part + rank)
            x = torch.randn(16, 7, generator=generator)
            target = x @ torch.linspace(-1, 1, 35).view(7, 5)
            x, target = x.to(options.get("device")), target.to(options.get("device"))
            loss = torch.nn.functional.mse_loss(model(x).float(), target)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    whole = {n: p.full_tensor().detach() for n, p in model.named_parameters()}
    return losses, whole, [each.float() for each in seen], compression.gathers


def _run(rank, args, options):
    losses, whole, seen, gathers = train(rank, *args, **options)
    return losses, whole, seen, gathers and (gathers.replica_bytes, gathers.exchanges)


def results(world_size, *args, **options):
    return returned(run_ranks(_run, world_size, args, options))


@pytest.mark.parametrize("options", [{}, {"reshard_after_forward": False}])
def test_exact_gathers_give_the_bits_of_pytorch(options):
    expected = results(3, None, 4, **options)
    found = results(3, "exact", 4, **options)
    for (losses, whole, *_), (wanted, weights, *_) in zip(found, expected):
        assert losses == wanted
        assert all(torch.equal(whole[name], weights[name]) for name in weights)


@pytest.mark.parametrize("gather", ["blocks", "differences"])
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_all_ranks_compute_with_the_same_bits(gather, dtype):
    found = results(3, gather, 4, inspect=True, dtype=dtype)
    first = found[0][2]
    assert len(first) == 4 * (4 * 5 + 4)
    for _, _, seen, _ in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(first, seen, strict=True))


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"accumulate": 2}])
def test_differences_train_as_exact_weights_do(options):
    ((exact, *_),) = results(2, "exact", 40, **options)[:1]
    ((losses, *_),) = results(2, "differences", 40, **options)[:1]
    assert losses[0] == exact[0]
    assert abs(losses[-1] / exact[-1] - 1) < 0.02
    assert losses[-1] < 0.5 * losses[0]


def test_replica_is_close_to_the_weights():
    found = results(2, "differences", 12, inspect=True)
    _, _, seen, (replica_bytes, exchanges) = found[0]
    exact = results(2, "exact", 12, inspect=True)[0][2]
    for a, b in zip(seen[-20:], exact[-20:]):
        assert (a - b).norm() <= 0.02 * b.norm() + 1e-3
    assert replica_bytes >= 4 * sum(w.numel() for w in found[0][1].values())
    assert exchanges == 12 * 5  # one for each module and step, none in backward passes


def _skip_a_layer(rank, forget):
    """Return a layer's error, and its last update, after a step that did not use it."""
    import hipress.torch

    model, skipped = network(), []
    compression = hipress.torch.compress_fsdp(model, "none", gather="differences")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def forward(x):
        for i, layer in enumerate(model):
            x = x if i in skipped else layer(x)
        return x

    model.forward, seen = forward, []
    model[3].up.register_forward_pre_hook(lambda up, _: seen.append(up.weight.detach().clone()))
    exact = []
    for step in range(4):
        skipped[:] = [3] if step == 2 else []  # its differences were on their way already
        exact.append(model[3].up.weight.full_tensor().detach())
        if forget and step == 3:
            compression.gathers.forget()
        model(torch.ones(2, 7)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return (seen[-1] - exact[-1]).norm().item(), (exact[-1] - exact[-2]).norm().item()


@pytest.mark.slow
def test_replica_follows_weights_of_a_module_that_was_skipped():
    for error, update in returned(run_ranks(_skip_a_layer, 2, False)):
        assert 0 < update and error < 0.3 * update
    for error, update in returned(run_ranks(_skip_a_layer, 2, True)):
        assert 0 < update and error == 0


def _change_behind_our_back(rank, forget):
    import hipress.torch

    model = network()
    compression = hipress.torch.compress_fsdp(model, "none", gather="differences")
    x = torch.ones(2, 7)
    model(x).sum().backward()
    for parameter in model.parameters():
        parameter.to_local().data.mul_(0.5)
    model.zero_grad()
    model.set_requires_gradient_sync(False)
    if forget:
        compression.gathers.forget()
    model(x).sum().backward()
    for parameter in model.parameters():
        parameter.to_local().data.mul_(0.5)
    if forget:
        compression.gathers.forget()
    with torch.no_grad():
        return model(x).abs().max().item()


def test_unseen_change_of_weights_is_an_error():
    for found in run_ranks(_change_behind_our_back, 2, False):
        assert "were changed otherwise than by an optimizer" in found, found
    first, second = returned(run_ranks(_change_behind_our_back, 2, True))
    assert first == second


def _refused(rank, options, ranks_of_host="1"):
    import hipress.torch

    os.environ["LOCAL_WORLD_SIZE"] = ranks_of_host
    hipress.torch.compress_fsdp(network(), "none", **options)


def test_wrong_gathers_are_refused():
    for options, sentence in [
        (
            {"gather": "fast"},
            "gather must be one of auto, pytorch, exact, lossless, blocks, differences",
        ),
        ({"gather": "exact", "gather_bits": 8}, "gather='exact' has no gather_bits"),
        ({"gather": "auto", "gather_bits": 8}, "gather='auto' has no gather_bits"),
        ({"gather_bits": 8}, "gather=None has no gather_bits"),
        ({"gather": "blocks", "gather_bits": 9}, "gather_bits must be from 1 to 8, not 9"),
    ]:
        for found in run_ranks(_refused, 2, options):
            assert sentence in found
    many = str(1 << 40)  # so that a rank's share of the memory is nothing
    for found in run_ranks(_refused, 2, {"gather": "differences"}, many):
        assert "its share of the available memory is 0.0 GB" in found
