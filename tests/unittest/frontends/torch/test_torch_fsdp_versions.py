"""Errors of compress_fsdp() on a PyTorch that lacks a part of FSDP2's interface."""

from __future__ import annotations

import pytest

from harness.torch_ranks import returned, run_ranks, torch

pytest.importorskip("torch.distributed.fsdp", reason="needs torch")


def without_custom_collectives(rank):
    """Return the error, in a list, of compress_fsdp() without the interface of PyTorch 2.9."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    import hipress.torch

    for name in ("set_custom_all_gather", "set_custom_reduce_scatter"):
        if hasattr(FSDPModule, name):
            delattr(FSDPModule, name)
    model = fully_shard(torch.nn.Linear(8, 8), mesh=init_device_mesh("cpu", (1,)))
    with pytest.raises(TypeError) as caught:
        hipress.torch.compress_fsdp(model, "onebit", gather="exact")
    return [str(caught.value)]


def test_pytorch_before_2_9_is_refused():
    (said,) = returned(run_ranks(without_custom_collectives, 1))
    assert said == [
        "compress_fsdp() needs PyTorch 2.9 or newer, which has "
        f"FSDPModule.set_custom_reduce_scatter(); this is PyTorch {torch.__version__}"
    ]


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.used(x)


def without_unused_parameters(rank):
    """Return the error, in a list, of a step that leaves parameters out, before PyTorch 2.13."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    import hipress.torch

    if not hasattr(FSDPModule, "set_custom_reduce_scatter"):
        return []
    if hasattr(FSDPModule, "set_reduce_scatter_unused_params"):
        del FSDPModule.set_reduce_scatter_unused_params
    model = fully_shard(Two(), mesh=init_device_mesh("cpu", (2,)))
    hipress.torch.compress_fsdp(model, "onebit")
    with pytest.raises(hipress.torch.HipressError) as caught:
        model(torch.ones(2, 8)).sum().backward()
    return [str(caught.value)]


def test_unused_parameters_are_refused_before_pytorch_2_13():
    said, _ = returned(run_ranks(without_unused_parameters, 2))
    if not said:
        pytest.skip("needs FSDPModule.set_custom_reduce_scatter (PyTorch 2.9)")
    assert said == [
        "the root module: FSDP reduces 72 elements, not the 144 of used.weight, used.bias, "
        "unused.weight...: some of these have no gradient (before PyTorch 2.13, the forward pass "
        "must use all of them)"
    ]
