"""DistributedDataParallel with compressed gradients: right results in all of DDP's modes."""

import copy
import os
import re
import time
import weakref
from pathlib import Path

import pytest

from harness.torch_ranks import run_ranks, torch
from hipress.planning.plan import Decision

MIN_SIZE = 1000


def network(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 200),
        torch.nn.ReLU(),
        torch.nn.Linear(200, 200),
        torch.nn.ReLU(),
        torch.nn.Linear(200, 10),
    )


def batch(rank, step):
    generator = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.randn(8, 64, generator=generator)
    return x, torch.randint(0, 10, (8,), generator=generator)


def loss_of(model, rank, step):
    x, y = batch(rank, step)
    return torch.nn.functional.cross_entropy(model(x), y)


def wrap(model, type, **options):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    keywords = {k: options.pop(k) for k in list(options) if k in DDP_KEYWORDS}
    ddp = DistributedDataParallel(model, **keywords)
    options.setdefault("min_size", MIN_SIZE)
    return ddp, hipress.torch.compress(ddp, type, **options)


DDP_KEYWORDS = ["bucket_cap_mb", "find_unused_parameters", "gradient_as_bucket_view"]
DDP_KEYWORDS += ["static_graph"]


def expect(type, params, topology, sizes, world_size, plan=None):
    """Return the reference of every large gradient by name."""
    from hipress.torch.settings import Settings
    from hipress.torch.state.error_feedback import Codecs
    from test_torch_equality import reference

    settings = Settings(type, params, topology=topology, min_size=MIN_SIZE, plan=plan)
    found = {}
    for owner, (name, n) in enumerate(sizes.items()):
        if settings.compresses(name, n):
            graph = settings.graph(n, world_size, owner, name)
            found[name] = reference(graph, Codecs(type, params), world_size, name)
    return found


def mean_gradients(model, losses, references):
    """Return the gradients that parameters must have; ``losses[r](model)`` is rank r's."""
    from hipress.topology.graph import worker

    local = []
    for loss in losses:
        model.zero_grad()
        loss(model).backward()
        local.append({n: p.grad.clone() for n, p in model.named_parameters()})
    found = {}
    for name in local[0]:
        shape = local[0][name].shape
        if name in references:
            gradients = {worker(r): g[name].flatten().numpy() for r, g in enumerate(local)}
            found[name] = torch.from_numpy(references[name].step(gradients)[worker(0)]).view(shape)
        else:
            found[name] = sum(g[name] for g in local) / len(local)
    return found


def train_and_compare(
    rank, world_size, type, params, topology, accumulate=1, plan=None, **keywords
):
    """Train three steps; assert that every gradient is the reference's."""
    model = network()
    plain = copy.deepcopy(model)
    ddp, _ = wrap(model, type, topology=topology, plan=plan, **params, **keywords)
    sizes = {n: p.numel() for n, p in plain.named_parameters()}
    references = expect(type, params, topology, sizes, world_size, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        for part in range(accumulate - 1):
            with ddp.no_sync():
                loss_of(ddp, rank, 10 * step + part).backward()
        loss_of(ddp, rank, 10 * step + accumulate - 1).backward()
        plain.load_state_dict(model.state_dict())

        def losses(r, step=step):
            return lambda m: sum(loss_of(m, r, 10 * step + part) for part in range(accumulate))

        want = mean_gradients(plain, [losses(r) for r in range(world_size)], references)
        for name, parameter in model.named_parameters():
            if name in references and accumulate == 1:
                assert torch.equal(parameter.grad, want[name]), (step, name)
            else:
                torch.testing.assert_close(parameter.grad, want[name], rtol=1e-4, atol=1e-5)
        norm = torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        assert torch.isfinite(norm)
        optimizer.step()
    return [p.detach().numpy().tobytes() for p in model.parameters()]


PLAN = Path(__file__).parents[2] / "data" / "torch.plan"
"""Plan in which 0.weight is uncompressed, 2.weight has 3 partitions, and all other gradients depend
on their size."""


def ddp_modes(rank, world_size):
    found = [
        train_and_compare(rank, world_size, "onebit", {}, "ps"),
        # Buckets of one gradient each, rebuilt after the first step: residuals must survive that.
        train_and_compare(rank, world_size, "onebit", {}, "ring", bucket_cap_mb=0.01),
        train_and_compare(
            rank,
            world_size,
            "dgc",
            {"ratio": 0.05},
            "ps",
            bucket_cap_mb=0.1,
            gradient_as_bucket_view=True,
        ),
        train_and_compare(rank, world_size, "maxmin", {}, "ps", static_graph=True),
        train_and_compare(rank, world_size, "tbq", {"threshold": 0.01}, "tree"),
        train_and_compare(rank, world_size, "fp16", {}, "ps", accumulate=3),
        train_and_compare(rank, world_size, "onebit", {}, "ps", plan=PLAN),
    ]
    return found


def bits(model):
    """Return the bytes of each parameter."""
    return [p.detach().numpy().tobytes() for p in model.parameters()]


def succeed(results):
    assert not any(isinstance(found, str) for found in results), results
    assert all(found == results[0] for found in results), "ranks ended with different bits"
    return results


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("world_size", [1, 3])
def test_gradients_are_the_references(world_size):
    succeed(run_ranks(ddp_modes, world_size, world_size))


def other_modes(rank, world_size):
    """Try checkpointing, torch.compile, find_unused_parameters, 16-bit models and GradScaler."""
    return [
        checkpointing(rank),
        compiled(rank),
        unused(rank),
        *(sixteen_bits(rank, dtype) for dtype in (torch.float16, torch.bfloat16)),
        overflow(rank, "onebit"),
        overflow(rank, "dgc"),
        overflow(rank, "2bit"),
    ]


def gradients(model):
    return [p.grad.view(torch.uint8).numpy().tobytes() for p in model.parameters()]


def checkpointing(rank):
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = network()

        def forward(self, x):
            for layer in self.layers:
                x = checkpoint(layer, x, use_reentrant=False)
            return x

    plain, again = network(), Checkpointed()
    for model in (plain, again):
        ddp, _ = wrap(model, "onebit")
        loss_of(ddp, rank, 0).backward()
    assert gradients(plain) == gradients(again)
    return gradients(again)


def compiled(rank):
    plain, other = network(), network()
    for model, transform in ((plain, lambda m: m), (other, COMPILE)):
        ddp, _ = wrap(model, "onebit")
        ddp = transform(ddp)
        for step in range(2):
            model.zero_grad()
            loss_of(ddp, rank, step).backward()
    for a, b in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-4)
    return gradients(other)


def COMPILE(model):
    return torch.compile(model, backend="aot_eager")  # no code is generated: that takes a minute


class Branches(torch.nn.Module):
    """Model that uses its second layer on rank 0 only."""

    def __init__(self, rank):
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)
        self.use = rank == 0

    def forward(self, x):
        x = self.first(x)
        return self.second(x) if self.use else x


def unused(rank):
    torch.manual_seed(0)
    model = Branches(rank)
    ddp, _ = wrap(model, "topk", ratio=1.0, find_unused_parameters=True)
    ddp(torch.ones(2, 64)).sum().backward()
    want = torch.full((64, 64), 2.0)  # of rank 0's output alone, so half of it is the mean
    hidden = model.first(torch.ones(2, 64)).sum(0).detach()
    torch.testing.assert_close(model.second.weight.grad, 0.5 * want / 2 * hidden)
    return gradients(model)


def sixteen_bits(rank, dtype):
    model = network().to(dtype)
    ddp, _ = wrap(model, "maxmin")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        x, y = batch(rank, step)
        torch.nn.functional.cross_entropy(ddp(x.to(dtype)).float(), y).backward()
        optimizer.step()
    assert all(p.dtype == dtype and p.grad.isfinite().all() for p in model.parameters())
    return gradients(model)


def overflow(rank, type):
    """One rank's Inf makes every rank's scaler skip the step, and the next step has no error."""
    model = network()
    ddp, _ = wrap(model, type)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scales = []
    for step in range(3):
        optimizer.zero_grad()
        before = [p.detach().clone() for p in model.parameters()]
        loss = loss_of(ddp, rank, step)
        if step == 1 and rank == 1:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        same = all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
        assert same == (step == 1), step
        scales.append(scaler.get_scale())
    assert scales == [1024.0, 512.0, 512.0]
    return gradients(model)


@pytest.mark.slow
def test_other_modes():
    succeed(run_ranks(other_modes, 2, 2, timeout=90))


def sparse():
    return torch.nn.Sequential(torch.nn.EmbeddingBag(1000, 64, sparse=True), network())


def doubles():
    return network().double()


OF_ANOTHER = {"0.weight": Decision(True, 1, size=3)}
MISUSE = [
    ("an unknown type", ("nonsense", {}, network, {}), "nonsense"),
    ("of one rank", ("onebit", {"type": "nonsense"}, network, {}), "rank 1: .*nonsense"),
    ("a bad parameter", ("dgc", {}, network, {"ratio": 7}), "ratio"),
    ("parameters that differ", ("dgc", {"ratio": 0.5}, network, {"ratio": 0.1}), "ratio=0.5"),
    ("topologies that differ", ("onebit", {"topology": "ring"}, network, {}), "differ in topology"),
    ("an unknown topology", ("onebit", {}, network, {"topology": "moebius"}), "moebius"),
    ("a negative size", ("onebit", {}, network, {"min_size": -1}), "min_size"),
    ("sparse gradients", ("onebit", {}, sparse, {}), "module '0' has sparse gradients"),
    ("float64", ("onebit", {}, doubles, {}), "'0.weight' is float64"),
    ("another model's plan", ("onebit", {}, network, {"plan": {"x": None}}), "the plan has 'x'"),
    ("other sizes", ("onebit", {}, network, {"plan": OF_ANOTHER}), "has 3 elements there"),
    ("an unknown option", ("onebit", {}, network, {"level": 3}), "level"),
]


def misuse(rank):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    found = []
    for _, (type, change, make, options), _ in MISUSE:
        arguments = {"type": type, "min_size": 1000, **options, **(change if rank == 1 else {})}
        ddp = DistributedDataParallel(make())
        try:
            hipress.torch.compress(ddp, arguments.pop("type"), **arguments)
            found.append("nothing was raised")
        except ValueError as error:
            found.append(str(error))
    try:
        hipress.torch.compress(network(), "onebit")
    except TypeError as error:
        found.append(str(error))
    ddp, _ = wrap(network(), "onebit")
    try:
        hipress.torch.compress(ddp, "onebit")
    except ValueError as error:
        found.append(str(error))
    return found


def test_misuse_is_one_sentence_on_every_rank():
    for rank, found in enumerate(run_ranks(misuse, 2)):
        assert isinstance(found, list), found
        for (what, _, pattern), text in zip(MISUSE, found, strict=False):
            pattern = pattern.replace("rank 1: ", "") if rank == 1 else pattern
            assert re.search(pattern, text), f"{what} on rank {rank}: {text}"
        assert "takes a DistributedDataParallel model, not Sequential" in found[-2]
        assert "a communication hook already" in found[-1]


def unused_by_mistake(rank):
    ddp, _ = wrap(Branches(rank), "onebit", timeout=20, bucket_cap_mb=0.001)
    for _ in range(2):
        ddp(torch.ones(2, 64)).sum().backward()


def die(rank, world_size, min_size):
    """Let rank 1 die in its fourth step. Return the other ranks' errors, and after how many
    seconds."""
    ddp, _ = wrap(network(), "onebit", topology="ring", min_size=min_size)
    for step in range(100):
        if step == 3 and rank == 1:
            os._exit(9)
        started = time.monotonic()
        try:
            loss_of(ddp, rank, step).backward()
        except RuntimeError as error:
            return f"{type(error).__name__}: {error}", time.monotonic() - started


def test_a_parameter_unused_on_some_ranks_ends_in_an_error_everywhere():
    started = time.monotonic()
    first, second = run_ranks(unused_by_mistake, 2)
    assert time.monotonic() - started < 20
    assert re.search("HipressError: bucket.*: rank 1 .*died", first), first
    assert "RuntimeError: Expected to have finished reduction" in second, second


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("min_size", [MIN_SIZE, 10**6], ids=["compressed", "uncompressed"])
def test_a_rank_that_dies_is_an_error_on_the_others(min_size):
    first, dead, last = run_ranks(die, 3, 3, min_size)
    assert dead == "died with status 9"
    for text, seconds in (first, last):
        assert re.match(r"HipressError: bucket .*: rank 1 \(127.0.0.1:\d+\) died: ", text), text
        assert seconds < 15, text  # the timeout is 20 s


def give_up(rank, world_size, where):
    from hipress.torch.executors.host import HostBucket

    min_size = MIN_SIZE if where == "compressed" else 10**6
    ddp, compression = wrap(network(), "onebit", timeout=50, min_size=min_size)
    loss_of(ddp, rank, 0).backward()

    def broken(*args):
        raise MemoryError("no more memory")

    if rank == 1 and where == "compressed":
        HostBucket.run = broken
    elif rank == 1:
        compression.hook = broken
    try:
        loss_of(ddp, rank, 1).backward()
    except Exception as error:
        if rank == 1 and where == "uncompressed":
            compression.engine.fail(error, "bucket 0")
        caught = f"{type(error).__name__}: {error}"
        time.sleep(6)  # its connections stay
        return caught
    return "no error"


@pytest.mark.slow
@pytest.mark.parametrize("where", ["compressed", "uncompressed"])
def test_a_rank_that_gives_up_but_lives_tells_the_others(where):
    started = time.monotonic()
    results = run_ranks(give_up, 3, 3, where)
    assert time.monotonic() - started < 30  # of 50 that others would wait
    for rank in (0, 2):
        assert results[rank].startswith("HipressError: bucket"), results
        assert "rank 1 gave up" in results[rank] and "no more memory" in results[rank], results


def rebuilt(rank):
    """Return whether plans and memory are those of DDP's present buckets."""
    for type, params in (("onebit", {}), ("onebit", {"warmup_steps": 2})):
        ddp, compression = wrap(network(), type, bucket_cap_mb=0.05, **params)
        buckets = {}
        for step in range(4):
            loss_of(ddp, rank, step).backward()
            for key, steps in compression._buckets.items():
                buckets[key] = weakref.ref(steps)
            del steps
        names = [name for key in compression._buckets for name, *_ in key[0]]
        assert len(buckets) > len(compression._buckets) and len(set(names)) == len(names) == 6
        assert {key for key, made in buckets.items() if made()} == set(compression._buckets)


def test_nothing_of_the_first_buckets_is_kept():
    succeed(run_ranks(rebuilt, 2))


def breaks(rank):
    from hipress.torch.settings import Settings
    from hipress.torch.start import start

    def make_settings():
        if rank == 1:
            raise OSError("libhipress_cuda.so: no such symbol")
        return Settings("onebit")

    with pytest.raises(ValueError, match="no such symbol") as caught:
        start(make_settings, torch.distributed.group.WORLD)
    return str(caught.value)


def test_whatever_breaks_on_one_rank_is_told_to_all():
    problem = "libhipress_cuda.so: no such symbol"
    assert run_ranks(breaks, 2) == [f"rank 1: {problem}", problem]
