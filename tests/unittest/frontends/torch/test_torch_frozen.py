"""Layers that are frozen, or unfrozen, while a model trains."""

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from torch_states import flat_state


def network(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.Linear(30, 5))


def require(layer, value):
    for parameter in layer.parameters():
        parameter.requires_grad_(value)


def before_compress(rank):
    """Freeze one layer before DDP wraps the model, and one after it, which is unfrozen later.
    Gradients are as without compression, and a state has their names."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    found = {}
    for compressed in (False, True):
        torch.manual_seed(0)
        net = torch.nn.Sequential(*(torch.nn.Linear(20, 20) for _ in range(3)))
        require(net[0], False)
        model = DistributedDataParallel(net, find_unused_parameters=True)
        require(net[1], False)
        if compressed:
            compression = hipress.torch.compress(model, "onebit", min_size=1, warmup_steps=4)
        gradients = []
        for step in range(4):
            require(net[1], step > 1)
            model.zero_grad()
            model(torch.full((2, 20), rank + 1.0)).sum().backward()
            gradients += [None if p.grad is None else p.grad.clone() for p in net.parameters()]
        found[compressed] = gradients
    for mine, theirs in zip(*found.values()):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            torch.testing.assert_close(mine, theirs)
    model(torch.full((2, 20), rank + 1.0)).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in net[1:].parameters())
    return sorted({k.split("/")[2] for k in flat_state(compression.state_dict()) if "/state/" in k})


def test_layers_that_were_frozen_before_and_after_ddp_wrapped_the_model():
    for names in returned(run_ranks(before_compress, 2)):
        assert names == ["1.bias", "1.weight", "2.bias", "2.weight"]


def diloco(net, **options):
    import hipress.torch

    inner = torch.optim.SGD(net.parameters(), lr=0.01)
    outer = torch.optim.SGD(net.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    return inner, hipress.torch.DiLoCo(net, inner, outer, 2, **options)


def train(net, optimizer, rank, steps):
    for step in range(steps):
        generator = torch.Generator().manual_seed(100 * rank + step)
        optimizer.zero_grad(set_to_none=False)
        net(torch.randn(2, 40, generator=generator)).square().sum().backward()
        optimizer.step()


def in_diloco(rank, between, alpha):
    """Return the weights of a layer when it is frozen, ``between`` steps after a synchronization;
    after the next one; and at the end."""
    net, found = network(), []
    inner, wrapped = diloco(net, fragment_update_alpha=alpha)
    with wrapped:
        train(net, inner, rank, 4 + between)
        require(net[0], False)
        for steps in (0, 2 - between, 4):
            train(net, inner, rank, steps)
            found.append(net[0].weight.detach().clone())
        last = net[1].weight.detach().clone()
        train(net, inner, rank, 2)
        assert not torch.equal(last, net[1].weight)
    return found


@pytest.mark.slow
def test_a_layer_that_is_frozen_in_diloco_becomes_the_ranks_mean_and_stays_so():
    for between, alpha in ((0, 0.0), (1, 0.0), (1, 0.5)):
        first, second = returned(run_ranks(in_diloco, 2, between, alpha))
        assert torch.equal(first[1], second[1])
        if not alpha:
            torch.testing.assert_close(first[1], (first[0] + second[0]) / 2)
        assert torch.equal(first[1], first[2]) and torch.equal(second[1], second[2])


def unfrozen_in_diloco(rank, leaves):
    """Check that parameters that are trained in addition to the initial ones stay local to each
    rank. Those trained later are refused, also when the context starts again."""
    net, own = network(), torch.nn.Linear(5, 5)
    require(net[0], False)
    inner = torch.optim.SGD([*net.parameters(), *own.parameters()], lr=0.01)
    import hipress.torch

    wrapped = hipress.torch.LocalSGD(net, inner, 2)
    model, said = torch.nn.Sequential(net, own), []
    try:
        with wrapped:
            train(model, inner, rank, 4)
            require(net[0], True)
            if not leaves:
                train(model, inner, rank, 2)
        with wrapped:
            pass
    except RuntimeError as error:
        said.append(str(error))
    return said


def test_a_layer_that_is_unfrozen_in_diloco_is_refused():
    for leaves in (False, True):
        for said in returned(run_ranks(unfrozen_in_diloco, 2, leaves)):
            assert len(said) == 1 and "needs a new DiLoCo" in said[0]


def in_the_optimizer(rank, compression):
    """Check that weights of a frozen layer stay unmodified. This includes gradients that are zeroed
    and not set to None: the layer's residual is not added to it."""
    import hipress.torch

    net = network()
    inner = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer = hipress.torch.DistributedOptimizer(
        inner, net.named_parameters(), compression, min_size=1
    )
    train(net, optimizer, rank, 3)
    optimizer.zero_grad(set_to_none=False)
    require(net[0], False)
    kept, others = [[p.detach().clone() for p in layer.parameters()] for layer in net]
    train(net, optimizer, rank, 3)
    assert not any(map(torch.equal, others, net[1].parameters()))
    return all(map(torch.equal, kept, net[0].parameters()))


def test_a_layer_that_is_frozen_stays_as_it_is():
    for compression in ("onebit", "none"):
        assert returned(run_ranks(in_the_optimizer, 2, compression)) == [True, True]
