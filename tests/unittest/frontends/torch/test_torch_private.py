"""Parts of PyTorch without a public name that hipress.torch.private looks up: they exist."""

import subprocess
import sys
from datetime import timedelta

import pytest

from harness.processes import base_environment
from scripts import SCRIPTS

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

from hipress.torch import private, private_fsdp  # noqa: E402


@pytest.fixture
def alone(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def sharded(alone):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)
    return fully_shard(nn.Linear(4, 3), mp_policy=policy)


def test_parameters_in_the_order_of_flat_tensors(sharded):
    records = private_fsdp.managed(sharded)
    assert [r.sharded_param.shape for r in records] == [(3, 4), (3,)]
    assert private_fsdp.parts_of(sharded) == [sharded]


def test_layout_and_state_of_a_gather(sharded):
    records = private_fsdp.managed(sharded)
    sharded.unshard()  # which makes FSDP set the dtypes
    assert all(private_fsdp.is_in(record, "UNSHARDED") for record in records)
    sharded.reshard()
    assert all(private_fsdp.is_in(record, "SHARDED") for record in records)
    assert [private_fsdp.gathered_as(r)[1] for r in records] == [12, 3]
    assert {private_fsdp.gathered_as(r)[0] for r in records} == {torch.float32}


def test_a_module_without_parameters_of_its_own_has_no_group(alone):
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(nn.Linear(2, 2))
    fully_shard(model[0])
    fully_shard(model)
    assert not private_fsdp.parts_of(model) and not private_fsdp.managed(model)


def test_the_dtype_that_gradients_are_reduced_in(sharded):
    found = {private_fsdp.reduce_dtype(sharded, record) for record in private_fsdp.managed(sharded)}
    assert found == {torch.bfloat16}


@pytest.mark.skipif(private_fsdp.ReduceScatter is object, reason="this PyTorch has no such hook")
def test_hooks(sharded):
    scatter, all_reduce = private_fsdp.hooks(sharded)
    assert isinstance(scatter, private_fsdp.ReduceScatter) and all_reduce is None


@pytest.mark.skipif(private_fsdp.ReduceScatter is object, reason="this PyTorch has no such hook")
def test_hooks_of_a_group_of_parameters(sharded):
    part = private_fsdp.ParameterGroup(private_fsdp._groups(sharded)[0])
    scatter, gather, all_reduce = object(), object(), object()
    part.set_custom_reduce_scatter(scatter)
    part.set_custom_all_gather(gather)
    part.set_all_reduce_hook(all_reduce)
    assert private_fsdp.hooks(sharded) == (scatter, all_reduce)
    assert private.lookup(part.group, "_all_gather_comm") is gather


def test_groups_and_shapes_of_hybrid_sharding(alone):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("replicate", "shard"))
    model = fully_shard(nn.Linear(4, 3), mesh=mesh)
    assert private_fsdp.shard_group_of(model) is mesh["shard"].get_group()
    replicate = mesh["replicate"].get_group()
    assert private_fsdp.replicate_group_of(model) is replicate
    assert [private_fsdp.shape_of(r, 1) for r in private_fsdp.managed(model)] == [(3, 4), (3,)]
    seen = []
    delegated = private_fsdp.delegate_all_reduce(model)
    model.set_all_reduce_hook(lambda row: seen.append((row.numel(), delegated.op)))
    model(torch.ones(2, 4)).sum().backward()
    assert seen == [(15, dist.ReduceOp.SUM)] and delegated.group is replicate
    assert private_fsdp.replicate_group_of(model) is replicate


@pytest.mark.skipif(private_fsdp.ReduceScatter is object, reason="this PyTorch has no such hook")
def test_divide_factor_of_fsdp_is_found(sharded):
    assert not private_fsdp.has_divide_factor(sharded)
    sharded.set_gradient_divide_factor(1.0)
    assert private_fsdp.has_divide_factor(sharded)
    assert private_fsdp.premultiplied_by(dist.ReduceOp.PREMUL_SUM(0.25)) == 0.25


def test_the_timeout_of_a_process_group(alone):
    private.set_timeout(dist.group.WORLD, timedelta(seconds=7))
    found = private.lookup(dist.group.WORLD._get_backend(torch.device("cpu")), "options")
    assert found._timeout == timedelta(seconds=7)


def test_backward_pass_and_its_end():
    seen = []
    weight = torch.ones(2, requires_grad=True)

    def hook(_):
        seen.append(private.backward_pass() >= 0)
        private.queue_callback(lambda: seen.append("end"))

    weight.register_hook(hook)
    assert private.backward_pass() == -1
    weight.sum().backward()
    assert seen == [True, "end"]


def test_modes_of_ddp(alone):
    from torch.distributed.optim import _apply_optimizer_in_backward
    from torch.nn.parallel import DistributedDataParallel

    model = nn.Linear(4, 3)
    ddp = DistributedDataParallel(model)
    assert not private.reduces_in_python(ddp) and not private.delays_reductions(ddp)
    assert not private.comm_hooks(ddp) and not private.is_stepped_in_backward(model.bias)
    _apply_optimizer_in_backward(torch.optim.SGD, [model.bias], {"lr": 0.1})
    assert private.is_stepped_in_backward(model.bias)
    delayed = DistributedDataParallel(
        nn.Linear(4, 3),
        delay_all_reduce_named_params=[("bias", model.bias)],
        param_to_hook_all_reduce=model.weight,
    )
    assert private.delays_reductions(delayed)
    mode, torch._dynamo.config.optimize_ddp = torch._dynamo.config.optimize_ddp, "python_reducer"
    try:
        assert private.reduces_in_python(DistributedDataParallel(nn.Linear(4, 3)))
    finally:
        torch._dynamo.config.optimize_ddp = mode


def test_the_last_hook_on_a_gradient():
    weight = torch.ones(2, requires_grad=True)
    handles = [weight.register_post_accumulate_grad_hook(lambda p: None) for _ in range(2)]
    assert private.last_gradient_hook(weight) == handles[1].id


def test_what_is_missing_is_named_with_the_version():
    with pytest.raises(private.MissingAttribute) as error:
        private.lookup(torch.ones(1), "_gone", "_gone_too")
    assert f"PyTorch {torch.__version__} has no Tensor._gone or _gone_too" in str(error.value)


@pytest.mark.slow
def test_fsdp_is_imported_when_a_script_asks_for_it():
    """FSDP is imported when a script requests it. The import takes half as long as PyTorch's own,
    and an elastic worker that joins waits for imports."""
    script = SCRIPTS / "torch_imports.py"
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=base_environment(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()


def test_parameters_that_ddp_reduces(alone):
    from torch.nn.parallel import DistributedDataParallel

    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    model[0].bias.requires_grad_(False)
    ddp = DistributedDataParallel(model)
    model[1].bias.requires_grad_(False)
    found = {id(p) for p in private.managed(ddp)}
    assert found == {id(p) for p in (model[0].weight, model[1].weight, model[1].bias)}
