"""What users do with DDP models works with compression as it does without."""

import pytest

pytest.importorskip("torch")

from torch_cluster import returned, run_ranks  # noqa: E402


def copies(rank):
    import copy
    import io

    import torch
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim.swa_utils import AveragedModel

    import hipress.torch

    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(40, 30))
    hipress.torch.compress(model, "onebit", min_size=1)
    model(torch.ones(2, 40)).sum().backward()
    averaged, twin, file = AveragedModel(model), copy.deepcopy(model), io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    averaged.update_parameters(model)
    found = [each.state_dict() for each in (averaged.module, twin, loaded)]
    same = all(torch.equal(one[k], v) for one in found for k, v in model.state_dict().items())
    with pytest.raises(ValueError, match="already"):
        hipress.torch.compress(model, "onebit")
    again = hipress.torch.compress(twin, "onebit", min_size=1)
    twin(torch.ones(2, 40)).sum().backward()
    return same, again.step, model.module.weight.grad.shape


def test_models_are_copied_averaged_and_saved_whole():
    for same, step, shape in returned(run_ranks(copies, 2)):
        assert same and step == 1 and shape == (30, 40)


def uneven(rank):
    import torch
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    grads = {}
    for name in ("none", "fp16"):
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Linear(40, 30))
        if name != "none":
            compression = hipress.torch.compress(model, name, min_size=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with model.join():
            for step in range(2 + 3 * rank):  # whole halves, which float16 holds
                optimizer.zero_grad()
                model(torch.full((2, 40), 0.5 * (step + 1 + rank))).sum().backward()
                optimizer.step()
        grads[name] = [p.detach().clone() for p in model.parameters()]
    close = [torch.allclose(a, b, atol=1e-2) for a, b in zip(grads["none"], grads["fp16"])]
    return close, compression.step


@pytest.mark.timeout(60)
def test_join_with_uneven_inputs():
    for close, step in returned(run_ranks(uneven, 2)):
        assert all(close) and step == 5
