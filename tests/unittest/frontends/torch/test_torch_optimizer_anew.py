"""A DistributedOptimizer that replaces another one."""

import copy
import gc

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_optimizer import said
from torch_states import flat_state


def make(model, compression="none", **options):
    import hipress.torch as hvd

    inner = torch.optim.SGD(model.parameters(), lr=0.125)
    return hvd.DistributedOptimizer(inner, model.named_parameters(), compression, **options)


def step(model, optimizer, rank):
    optimizer.zero_grad()
    model(torch.full((2, 8), rank + 1.0)).sum().backward()
    optimizer.step()


def expected(first, steps, freeze=0):
    """Return the weights after so many steps with the ranks' mean input; ``freeze`` of them with a
    frozen first layer."""
    torch.manual_seed(0)
    model = first()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    for number in range(steps):
        if hasattr(model, "__getitem__"):
            model[0].requires_grad_(number >= freeze)
        optimizer.zero_grad()
        model(torch.full((2, 8), 1.5)).sum().backward()
        optimizer.step()
    return list(model.parameters())


def two_layers():
    return torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Linear(6, 4))


def unfreezes(rank):
    """An optimizer is created again, as the message says, when a layer is unfrozen."""
    model = two_layers()
    model[0].requires_grad_(False)
    old = make(model)
    step(model, old, rank)
    model[0].requires_grad_(True)
    found = said(lambda: step(model, old, rank))
    new = make(model)
    for _ in range(3):
        step(model, new, rank)
    for mine, theirs in zip(model.parameters(), expected(two_layers, 4, freeze=1)):
        torch.testing.assert_close(mine, theirs)
    return found, said(old.step)


def test_a_new_one_takes_the_place_of_one_that_lacks_parameters():
    for found, old in returned(run_ranks(unfreezes, 2)):
        assert "make a new DistributedOptimizer" in found
        assert "averages no gradients after detach()" in old


def one_layer():
    return torch.nn.Linear(8, 4, bias=False)


def phases(rank):
    """Check that two optimizers do not reduce one gradient, which is its bucket's memory, at
    once."""
    model, found = one_layer(), []
    for phase in range(3):
        optimizer = make(model, op="sum" if phase else "average")
        model.weight.grad = None
        model(torch.full((2, 8), rank + 1.0)).sum().backward()
        optimizer.synchronize()
        found.append(model.weight.grad.flatten().tolist())
    hooks = len(model.weight._post_accumulate_grad_hooks)
    del optimizer
    gc.collect()
    return found, hooks, len(model.weight._post_accumulate_grad_hooks)


@pytest.mark.slow
def test_every_phase_of_training_may_have_one_of_its_own():
    for found, hooks, left in returned(run_ranks(phases, 2)):
        assert found == [[3.0] * 32, [6.0] * 32, [6.0] * 32]
        assert (hooks, left) == (1, 0)


def too_early(rank):
    """Refuse a replacement while gradients are in transit. All ranks report that, and the old
    optimizer continues."""
    model = one_layer()
    old = make(model)
    old.zero_grad()
    model(torch.full((2, 8), rank + 1.0)).sum().backward()
    found = said(lambda: make(model))
    old.step()
    for mine, theirs in zip(model.parameters(), expected(one_layer, 1)):
        torch.testing.assert_close(mine, theirs)
    new = make(model)
    step(model, new, rank)
    old.detach()  # once more, which leaves the new one alone
    return found, len(model.weight._post_accumulate_grad_hooks)


def test_it_waits_for_gradients_that_are_on_their_way():
    for found, hooks in returned(run_ranks(too_early, 2)):
        assert "another DistributedOptimizer is averaging the gradient of 'weight'" in found
        assert hooks == 1


def probed(rank):
    """PyTorch's state_dict functions create an optimizer's state with a step before the first one
    or on one rank only: it averages nothing, and sends no residual."""
    from torch.distributed.checkpoint.state_dict import (
        get_optimizer_state_dict,
        set_optimizer_state_dict,
    )

    def trained():
        torch.manual_seed(0)
        model = torch.nn.Linear(40, 30)
        inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        import hipress.torch as hvd

        named = model.named_parameters()
        return model, hvd.DistributedOptimizer(inner, named, "onebit", min_size=1, timeout=8)

    def train(model, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.full((2, 40), rank + 1.0)).square().sum().backward()
            optimizer.step()
        return [p.detach().clone() for p in model.parameters()]

    first, optimizer = trained()
    train(first, optimizer, 3)
    weights = {name: value.clone() for name, value in first.state_dict().items()}
    left = optimizer.compression.state_dict()
    states = copy.deepcopy(get_optimizer_state_dict(first, optimizer))
    expected = train(first, optimizer, 2)
    again, optimizer = trained()
    again.load_state_dict(weights)
    optimizer.compression.load_state_dict(left)
    if rank == 0:
        get_optimizer_state_dict(again, optimizer)
    set_optimizer_state_dict(again, optimizer, states)
    assert optimizer.compression.step == 3
    return all(map(torch.equal, expected, train(again, optimizer, 2)))


def test_a_step_that_only_makes_the_optimizers_state_is_none_of_the_compression():
    assert returned(run_ranks(probed, 2)) == [True, True]


def given_by_hand(rank):
    """Train with gradients that are given by hand, as torch.func computes them; a schedule begins
    with a learning rate of 0."""
    import hipress.torch

    model = torch.nn.Linear(4, 3, bias=False)
    optimizer = hipress.torch.DistributedOptimizer(
        torch.optim.Adam(model.parameters(), lr=0.0), model.named_parameters()
    )
    model.weight.grad = torch.full((3, 4), rank + 1.0)
    optimizer.step()
    return model.weight.grad.unique().tolist()


def test_gradients_that_no_backward_pass_made_are_averaged():
    assert returned(run_ranks(given_by_hand, 2)) == [[1.5], [1.5]]


def gradients_of_other_kinds(rank):
    model = torch.nn.Embedding(100, 8, sparse=True)
    optimizer = make(model)
    torch.distributed.barrier()  # no rank fails while another creates its own

    def train():
        model(torch.tensor([1, 2])).sum().backward()
        optimizer.step()

    return said(train), str(optimizer.compression.engine.failure(5.0))


def test_a_sparse_gradient_is_refused_in_a_sentence():
    for sentence, failure in returned(run_ranks(gradients_of_other_kinds, 2)):
        for text in (sentence, failure):
            assert text.endswith("'weight' has a sparse gradient: use sparse=False")


def float32_gradients(rank):
    """Train with float32 gradients of bfloat16 weights, one of which is unused on one rank; and
    then with other dtypes, which are reported."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Linear(6, 4)).bfloat16()
    for parameter in model.parameters():
        parameter.grad_dtype = torch.float32
    optimizer = make(model, "fp16", min_size=1)
    x = torch.full((2, 8), rank + 1.0, dtype=torch.bfloat16)
    (model(x) if rank else model[0](x)).sum().backward()
    optimizer.synchronize()
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}
    assert model[1].bias.grad.tolist() == [1.0] * 4
    optimizer.step()
    optimizer.zero_grad()
    torch.distributed.barrier()  # no rank fails while another still waits for its step
    for parameter in model.parameters():
        parameter.grad_dtype = torch.bfloat16
    return [said(lambda: model(x).sum().backward() or optimizer.step())]


@pytest.mark.skipif(
    not hasattr(torch.nn.Parameter(), "grad_dtype"), reason="this PyTorch has one dtype for both"
)
def test_gradients_may_be_of_another_dtype_than_their_parameters():
    for (sentence,) in returned(run_ranks(float32_gradients, 2)):
        assert "is torch.bfloat16, and not torch.float32 as when" in sentence


def left(state):
    """Return what a rank has not sent of each gradient, in units of the ranks' mean: a number that
    tells elements apart."""
    found = {}
    for key, kind in state.items():
        if key.endswith("/kind"):
            values, name = state[key[:-4] + "states/residual"], key.split("/")[2]
            places = state[key[:-4] + "offset"] + torch.arange(1.0, values.numel() + 1)
            share = 1.0 if kind == "1" else 0.5
            found[name] = found.get(name, 0.0) + share * float(values @ places)
    return found


def takes_along(rank):
    """Return the residuals of the replaced optimizer, of fewer parameters."""
    model = two_layers()
    model[0].requires_grad_(False)
    old = make(model, "onebit", min_size=1)
    for _ in range(3):
        step(model, old, rank)
    model[0].requires_grad_(True)
    new = make(model, "onebit", min_size=1)
    saved = old.compression.state_dict()
    new.compression.load_state_dict(saved)
    found = left(flat_state(saved)), left(flat_state(new.compression.state_dict()))
    step(model, new, rank)
    return *found, new.compression.step


def test_a_new_one_may_have_the_residuals_of_the_one_before():
    first, second = returned(run_ranks(takes_along, 2))
    assert first[2] == second[2] == 4
    # Any rank sends what is left of the mean.
    before, after = (first[i].get("1.weight", 0.0) + second[i].get("1.weight", 0.0) for i in (0, 1))
    assert before == pytest.approx(after, rel=1e-4) and abs(before) > 0.01
