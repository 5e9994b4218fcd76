"""Habits of users with DDP models and optimizers, which work with compression as without it."""

import pytest

pytest.importorskip("torch")

from harness.torch_ranks import returned, run_ranks


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


def wrapped(rank):
    """Use an optimizer and its model as users do: (weights agree, learning rates, errors)."""
    import copy
    import pickle
    import warnings

    import torch
    from torch.optim.swa_utils import AveragedModel

    import hipress.torch

    warnings.filterwarnings("error", ".*lr_scheduler")  # that nothing was stepped before
    rates, weights, said = [], [], []
    for name in ("none", "fp16"):
        torch.manual_seed(0)
        model = torch.nn.Linear(40, 30)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
        if name != "none":
            optimizer = hipress.torch.DistributedOptimizer(
                optimizer, model.named_parameters(), name, min_size=1
            )
            assert isinstance(optimizer, torch.optim.SGD)
            assert isinstance(optimizer, hipress.torch.DistributedOptimizer)
            for call in (copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError) as error:
                    call(optimizer)
                said.append(str(error.value))
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
        averaged = AveragedModel(model)
        for _ in range(3):  # whole halves, which float16 holds
            optimizer.zero_grad()
            model(torch.full((2, 40), 0.5)).sum().backward()
            optimizer.step()
            scheduler.step()
            averaged.update_parameters(model)
        rates.append(scheduler.get_last_lr())
        weights.append([*averaged.module.parameters(), *copy.deepcopy(model).parameters()])
    return all(map(torch.equal, *weights)), rates, said


def test_an_optimizer_is_scheduled_and_its_model_copied():
    for same, rates, said in returned(run_ranks(wrapped, 2)):
        assert same and rates == [[0.0625], [0.0625]]
        assert len(said) == 2 and all("cannot be copied or saved whole" in each for each in said)


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


def counted(rank):
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    options = {"min_size": 1000, "warmup_steps": 1}
    ddp = DistributedDataParallel(torch.nn.Linear(40, 30))
    sharded = fully_shard(torch.nn.Linear(40, 30), mesh=init_device_mesh("cpu", (2,)))
    whole = torch.nn.Linear(40, 30)
    found = []
    for model in (ddp, sharded, whole):
        if model is whole:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            names = list(model.named_parameters())
            optimizer = hipress.torch.DistributedOptimizer(optimizer, names, "onebit", **options)
            compression = optimizer.compression
        elif model is ddp:
            compression = hipress.torch.compress(model, "onebit", **options)
        else:
            compression = hipress.torch.compress_fsdp(model, "onebit", **options)
        for _ in range(3):
            model(torch.ones(2, 40)).sum().backward()
            if model is whole:
                optimizer.step()
        found.append(compression.stats())
    return [
        (s.compressed, s.uncompressed, sorted(map(str, s.parameters.values())), str(s))
        for s in found
    ]


def test_stats_tell_what_went_uncompressed_and_why():
    for stats in returned(run_ranks(counted, 2)):
        for compressed, uncompressed, parameters, text in stats:
            # The weight twice of three times; the bias, and the weight in the warm-up, not.
            assert (compressed, uncompressed) == (2 * 4800, 4800 + 3 * 120), text
            small, weight = "fewer than 1000 elements (min_size)", "['in the warm-up']"
            assert small in parameters[0] + parameters[1] and weight in "".join(parameters), text
            assert text.startswith("9600 bytes of gradients went compressed, 5160 not\n  ")
