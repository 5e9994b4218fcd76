"""Weights that DiLoCo and LocalSGD refuse, with a message on all ranks."""

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_optimizer import said


def refused(rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    def local(model):
        return hipress.torch.LocalSGD(model, torch.optim.SGD(model.parameters(), lr=0.1), 2)

    complexes = torch.nn.ParameterDict({"w": torch.full((4,), 1 + 2j), "v": torch.ones(3)})
    sharded = fully_shard(torch.nn.Linear(8, 6), mesh=init_device_mesh("cpu", (2,)))
    double = torch.nn.Linear(4, 3).double()
    with local(double):
        pass
    return said(lambda: local(complexes)), said(lambda: local(sharded))


def test_weights_that_are_complex_or_sharded():
    for complexes, sharded in returned(run_ranks(refused, 2)):
        assert "parameter 'w' is complex64; weights that can be" in complexes
        assert "parameter 'weight' is sharded over ranks [0, 1]" in sharded
        assert "give group= the ranks with the same shard" in sharded
