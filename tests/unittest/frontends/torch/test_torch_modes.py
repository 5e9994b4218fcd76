"""DDP's modes, and optimizers and hooks in the backward pass: supported as usual, or refused."""

import pytest

pytest.importorskip("torch")

import torch

from harness.torch_ranks import returned, run_ranks


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(40, 30), torch.nn.ReLU(), torch.nn.Linear(30, 5))


def backward(model, rank, step):
    model(torch.full((2, 40), 0.25 * (rank + 1 + step))).sum().backward()


def whole(tensors):
    return [getattr(each, "full_tensor", lambda each=each: each)().detach() for each in tensors]


def alike(one, other):
    return all(torch.allclose(a, b, atol=0.02) for a, b in zip(whole(one), whole(other)))


def refusal(model):
    import hipress.torch

    with pytest.raises(ValueError) as error:
        hipress.torch.compress(model, "fp16")
    return str(error.value)


def refusals(rank):
    """Return errors of compress() and DistributedOptimizer in each mode."""
    from torch.distributed.optim import _apply_optimizer_in_backward
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    early = DistributedDataParallel(network())
    _apply_optimizer_in_backward(torch.optim.SGD, early.parameters(), {"lr": 0.1})
    torch._dynamo.config.optimize_ddp = "python_reducer"
    python = DistributedDataParallel(network())
    torch._dynamo.config.optimize_ddp = True
    delayed = network()
    delayed = DistributedDataParallel(
        delayed,
        delay_all_reduce_named_params=[("0.bias", delayed[0].bias)],
        param_to_hook_all_reduce=delayed[2].weight,
    )
    said = [refusal(model) for model in (early, python, delayed)]
    optimizer = torch.optim.SGD(early.module.parameters(), lr=0.1)
    with pytest.raises(ValueError) as error:
        hipress.torch.DistributedOptimizer(optimizer, early.module.named_parameters(), "fp16")
    return [*said, str(error.value)]


def test_what_has_a_hook_of_ddps_own_is_refused():
    for early, python, delayed, optimizer in returned(run_ranks(refusals, 2)):
        assert "'0.weight' has an optimizer in the backward pass" in early
        assert "optimize_ddp of 'python_reducer'" in python
        assert "delay_all_reduce_named_params" in delayed
        assert "'0.weight' has an optimizer in the backward pass" in optimizer


def refusals_of_streams(rank):
    """Check the refusals of the modes that need a torch.Stream()."""
    from torch.distributed.optim import _apply_optimizer_in_backward
    from torch.nn.parallel import DistributedDataParallel
    from torch.nn.parallel.distributed import _MixedPrecision

    import hipress.torch

    half = _MixedPrecision(torch.float16, torch.float16, torch.float16)
    said = refusal(DistributedDataParallel(network(), mixed_precision=half))
    # Given to a model later, DDP finds it before the first step.
    late = DistributedDataParallel(network())
    hipress.torch.compress(late, "fp16")
    _apply_optimizer_in_backward(torch.optim.SGD, late.parameters(), {"lr": 0.1})
    with pytest.raises(RuntimeError, match="can only be called once"):
        backward(late, rank, 0)
    return [said]


@pytest.mark.skipif(
    torch.version.cuda is not None and not torch.cuda.is_available(),
    reason="DDP cannot make streams: this PyTorch has CUDA, and the machine no GPU",
)
def test_modes_with_streams_of_their_own_are_refused():
    for [mixed] in returned(run_ranks(refusals_of_streams, 2, gpu=True)):
        assert "mixed_precision" in mixed and "torch.autocast()" in mixed


def logged(rank):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    found = []
    for ours in (False, True):
        model = DistributedDataParallel(network())
        if ours:
            hipress.torch.compress(model, "fp16", min_size=0)
        else:
            model.register_comm_hook(None, fp16_compress_hook)
        for step in range(3):
            backward(model, rank, step)
        found.append({k: v for k, v in model._get_ddp_logging_data().items() if "time" not in k})
    return found


def test_logging_data_are_those_of_a_hook():
    for theirs, ours in returned(run_ranks(logged, 2)):
        assert theirs.pop("comm_hook") == "fp16_compress_hook"
        assert ours.pop("comm_hook") == "hipress_hook"
        assert ours == theirs and ours["iteration"] == 2


def in_ddp(rank, hook):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    plain, model = (DistributedDataParallel(network()) for _ in range(2))
    hipress.torch.compress(model, "fp16", min_size=0)
    return trained(plain, model, rank, hook)


def in_fsdp(rank, hook):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    mesh = init_device_mesh("cpu", (2,))
    plain, model = (fully_shard(network(), mesh=mesh) for _ in range(2))
    hipress.torch.compress_fsdp(model, "fp16", min_size=0)
    return trained(plain, model, rank, hook)


def trained(plain, model, rank, hook):
    """Return both after three steps in which the hooks that ``hook`` makes are called."""
    for each in (plain, model):
        for p in each.parameters():
            p.register_post_accumulate_grad_hook(hook(p))
        for step in range(3):
            backward(each, rank, step)
    return plain, model


def in_the_optimizer(rank, hook):
    """Call hooks that users register before and after HiPress's; one bucket for each gradient."""
    import torch.distributed as dist

    import hipress.torch
    from hipress.torch.integrations import optimizer as ours

    ours.BUCKET_BYTES = 1
    plain, model = network(), network()
    parameters = list(model.parameters())
    for p in (*plain.parameters(), *parameters[:2]):
        p.register_post_accumulate_grad_hook(hook(p))
    optimizer = hipress.torch.DistributedOptimizer(
        torch.optim.SGD(parameters, lr=0.0), model.named_parameters(), "fp16", min_size=0
    )
    for p in parameters[2:]:
        p.register_post_accumulate_grad_hook(hook(p))
    for step in range(3):
        backward(model, rank, step)
        optimizer.step()
        backward(plain, rank, step)
        for p in plain.parameters():
            dist.all_reduce(p.grad)
            p.grad.div_(2)
    return plain, model


def scaled(rank, where):
    """Accumulate gradients, with a hook that halves the sum after each backward pass."""

    def hook(_):
        def halve(parameter):
            parameter.grad.mul_(0.5)

        return halve

    plain, model = where(rank, hook)
    return alike([p.grad for p in plain.parameters()], [p.grad for p in model.parameters()])


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("where", [in_ddp, in_fsdp, in_the_optimizer])
def test_users_hooks_on_gradients(where):
    assert all(returned(run_ranks(scaled, 2, where)))


def stepped(rank, where):
    """Every parameter has a separate optimizer in the backward pass."""

    def hook(parameter):
        optimizer = torch.optim.SGD([parameter], lr=0.01)

        def step(_):
            optimizer.step()
            optimizer.zero_grad()

        return step

    plain, model = where(rank, hook)
    moved = not alike(model.parameters(), network().parameters())
    return moved, alike(plain.parameters(), model.parameters())


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("where", [in_ddp, in_fsdp])
def test_optimizers_in_users_hooks(where):
    assert returned(run_ranks(stepped, 2, where)) == [(True, True)] * 2


def test_an_optimizer_in_users_hooks_would_use_gradients_before_they_are_averaged():
    for problem in run_ranks(stepped, 2, in_the_optimizer):
        assert "RuntimeError: a hook on " in problem
        assert "has taken its gradient before it was averaged" in problem


def early(rank, where):
    """Run PyTorch's own optimizers in the backward pass of FSDP2's parameters."""
    from torch.distributed.optim import _apply_optimizer_in_backward

    def hook(parameter):
        _apply_optimizer_in_backward(torch.optim.SGD, [parameter], {"lr": 0.01})
        return lambda p: None

    plain, model = where(rank, hook)
    kept = [[p.grad is not None for p in each.parameters()] for each in (plain, model)]
    return kept[0] == kept[1] and alike(plain.parameters(), model.parameters())


@pytest.mark.slow
def test_pytorchs_optimizer_in_fsdps_backward_pass_does_what_it_does_without():
    assert all(returned(run_ranks(early, 2, in_fsdp)))


def compiled(rank, where):
    """Train in a compiled backward pass, without and with compression."""
    torch._dynamo.config.compiled_autograd = True
    torch._dynamo.config.suppress_errors = False
    eager, transformed = backward, {}

    def through(model, rank, step):
        if id(model) not in transformed:
            transformed[id(model)] = torch.compile(model, backend="aot_eager")
        eager(transformed[id(model)], rank, step)

    globals()["backward"] = through  # the process ends with this function
    plain, model = where(rank, lambda _: lambda p: None)
    return alike([p.grad for p in plain.parameters()], [p.grad for p in model.parameters()])


@pytest.mark.slow
@pytest.mark.parametrize("where", [in_ddp, in_fsdp, in_the_optimizer])
def test_compiled_autograd(where):
    assert all(returned(run_ranks(compiled, 2, where)))
