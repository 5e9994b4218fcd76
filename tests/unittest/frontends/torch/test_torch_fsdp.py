"""FSDP2 with compressed reduce-scatters, and hybrid sharding with compressed all-reduces."""

import numpy as np
import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import loss_of, network, succeed
from test_torch_equality import reference

fsdp = pytest.importorskip("torch.distributed.fsdp", reason="needs torch")
if not hasattr(fsdp.FSDPModule, "set_custom_reduce_scatter"):
    pytest.skip(
        f"needs FSDPModule.set_custom_reduce_scatter, which PyTorch {torch.__version__} has not",
        allow_module_level=True,
    )
reduces_unused = pytest.mark.skipif(
    not hasattr(fsdp.FSDPModule, "set_reduce_scatter_unused_params"),
    reason="needs FSDPModule.set_reduce_scatter_unused_params (PyTorch 2.13)",
)

STEPS = 3
MIN_SIZE = 1000
SHAPES = [  # of two modules' parameters
    {"even": (24, 100), "uneven": (37, 65), "small": (7, 3)},
    {"few_rows": (3, 700), "bias": (5,), "left_out": (2, 4000), "one_row": (1, 1500)},
]
CODECS = [
    ("onebit", {}),
    ("maxmin", {"bits": 4}),
    ("topk", {"ratio": 0.1}),
    ("dgc", {"ratio": 0.05, "warmup": 2}),
    ("none", {}),
]


def gradient_of(name, shape, rank, step, dtype=None):
    seed = [rank, step, sum(name.encode())]
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return torch.from_numpy(values).to(dtype or torch.float32)


class Given(torch.nn.Module):
    """Module whose parameters' gradients are known to the bit."""

    def __init__(self, prefix, shapes):
        super().__init__()
        self._prefix = prefix
        for name, shape in shapes.items():
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape)))

    def forward(self, rank, step):
        return sum(
            (p * gradient_of(self._prefix + name, p.shape, rank, step, p.dtype).to(p.device))
            .sum()
            .float()
            for name, p in self.named_parameters()
        )


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList(Given(f"{i}.", s) for i, s in enumerate(SHAPES))

    def forward(self, rank, step):
        return sum(part(rank, step) for part in self.parts)


def whole_shapes():
    return {f"parts.{i}.{n}": s for i, shapes in enumerate(SHAPES) for n, s in shapes.items()}


def sharded(mesh, **options):
    from torch.distributed.fsdp import fully_shard

    model = Model()
    for part in model.parts:
        fully_shard(part, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def references(type, params, world_size, compresses, partitions=None):
    from hipress.torch.executors.collectives import reduce_scatter
    from hipress.torch.gradient import chunk_of
    from hipress.torch.state.error_feedback import Codecs

    found = {}
    for name, shape in whole_shapes().items():
        shape = torch.Size(shape)
        if compresses(name, shape.numel()):
            part = chunk_of(shape, world_size)
            graph = reduce_scatter(shape.numel(), part, world_size, partitions)
            found[name] = reference(graph, Codecs(type, params), world_size, name)
    return found


def wanted(references, world_size, rank, locals_of, dtype=torch.float32):
    """Return the shards that rank ``rank`` must get; ``locals_of(name, rank)`` are whole
    gradients."""
    from hipress.topology.graph import worker

    found = {}
    for name, shape in whole_shapes().items():
        chunk = -(-shape[0] // world_size)
        mine = slice(rank * chunk, (rank + 1) * chunk)
        local = [locals_of(name, r) for r in range(world_size)]
        if name in references:
            flat = {worker(r): g.float().reshape(-1).numpy() for r, g in enumerate(local)}
            total = torch.from_numpy(references[name].step(flat)[worker(rank)])
            mean = (total * np.float32(1 / world_size)).reshape(shape).to(dtype)
        else:
            mean = sum(g.double() for g in local) / world_size
        found[name] = mean[mine].float()
    return found


def assert_equal(model, references, expected, tolerance=1e-6):
    for name, p in model.named_parameters():
        if name not in expected:
            assert p.grad is None
        elif name in references:
            assert torch.equal(p.grad.to_local(), expected[name]), name
        else:
            torch.testing.assert_close(
                p.grad.to_local(), expected[name], rtol=tolerance, atol=tolerance
            )


def backward(model, rank, step):
    for p in model.parameters():
        p.grad = None
    model(rank, step).backward()


def equals_reference(rank, cases):
    """Compare with the reference on 2, 3 and 4 ranks, with reductions in every dtype."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import MixedPrecisionPolicy

    import hipress.torch

    for world_size in range(2, dist.get_world_size() + 1):
        mesh = DeviceMesh("cpu", list(range(world_size)))
        if rank >= world_size:
            continue
        for type, params, reduced in cases:
            policy = MixedPrecisionPolicy(reduce_dtype=reduced)
            model = sharded(mesh, mp_policy=policy)
            compression = hipress.torch.compress_fsdp(model, type, min_size=MIN_SIZE, **params)
            expected_of = references(type, params, world_size, lambda _, n: n >= MIN_SIZE)
            assert len(expected_of) == 5
            for step in range(STEPS):
                backward(model, rank, step)

                def local(name, r, step=step, dtype=reduced):
                    key = name.removeprefix("parts.")
                    found = gradient_of(key, whole_shapes()[name], r, step, dtype)
                    return found / 2 if dtype == torch.float16 else found  # as FSDP does

                expected = wanted(expected_of, world_size, rank, local, reduced)
                if reduced == torch.float16:
                    for name, value in expected.items():
                        total = value.to(reduced) * world_size
                        expected[name] = (total / (world_size / 2)).float()
                tolerance = 1e-6 if reduced == torch.float32 else 0.05
                assert_equal(model, expected_of, expected, tolerance)
            assert compression.step == STEPS


@pytest.mark.slow
def test_equals_the_reference():
    float32, bfloat16 = torch.float32, torch.bfloat16
    cases = [(type, params, float32) for type, params in CODECS]
    cases += [(type, params, bfloat16) for type, params in CODECS[:2]]
    cases.append((*CODECS[1], torch.float16))
    succeed(run_ranks(equals_reference, 4, cases))


def modes(rank):
    """Try accumulation, a frozen and an unused parameter, warm-up, a plan, and an overflow."""
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch
    from hipress.planning.plan import Decision

    world_size = 3
    model = sharded(init_device_mesh("cpu", (world_size,)))
    model.parts[0].even.requires_grad_(False)
    plan = {"parts.1.few_rows": Decision(False, 1), "parts.0.uneven": Decision(True, 9)}
    compression = hipress.torch.compress_fsdp(
        model, "topk", ratio=0.1, min_size=1000, plan=plan, warmup_steps=1
    )
    named = {name for name in plan if plan[name].compress}
    expected_of = references(
        "topk", {"ratio": 0.1}, world_size, lambda name, _: name in named, partitions=9
    )
    others = references(
        "topk",
        {"ratio": 0.1},
        world_size,
        lambda n, size: n not in plan and size >= 1000 and "even" not in n,
    )
    expected_of.update(others)
    assert set(expected_of) == {"parts.0.uneven", "parts.1.left_out", "parts.1.one_row"}

    def local(name, r, steps):
        if name == "parts.1.one_row" and 4 in steps:  # unused then
            return torch.zeros(whole_shapes()[name])
        grads = [gradient_of(name[6:], whole_shapes()[name], r, s) for s in steps]
        return sum(grads[1:], grads[0])

    def check(steps, of):
        expected = wanted(of, world_size, rank, lambda name, r: local(name, r, steps))
        del expected["parts.0.even"]
        assert_equal(model, of, expected)

    backward(model, rank, 0)  # warm-up: nothing is compressed
    check([0], {})
    assert not compression.error_feedback.states
    backward(model, rank, 1)
    check([1], expected_of)
    for p in model.parameters():
        p.grad = None
    model.set_requires_gradient_sync(False)
    model(rank, 2).backward()
    model.set_requires_gradient_sync(True)
    model(rank, 3).backward()
    check([2, 3], expected_of)
    made = model.parts[1].forward
    model.parts[1].forward = lambda rank, step: sum(
        (p * gradient_of("1." + name, p.shape, rank, step)).sum()
        for name, p in model.parts[1].named_parameters()
        if name != "one_row"
    )
    backward(model, rank, 4)
    check([4], expected_of)
    model.parts[1].forward = made
    backward(model, rank, 5)
    check([5], expected_of)
    model.parts[0].forward = lambda rank, step: sum(
        (p * (float("inf") if rank == 1 else 0.0)).sum() for p in model.parts[0].parameters()
    )
    backward(model, rank, 6)  # as bad on all ranks, in this module only
    grads = {name: p.grad.to_local() for name, p in model.named_parameters() if p.grad is not None}
    assert grads["parts.0.uneven"].isnan().all() and grads["parts.1.left_out"].isfinite().all()
    assert compression.step == 6


@pytest.mark.slow
@reduces_unused
def test_accumulation_frozen_and_unused_parameters_warmup_and_plan():
    succeed(run_ranks(modes, 3))


def wrong(rank):
    """Every misuse gives one message, on every rank."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy

    import hipress.torch

    mesh = init_device_mesh("cpu", (2,))
    said = []

    def refused(model, type="onebit", error=ValueError, **options):
        with pytest.raises(error) as caught:
            hipress.torch.compress_fsdp(model, type, **options)
        said.append(str(caught.value))

    refused(Model(), error=TypeError)
    refused(sharded(mesh), "nonsense" if rank == 1 else "onebit")
    refused(sharded(mesh), min_size=10 + rank)
    refused(sharded(mesh), plan={"other": object()})
    refused(sharded(mesh), replicate_group=dist.group.WORLD)
    policy = MixedPrecisionPolicy(reduce_dtype=torch.float64)
    refused(sharded(mesh, mp_policy=policy), min_size=MIN_SIZE)
    model = sharded(mesh)
    hipress.torch.compress_fsdp(model, "onebit")
    refused(model)
    from torch.distributed._composable import replicate

    refused(replicate(torch.nn.Linear(8, 8)), error=TypeError)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match="FSDP2 reduces its gradient"):
        hipress.torch.DistributedOptimizer(optimizer, model.named_parameters(), "onebit")
    if rank == 0:  # alone
        refused(sharded(mesh), error=hipress.torch.HipressError, timeout=1)
    return said


@pytest.mark.slow
def test_misuse():
    first, second = returned(run_ranks(wrong, 2))
    assert "waited 1 s for rank 1 to call compress()" in first.pop()
    for number, said in enumerate(zip(first, second, strict=True)):
        text = [
            "after fully_shard",
            "nonsense",
            "differ in min_size",
            "'other'",
            "one rank of each host",
            "reduced as float64",
            "already",
            "replicate()",
        ][number]
        assert all(text in one for one in said), said


def hybrid(rank, momentum):
    """Train on 2 hosts of 2 ranks: sharded inside, compressed averages between."""
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch
    from hipress.topology.graph import worker
    from hipress.torch.settings import Settings
    from hipress.torch.state.error_feedback import Codecs

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = sharded(mesh["shard"])
    hipress.torch.compress_fsdp(
        model,
        "onebit",
        min_size=800,
        replicate_group=mesh["replicate"].get_group(),
        shared_momentum=momentum,
    )
    host, shard = divmod(rank, 2)
    runs, sums = {}, {}
    for step in range(STEPS):
        backward(model, rank, step)
        for owner, (name, shape) in enumerate(whole_shapes().items()):
            chunk = -(-shape[0] // 2)
            mine = slice(shard * chunk, (shard + 1) * chunk)
            whole = [gradient_of(name[6:], shape, r, step)[mine] for r in range(4)]
            hosts = [(whole[2 * h] + whole[2 * h + 1]) / 2 for h in range(2)]
            hosts = [gradient + momentum * sums.get(name, 0.0) for gradient in hosts]
            found = dict(model.named_parameters())[name].grad.to_local()
            sums[name] = found.clone()
            if found.numel() < 800:
                torch.testing.assert_close(found, (hosts[0] + hosts[1]) / 2, rtol=0, atol=1e-6)
                continue
            if name not in runs:
                graph = Settings("onebit").graph(found.numel(), 2, owner, name)
                runs[name] = reference(graph, Codecs("onebit", {}), 2, name)
            flat = {worker(h): g.reshape(-1).numpy() for h, g in enumerate(hosts)}
            expected = torch.from_numpy(runs[name].step(flat)[worker(host)])
            assert torch.equal(found.reshape(-1), expected), name
    return len(runs)


@pytest.mark.slow
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_hybrid_sharding(momentum):
    assert returned(run_ranks(hybrid, 4, momentum)) == [5, 3, 5, 3]


def trains(rank):
    """Train a network, whose loss falls as without compression."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    losses = []
    for type in ("", "maxmin"):
        model = network()
        for layer in model:
            if isinstance(layer, torch.nn.Linear):
                fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        if type:
            hipress.torch.compress_fsdp(model, type, bits=8, min_size=100)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for _ in range(10):
            optimizer.zero_grad()
            loss = loss_of(model, rank, 0)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    plain, compressed = losses
    assert compressed < plain * 1.05 + 0.01 < 1, losses


@pytest.mark.slow
def test_it_trains():
    succeed(run_ranks(trains, 2))


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ArithmeticError("not this time")


def retries(rank):
    """A backward pass that ends in an error is no step; the next one is, and ends the warm-up."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    model, mesh = network(), init_device_mesh("cpu", (2,))
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    compression = hipress.torch.compress_fsdp(model, "onebit", min_size=MIN_SIZE, warmup_steps=1)
    begun, start = [], compression.start_bucket
    compression.start_bucket = lambda *bucket: begun.append(bucket[2]) or start(*bucket)
    hook = model[0].register_forward_hook(lambda module, given, out: Fails.apply(out))
    with pytest.raises(ArithmeticError):
        loss_of(model, rank, 0).backward()
    hook.remove()
    model.reset_iter_state()
    assert begun and compression.step == 0 and not compression.error_feedback.states
    for step in (1, 2):
        loss_of(model, rank, step).backward()
        assert compression.step == step
    assert compression.error_feedback.states


def check_retries(function):
    """Run calls of FSDPModule.reset_iter_state on two ranks."""
    from torch.distributed.fsdp import FSDPModule

    if not hasattr(FSDPModule, "reset_iter_state"):
        pytest.skip("needs FSDPModule.reset_iter_state (PyTorch 2.13)")
    returned(run_ranks(function, 2))


@pytest.mark.slow
def test_an_error_in_a_backward_pass_is_no_step():
    check_retries(retries)


def refuses(rank):
    """Refuse a step on one rank, which ends it on all."""
    import time

    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    import hipress.torch
    from hipress.torch.private_fsdp import hooks

    class Largest:
        """Reduce-scatter that requests the largest gradients."""

        def __init__(self, inner):
            self.allocate, self._inner = inner.allocate, inner

        def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
            return self._inner(output_tensor, input_tensor, group, dist.ReduceOp.MAX, async_op)

    model = sharded(init_device_mesh("cpu", (2,)))
    hipress.torch.compress_fsdp(model, "onebit", min_size=MIN_SIZE)
    if rank == 0:
        for part in model.parts:
            part.set_custom_reduce_scatter(Largest(hooks(part)[0]))
    begin = time.monotonic()
    with pytest.raises(hipress.torch.HipressError, match="can be summed or averaged"):
        backward(model, rank, 0)
    return time.monotonic() - begin


def test_what_one_rank_refuses_ends_the_step_on_all():
    assert max(returned(run_ranks(refuses, 2))) < 10  # the timeout is 20 s
