"""Tensors whose elements are not contiguous, given to all ranks."""

from harness.torch_ranks import returned, run_ranks, torch


def numbers(*shape, rank):
    """Return numbers: the first rank's are 0, 1, 2, ...; those of other ranks are 100 more."""
    return torch.arange(float(torch.Size(shape).numel())).view(shape) + 100 * rank


def tensors(rank):
    """Return tensors whose memory differs between ranks, by name, and what is next to a view."""
    base = numbers(6, 4, rank=rank)
    turned, images = numbers(2, 3, rank=rank).t(), numbers(1, 4, 2, 2, rank=rank)
    if rank == 0:
        images = images.to(memory_format=torch.channels_last)
    else:
        turned = turned.contiguous()
    return {"slice": base[:, :2], "turned": turned, "images": images}, base[:, 2:]


def given(rank):
    import hipress.torch

    mine, second = tensors(rank)
    theirs, _ = tensors(0)
    before = second.clone()
    strides = {name: value.stride() for name, value in mine.items()}
    hipress.torch.broadcast_parameters(mine)
    assert strides == {name: value.stride() for name, value in mine.items()}
    return [name for name in mine if not torch.equal(mine[name], theirs[name])], torch.equal(
        second, before
    )


def test_elements_are_given_in_their_order_whatever_their_memory():
    assert returned(run_ranks(given, 2)) == [([], True)] * 2


def averaged(rank):
    """Run LocalSGD with parameters that share one piece of memory: (the first rank's, theirs)."""
    import hipress.torch

    fused = numbers(8, 6, rank=rank)
    model = torch.nn.ParameterDict({"q": fused[:, :3], "k": fused[:, 3:]})
    with hipress.torch.LocalSGD(model, torch.optim.SGD(model.parameters(), lr=0.5), 1):
        pass
    return torch.equal(fused, numbers(8, 6, rank=0))


def test_local_sgd_begins_with_the_first_ranks_weights():
    assert returned(run_ranks(averaged, 2)) == [True] * 2
