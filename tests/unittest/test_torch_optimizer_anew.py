"""A DistributedOptimizer that takes the place of another one."""

import gc

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_optimizer import said


def make(model, compression="none", **options):
    import hipress.torch as hvd

    inner = torch.optim.SGD(model.parameters(), lr=0.125)
    return hvd.DistributedOptimizer(inner, model.named_parameters(), compression, **options)


def step(model, optimizer, rank):
    optimizer.zero_grad()
    model(torch.full((2, 8), rank + 1.0)).sum().backward()
    optimizer.step()


def expected(first, steps, freeze=0):
    """The weights after so many steps with the ranks' mean input; ``freeze`` steps of them with a
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
    """Made anew, as the sentence says, when a layer is unfrozen."""
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
        assert "averages nothing any more" in old


def one_layer():
    return torch.nn.Linear(8, 4, bias=False)


def phases(rank):
    """One gradient is its bucket's memory, which two optimizers must not reduce at once."""
    model, found = one_layer(), []
    for phase in range(3):
        optimizer = make(model, op="sum" if phase else "average")  # noqa: F841
        model.weight.grad = None
        model(torch.full((2, 8), rank + 1.0)).sum().backward()
        optimizer.synchronize()
        found.append(model.weight.grad.flatten().tolist())
    hooks = len(model.weight._post_accumulate_grad_hooks)
    del optimizer
    gc.collect()
    return found, hooks, len(model.weight._post_accumulate_grad_hooks)


def test_every_phase_of_training_may_have_one_of_its_own():
    for found, hooks, left in returned(run_ranks(phases, 2)):
        assert found == [[3.0] * 32, [6.0] * 32, [6.0] * 32]
        assert (hooks, left) == (1, 0)


def too_early(rank):
    """Not while gradients are on their way; that is said on all ranks, and the old one goes on."""
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
        assert "another DistributedOptimizer has the gradient of 'weight' on its way" in found
        assert hooks == 1
