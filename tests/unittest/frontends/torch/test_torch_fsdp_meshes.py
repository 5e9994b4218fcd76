"""Gradients of models on every kind of mesh, compared with those of uncompressed FSDP2.

Four ranks train on each mesh with all scales of gradients and all kinds of gathers. Codec "none"
must give FSDP2's gradients within float32's rounding, and a lossy codec equal weights on all ranks.
"""

import contextlib
import itertools
import logging.handlers

import pytest

pytest.importorskip("torch")

import torch.distributed.fsdp as fsdp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_fsdp_divide import premultiply_on_gloo

if not hasattr(fsdp.FSDPModule, "set_custom_all_gather"):
    pytest.skip(
        f"needs FSDPModule.set_custom_all_gather, which PyTorch {torch.__version__} has not",
        allow_module_level=True,
    )

WORLD = 4
TOLERANCE = 2e-6
"""Largest relative error, for sums of four float32 gradients in another order."""
SCALES = {"mean": (None, False), "sum": (1.0, False), "forced sum": (None, True)}
"""Divide factor, and whether only sums are used, by name."""
GATHERS = (None, "exact", "differences")
SHAPES = {"weight": (24, 10), "uneven": (7, 4), "bias": (6,)}


class Part(torch.nn.Module):
    """Module whose gradients are known: a random number and the weight for each element."""

    def __init__(self, number):
        super().__init__()
        self.number = number
        generator = torch.Generator().manual_seed(number)
        for name, shape in SHAPES.items():
            values = torch.randn(shape, generator=generator)
            self.register_parameter(name, torch.nn.Parameter(values))

    def forward(self, data, step):
        return sum(self._loss(p, 100 * data + 10 * step + self.number) for p in self.parameters())

    def _loss(self, parameter, seed):
        values = parameter.to_local() if isinstance(parameter, DTensor) else parameter
        generator = torch.Generator().manual_seed(seed)
        return (values * torch.randn(values.shape, generator=generator) + values**2 / 2).sum()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList(map(Part, range(2)))

    def forward(self, data, step):
        return sum(part(data, step) for part in self.parts)


def distribute(part, mesh, placements):
    """Distribute a module's parameters over a mesh, by name."""
    for name, placed in placements.items():
        values = distribute_tensor(getattr(part, name).detach(), mesh, placed)
        setattr(part, name, torch.nn.Parameter(values))


def shard_all(model, **options):
    for part in model.parts:
        fsdp.fully_shard(part, **options)
    return fsdp.fully_shard(model, **options)


# Each kind of mesh: what makes a model, and the number of the data that this rank has.


def one_dimension():
    mesh = init_device_mesh("cpu", (WORLD,))
    return lambda: shard_all(Model(), mesh=mesh), None


def other_dimension():
    """Shard matrices by columns, as torchtitan does with few experts."""
    mesh = init_device_mesh("cpu", (WORLD,))

    def place(p):
        return Shard(1) if p.ndim == 2 and p.shape[1] % WORLD == 0 else None

    return lambda: shard_all(Model(), mesh=mesh, shard_placement_fn=place), None


def hybrid():
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    return lambda: shard_all(Model(), mesh=mesh), None


def tensor_parallel(bias=None):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))

    def make():
        model = Model()
        for part in model.parts:
            placed = {"weight": [Shard(0)], "uneven": [Shard(1)], "bias": [bias or Shard(0)]}
            distribute(part, mesh["tensor"], placed)
        return shard_all(model, mesh=mesh["data"])

    return make, mesh["data"].get_local_rank()


def tensor_parallel_with_equal_biases():
    return tensor_parallel(Replicate())


def named_dimensions(replicate=None, shape=(2, 1, 2)):
    """Parameters are on the whole mesh, as torchtitan places them."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("data", "context", "tensor"))
    shard = ("context",) if replicate else ("data", "context")
    dims = fsdp.DataParallelMeshDims(shard=shard, replicate=replicate)

    def make():
        model = Model()
        for part in model.parts:
            for name in SHAPES:
                last = Shard(0) if name == "weight" else Replicate()
                distribute(part, mesh, {name: [Replicate(), Replicate(), last]})
        return shard_all(model, mesh=mesh, dp_mesh_dims=dims)

    data = mesh.get_coordinate()
    return make, 2 * data[0] + data[1]


def named_hybrid():
    return named_dimensions("data", (2, 2, 1))


def replicated():
    from torch.distributed._composable.replicate_with_fsdp import replicate

    mesh = init_device_mesh("cpu", (WORLD,))

    def make():
        model = Model()
        for part in model.parts:
            replicate(part, mesh=mesh)
        return replicate(model, mesh=mesh)

    return make, None


def expert_parallel():
    """One part has experts on half of the ranks each, the other one is dense."""
    dense = init_device_mesh("cpu", (WORLD,))
    sparse = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "expert"))

    def make():
        model = Model()
        placed = {"weight": [Shard(0)], "uneven": [Shard(1)], "bias": [Shard(0)]}
        distribute(model.parts[1], sparse["expert"], placed)
        fsdp.fully_shard(model.parts[0], mesh=dense)
        fsdp.fully_shard(model.parts[1], mesh=sparse["data"])
        return fsdp.fully_shard(model, mesh=dense)

    return make, None


def experts_inside_a_module():
    """Each module has dense parameters and experts, as torchtitan shards its blocks."""
    from torch.distributed.fsdp._fully_shard._fsdp_common import FSDPMeshInfo, ShardPlacementResult

    dense = init_device_mesh("cpu", (WORLD,))
    sparse = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "expert"))

    def make():
        model = Model()
        for part in model.parts:
            distribute(part, sparse["expert"], {"weight": [Shard(0)]})
            infos = [FSDPMeshInfo(mesh, shard_mesh_dim=0) for mesh in (dense, sparse["data"])]

            def place(p, infos=infos):
                return ShardPlacementResult(Shard(0), infos[isinstance(p, DTensor)])

            fsdp.fully_shard(part, mesh=dense, shard_placement_fn=place)
        return fsdp.fully_shard(model, mesh=dense)

    return make, None


MESHES = {
    "one dimension": (one_dimension, "aabb"),
    "other dimension": (other_dimension, "aabb"),
    "hybrid inside hosts": (hybrid, "aabb"),
    "hybrid across hosts": (hybrid, "abcd"),
    "replicas inside hosts": (hybrid, "abab"),
    "tensor parallel": (tensor_parallel, "aabb"),
    "equal biases": (tensor_parallel_with_equal_biases, "aabb"),
    "named dimensions": (named_dimensions, "aabb"),
    "named hybrid": (named_hybrid, "abcd"),
    "replicated": (replicated, "aabb"),
    "expert parallel": (expert_parallel, "aabb"),
    "experts inside a module": (experts_inside_a_module, "aabb"),
}
"""Meshes, and the host of each rank."""
needs_names = pytest.mark.skipif(
    not hasattr(fsdp, "DataParallelMeshDims"), reason="this PyTorch has no names for dimensions"
)


def on_hosts(hosts, rank):
    """Report another host on each rank."""
    from hipress.torch.autotune import choice

    choice.this_host = lambda: hosts[rank]


def set_scale(model, factor, force_sum):
    for module in model.modules():
        if isinstance(module, fsdp.FSDPModule):
            if factor is not None:
                module.set_gradient_divide_factor(factor)
            module.set_force_sum_reduction_for_comms(force_sum)


def backward(model, data, step):
    model.zero_grad()
    model(data, step).backward()
    return {n: p.grad.to_local().clone() for n, p in model.named_parameters()}


def step_weights(model):
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad


def compare(rank, make_mesh, hosts, codec, gathers, scales):
    """Return the combinations that differ from FSDP2, and weights after lossy training."""
    import hipress.torch

    on_hosts(hosts, rank)
    make, data = make_mesh()
    data, different = rank if data is None else data, []
    for gather, scale in itertools.product(gathers, scales):
        plain, model = make(), make()
        for each in (plain, model):
            premultiply_on_gloo(each)
            set_scale(each, *SCALES[scale])
        hipress.torch.compress_fsdp(model, codec, min_size=0, gather=gather)
        for step in range(1 if gather == "differences" else 2):
            expected, found = backward(plain, data, step), backward(model, data, step)
            assert expected.keys() == found.keys()
            for name, values in expected.items():
                if not torch.allclose(found[name], values, rtol=TOLERANCE, atol=TOLERANCE):
                    ratio = (found[name].norm() / values.norm()).item()
                    different.append((gather, scale, step, name, ratio))
            step_weights(plain)
            step_weights(model)
    return different


def train(rank, make_mesh, hosts, gather):
    """Return all weights after lossy training, and whether anything was compressed."""
    import hipress.torch

    on_hosts(hosts, rank)
    make, data = make_mesh()
    model = make()
    compression = hipress.torch.compress_fsdp(model, "maxmin", bits=4, min_size=0, gather=gather)
    for step in range(3):
        backward(model, rank if data is None else data, step)
        step_weights(model)
    assert compression.step == 3
    weights = [p.full_tensor().tolist() for p in model.parameters()]
    return weights, compression.stats().compressed > 0


def gathers_of(name):
    if name in ("hybrid inside hosts", "replicated"):  # weights do not leave the host
        return GATHERS[:1]
    return GATHERS[:2] if name in ("equal biases", "named dimensions") else GATHERS


@needs_names
@pytest.mark.slow
@pytest.mark.parametrize("name", MESHES)
def test_gradients_are_those_of_fsdp2(name):
    args = (*MESHES[name], "none", gathers_of(name), tuple(SCALES))
    assert returned(run_ranks(compare, WORLD, *args)) == [[]] * WORLD


@needs_names
@pytest.mark.slow
@pytest.mark.parametrize("name", MESHES)
def test_weights_are_equal_on_all_ranks_with_a_lossy_codec(name):
    found = returned(run_ranks(train, WORLD, *MESHES[name], gathers_of(name)[-1]))
    for weights, compressed in found:
        assert weights == found[0][0] and compressed


def accumulate(rank, hosts):
    """Compare steps of which some do not reduce gradients, or only inside the shards' groups."""
    import hipress.torch

    on_hosts(hosts, rank)
    make, _ = hybrid()
    plain, model = make(), make()
    hipress.torch.compress_fsdp(model, "none", min_size=0)
    different = []
    for switch in ("set_requires_gradient_sync", "set_requires_all_reduce"):
        for each in (plain, model):
            each.zero_grad()
            for step, last in ((0, False), (1, False), (2, True)):
                getattr(each, switch)(last)
                each(rank, step).backward()
        for (name, p), q in zip(model.named_parameters(), plain.parameters(), strict=True):
            found, expected = p.grad.to_local(), q.grad.to_local()
            if not torch.allclose(found, expected, rtol=TOLERANCE, atol=3 * TOLERANCE):
                different.append((switch, name))
    return different


@pytest.mark.slow
@pytest.mark.parametrize("hosts", ["aabb", "abab", "abcd"])
def test_accumulated_gradients_are_those_of_fsdp2(hosts):
    assert returned(run_ranks(accumulate, WORLD, hosts)) == [[]] * WORLD


def resume(rank, make_mesh, hosts, path):
    """Compare training with training that is saved, loaded into a new model, and continued."""
    import torch.distributed.checkpoint as checkpoint

    import hipress.torch

    on_hosts(hosts, rank)
    make, data = make_mesh()
    data = rank if data is None else data

    def compressed():
        model = make()
        options = {"bits": 2, "min_size": 0}
        return model, hipress.torch.compress_fsdp(model, "maxminef", **options)

    def train_on(model, steps):
        for step in steps:
            backward(model, data, step)
            step_weights(model)
        return [p.to_local().clone() for p in model.parameters()]

    model, compression = compressed()
    train_on(model, range(3))
    weights, state = model.state_dict(), compression.state_dict()
    weights = {name: value.clone() for name, value in weights.items()}
    checkpoint.save({"hipress": compression}, checkpoint_id=path)
    expected = train_on(model, range(3, 5))
    same = []
    for load in (
        lambda compression: compression.load_state_dict(state),
        lambda compression: hipress.torch.load_checkpoint(compression, path),
    ):
        model, compression = compressed()
        model.load_state_dict(weights)
        load(compression)
        same += map(torch.equal, train_on(model, range(3, 5)), expected)
        same.append(compression.step == 5)
    return all(same)


@needs_names
@pytest.mark.slow
@pytest.mark.parametrize("name", ["hybrid across hosts", "tensor parallel", "expert parallel"])
def test_training_resumes_bit_for_bit(name, tmp_path):
    assert returned(run_ranks(resume, WORLD, *MESHES[name], str(tmp_path))) == [True] * WORLD


def move(rank, saved_mesh, make_mesh, share):
    """Load the state of one mesh on another, and train a step.

    Returns:
        Parameters whose gradients are those of a job that begins, and the warnings.
    """
    import torch.distributed as dist

    import hipress.torch

    warnings = logging.handlers.BufferingHandler(100)
    warnings.setLevel(logging.WARNING)
    logging.getLogger("hipress").addHandler(warnings)

    def compressed(make):
        model = make()
        return model, hipress.torch.compress_fsdp(model, "topk", ratio=0.3, min_size=0)

    make, data = saved_mesh()
    model, compression = compressed(make)
    backward(model, rank if data is None else data, 0)
    states = [None] * WORLD
    dist.all_gather_object(states, compression.state_dict())
    make, data = make_mesh()
    found = []
    for load in (False, True):
        model, compression = compressed(make)
        if load:
            whole = {key: value for state in states for key, value in state.items() if value}
            compression.load_state_dict(states[rank] if share else whole)
            assert compression.step == 1
        found.append(backward(model, rank if data is None else data, 1))
    fresh, loaded = found
    same = [n for n, gradient in loaded.items() if torch.equal(gradient, fresh[n])]
    on_all = [None] * WORLD
    dist.all_gather_object(on_all, same)
    same = set.intersection(*map(set, on_all))  # a rank may have no element of a parameter
    return same, [record.getMessage() for record in warnings.buffer]


@needs_names
@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("saved", "loaded", "share", "dropped"),
    [
        (one_dimension, tensor_parallel_with_equal_biases, True, ["bias", "uneven"]),
        (other_dimension, one_dimension, False, ["uneven"]),
        (tensor_parallel, tensor_parallel, True, []),
    ],
)
def test_state_is_dropped_where_the_mesh_orders_elements_differently(saved, loaded, share, dropped):
    names = [f"parts.{i}.{name}" for i in range(2) for name in dropped]
    for same, warnings in returned(run_ranks(move, WORLD, saved, loaded, share)):
        assert sorted(same) == names
        assert len(warnings) == bool(names) and (not names or str(names) in warnings[0])


def refuse(rank):
    """Try what is refused, and return the messages."""
    import torch.distributed as dist

    import hipress.torch

    on_hosts("aabb", rank)
    both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    said = []

    def refused(model, codec="onebit", **options):
        with pytest.raises(ValueError) as caught:
            hipress.torch.compress_fsdp(model, codec, **options)
        said.append(str(caught.value))

    refused(hybrid()[0](), gather="exact")
    refused(hybrid()[0](), replicate_group=both["replicate"].get_group())
    refused(hybrid()[0](), "nonsense" if rank == 3 else "onebit")
    refused(tensor_parallel_with_equal_biases()[0](), gather="differences")
    refused(tensor_parallel_with_equal_biases()[0](), "auto")
    refused(expert_parallel()[0](), replicate_group=dist.group.WORLD)
    on_hosts("abcd", rank)
    refused(hybrid()[0](), "nonsense" if rank == 3 else "onebit")
    refused(hybrid()[0](), "dgc", ratio=0.1)
    model = hybrid()[0]()
    hipress.torch.compress_fsdp(model, "onebit")
    refused(model)
    return said


@needs_names
@pytest.mark.slow
def test_meshes_that_do_not_fit_are_refused_on_all_ranks():
    expected = [
        "its weights do not leave the host",
        "leave replicate_group out",
        "nonsense",
        "'parts.0.bias' differently on the ranks of tensor parallelism",
        "which all have parameter 'parts.0.bias': name a codec",
        "sharded over different ranks",
        "nonsense",
        "give dgc momentum=0",
        "already",
    ]
    found = returned(run_ranks(refuse, WORLD))
    for said in found:
        for sentence, text in zip(said, expected, strict=True):
            assert text in sentence, said


def adapt(rank):
    """Compress a model whose quantized weights are sharded over ranks of tensor parallelism.

    Returns:
        Number of this rank and of all ranks in the saved state, and the error of a rounding gather.
    """
    import hipress.torch

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))

    def make():
        model = Model()
        for part in model.parts:
            quantized = part.weight.detach().to(torch.int8)
            placed = distribute_tensor(quantized, mesh["tensor"], [Shard(0)])
            part.weight = torch.nn.Parameter(placed, requires_grad=False)
        return shard_all(model, mesh=mesh["data"])

    with pytest.raises(ValueError) as caught:
        hipress.torch.compress_fsdp(make(), "maxmin", min_size=0, gather="blocks")
    compression = hipress.torch.compress_fsdp(make(), "maxmin", min_size=0)
    return compression.rank, compression.world_size, str(caught.value)


@pytest.mark.slow
def test_tensor_parallelism_of_frozen_quantized_weights_is_recognized():
    found = returned(run_ranks(adapt, WORLD))
    assert sorted(each[:2] for each in found) == [(rank, WORLD) for rank in range(WORLD)]
    assert all("'parts.0.uneven' differently on the ranks" in each[2] for each in found)


def call_without_rank_3(rank):
    """Return the error on a mesh on which one rank does not call compress_fsdp()."""
    import datetime

    import torch.distributed as dist

    import hipress.torch

    on_hosts("abcd", rank)
    model = hybrid()[0]()
    store = dist.distributed_c10d._get_default_store()
    if rank == 3:
        with contextlib.suppress(dist.DistStoreError):
            store.wait([f"done {r}" for r in range(3)], datetime.timedelta(seconds=20))
        return None
    with pytest.raises(RuntimeError) as caught:
        hipress.torch.compress_fsdp(model, "onebit", timeout=1)
    store.set(f"done {rank}", "")
    return [str(caught.value)]


@pytest.mark.slow
def test_rank_that_does_not_call_is_named_after_the_timeout():
    for (error,) in returned(run_ranks(call_without_rank_3, WORLD, timeout=60))[:3]:
        assert error.startswith("waited 1 s for rank 3 to call compress()")


def replicate_in_memory(rank):
    """Compress a model with expert parallelism while the memory is limited.

    Returns:
        Bytes of the replicas of both process groups, bytes that they were expected to need, and
        errors.
    """
    import hipress.torch
    from hipress.torch.integrations import fsdp_gather

    make = expert_parallel()[0]
    model, needed, errors = make(), [], []
    compression = hipress.torch.compress_fsdp(model, "none", min_size=0, gather="differences")
    backward(model, rank, 0)
    used = compression.gathers.replica_bytes
    fsdp_gather.available_bytes = lambda: used - 1
    with pytest.raises(ValueError) as caught:
        hipress.torch.compress_fsdp(make(), "none", min_size=0, gather="differences")
    errors.append(str(caught.value))
    fsdp_gather.available_bytes = lambda: used
    hipress.torch.compress_fsdp(make(), "none", min_size=0, gather="differences")

    def choose(frontend, needed_bytes, *args):
        needed.append(needed_bytes)
        raise ValueError("not measured")

    fsdp_gather.choose_gather = choose
    with pytest.raises(ValueError, match="not measured"):
        hipress.torch.compress_fsdp(make(), "none", min_size=0, gather="auto")
    return used, needed, errors


@pytest.mark.slow
def test_memory_is_checked_for_the_replicas_of_all_process_groups():
    for used, needed, (error,) in returned(run_ranks(replicate_in_memory, WORLD)):
        assert needed == [used] and "its share of the available memory" in error


def replicate_by_backend(rank, factor):
    """Compare both of PyTorch's replicate() on the backend "hipress" with theirs on Gloo."""
    import os

    import torch.distributed as dist
    from torch.distributed._composable.replicate import replicate
    from torch.distributed._composable.replicate_with_fsdp import replicate as replicate_with_fsdp
    from torch.distributed.device_mesh import DeviceMesh

    import hipress.torch

    assert hipress.torch  # which registers the backend
    os.environ.update(HIPRESS_MIN_SIZE="10", HIPRESS_COMPRESSION="fp16")
    compressed = dist.new_group(backend="hipress")
    found = []
    for group in (dist.group.WORLD, compressed):
        model = Model()
        replicate(model, process_group=group)
        model(rank, 0).backward()
        found.append([p.grad for p in model.parameters()])
        model = replicate_with_fsdp(Model(), mesh=DeviceMesh.from_group(group, "cpu"))
        set_scale(model, factor, False)
        found.append(list(backward(model, rank, 0).values()))
    alike = [
        torch.allclose(a, b, rtol=1e-3, atol=1e-3)
        for plain, ours in (found[::2], found[1::2])
        for a, b in zip(plain, ours, strict=True)
    ]
    size = 4 * sum(p.numel() for p in model.parameters())
    return all(alike), compressed.stats().compressed / size


@needs_names
@pytest.mark.parametrize("factor", [None, 1.0])
def test_replicate_compresses_by_the_backend(factor):
    assert returned(run_ranks(replicate_by_backend, 2, factor)) == [(True, 2.0)] * 2
