"""PowerSGD: gradients by their factors, against the algorithm in double precision."""

import copy
import re

import pytest

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import loss_of, network, wrap
from torch_states import flat_state

np = pytest.importorskip("numpy")

SHAPES = {"a": (40, 70), "bias": (40,), "b": (33, 5, 3, 3), "narrow": (900, 3), "c": (64, 64)}
MIN_SIZE = 64
"""Size with which a, b and c have factors of rank 2. A bias, which is small, travels with them. The
parameter "narrow", which factors would not make shorter, travels by itself."""


class Reference:
    """PowerSGD of several ranks in NumPy's double precision. Initial factors are those that the
    library chose; all else is computed here."""

    def __init__(self, shape, start, world_size):
        self.rows, self.cols = shape[0], int(np.prod(shape[1:]))
        self.residuals = [np.zeros((self.rows, self.cols)) for _ in range(world_size)]
        self.start = start[:, : self.cols].T.astype(np.float64)

    def step(self, gradients):
        """Return the mean's approximation."""
        m = [g.reshape(self.rows, self.cols) + e for g, e in zip(gradients, self.residuals)]
        p, _ = np.linalg.qr(sum(each @ self.start for each in m) / len(m))
        own = [each.T @ p for each in m]
        q = sum(own) / len(own)
        self.residuals = [each - p @ each_q.T for each, each_q in zip(m, own)]
        self.start, _ = np.linalg.qr(q)
        return p @ q.T


def gradients(rank, step, shapes=SHAPES):
    """Create gradients: two directions that all ranks share, and noise."""
    found = {}
    for name, shape in shapes.items():
        both = np.random.default_rng([step, len(name), shape[0]])
        own = np.random.default_rng([step, rank, len(name), shape[0]])
        rows, cols = shape[0], int(np.prod(shape[1:]))
        common = both.normal(size=(rows, 2)) @ both.normal(size=(2, cols))
        found[name] = (common + 0.3 * own.normal(size=(rows, cols))).reshape(shape)
    return found


class Job:
    """This rank's gradients in one flat bucket."""

    def __init__(
        self,
        this,
        dtype=None,
        average=True,
        shapes=None,
        topology="ps",
        type="powersgd",
        min_size=MIN_SIZE,
        shared_momentum=0.0,
        **params,
    ):
        import torch.distributed as dist

        from hipress.torch.settings import Settings
        from hipress.torch.start import start
        from hipress.torch.synchronizer import Synchronizer

        self.rank, self.dtype, self.shapes = this, dtype or torch.float32, shapes or SHAPES
        if type == "powersgd":
            params.setdefault("rank", 2)
        topology, _, devices = topology.partition(":")
        settings = Settings(
            type,
            params,
            topology,
            min_size=min_size,
            devices_per_host=int(devices or 1),
            shared_momentum=shared_momentum,
        )
        named = [
            (name, torch.nn.Parameter(torch.zeros(shape, dtype=self.dtype)))
            for name, shape in self.shapes.items()
        ]
        _, self.engine = start(lambda: settings, dist.group.WORLD, named)
        self.synchronizer = Synchronizer(
            settings, self.engine, dist.group.WORLD, named, average=average
        )

    def reduce(self, values):
        """Return the results by name; ``values`` by name are this rank's inputs."""
        from hipress.torch.gradient import Gradient

        values = {name: torch.as_tensor(v).to(self.dtype) for name, v in values.items()}
        flat = torch.cat([v.reshape(-1) for v in values.values()])
        gradients, offset = [], 0
        for name, each in values.items():
            gradients.append(Gradient(name, offset, each.numel()))
            offset += each.numel()
        self.synchronizer.synchronize(flat, gradients, "bucket 0").wait()
        self.synchronizer.step += 1
        return {name: flat[at : at + n].view(self.shapes[name]) for name, at, n, *_ in gradients}

    def starts(self):
        state = flat_state(self.synchronizer.state_dict())
        found = re.compile(rf"rank{self.rank}/state/(\w+)/0/states/start_q")
        return {m[1]: v.numpy() for k, v in state.items() if (m := found.fullmatch(k))}

    def residuals(self):
        made = self.synchronizer.error_feedback.states.items()
        states = {name: place.state_dict()["states"] for (name, _), place in made}
        return {name: of["residual"] for name, of in states.items() if "residual" in of}


def compare(rank, world_size, topology, dtype, average):
    job = Job(rank, dtype, average, topology=topology)
    compressed = [n for n, shape in SHAPES.items() if job.synchronizer.compresses(n, 99999)]
    references, all_bits = {}, b""
    for step in range(4):
        if step == 0:
            zeros = {name: np.zeros(shape) for name, shape in SHAPES.items()}
            for result in job.reduce(zeros).values():
                assert not result.any()
            starts = job.starts()
            references = {n: Reference(SHAPES[n], starts[n], world_size) for n in compressed}
        every = [gradients(r, step) for r in range(world_size)]
        every = [
            {n: torch.from_numpy(v).to(dtype).double().numpy() for n, v in g.items()} for g in every
        ]
        got = job.reduce(every[rank])
        for name, result in got.items():
            of = [each[name] for each in every]
            want = references[name].step(of) if name in compressed else sum(of) / world_size
            want = torch.from_numpy(want.reshape(SHAPES[name])) * (1 if average else world_size)
            rounding = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
            largest = float(want.abs().max())
            torch.testing.assert_close(result.double(), want, rtol=0, atol=rounding * largest)
            all_bits += result.contiguous().view(torch.uint8).numpy().tobytes()
    for name, residual in job.residuals().items():
        want = references[name].residuals[rank]
        np.testing.assert_allclose(residual.reshape(want.shape), want, atol=2e-3)
    return compressed, all_bits


def succeed(results):
    for value in results:
        assert not isinstance(value, str), value
    return results


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("world_size", "topology", "dtype", "average"),
    [
        (1, "ps", "float32", True),
        (2, "ps", "float16", True),
        (3, "ps", "bfloat16", True),
        (3, "ring", "float32", False),
        (4, "ps", "float32", True),
        (4, "tree", "float32", True),
        (4, "butterfly", "float32", True),
        (4, "hierarchical:2", "float32", True),
        (5, "star", "float32", True),
        (8, "ps", "float32", True),
    ],
)
def test_results_are_those_of_the_algorithm(world_size, topology, dtype, average):
    """PowerSGD gives the algorithm's results, with the same bits on all ranks.

    Cost: Each case is a separate job, because world size and topology differ.
    """
    results = run_ranks(compare, world_size, world_size, topology, getattr(torch, dtype), average)
    compressed, bits = succeed(results)[0]
    assert compressed == ["a", "b", "c"]
    for other in results[1:]:
        assert other == (compressed, bits)  # the same bits on all ranks


def lossless(rank, world_size):
    torch.set_default_dtype(torch.bfloat16)  # the library's memory is not made of that
    job = Job(rank, torch.float32)
    zeros = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    job.reduce(zeros)  # what nothing is made of must not stay nothing for ever
    same = np.random.default_rng(0)
    low = {}
    for name, shape in SHAPES.items():
        rows, cols = shape[0], int(np.prod(shape[1:]))
        low[name] = (same.normal(size=(rows, 2)) @ same.normal(size=(2, cols))).reshape(shape)
    for name, result in job.reduce(low).items():
        torch.testing.assert_close(result.double(), torch.from_numpy(low[name]), rtol=0, atol=1e-4)
    for residual in job.residuals().values():
        assert np.abs(residual).max() < 1e-4
    return True


def test_a_gradient_of_low_rank_comes_as_it_is():
    succeed(run_ranks(lossless, 2, 2))


def nothing_is_lost(rank, world_size):
    job = Job(rank, rank=1)
    sent = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    came = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    for step in range(20):
        for r in range(world_size):
            for name, values in gradients(r, step).items():
                sent[name] += values / world_size
        for name, values in job.reduce(gradients(rank, step)).items():
            came[name] += values.double().numpy()
    return {name: sent[name] - came[name] for name in SHAPES}, job.residuals()


def test_what_was_left_unsaid_is_all_that_is_missing():
    results = succeed(run_ranks(nothing_is_lost, 3, 3))
    for name, missing in results[0][0].items():
        residuals = [of.get(name) for _, of in results]
        left = 0 if residuals[0] is None else sum(residuals).reshape(missing.shape) / 3
        np.testing.assert_allclose(left, missing, atol=2e-3)


def skips(rank, world_size, name, bad, ranks, dtype, average):
    job, other = (Job(rank, dtype, average) for _ in range(2))
    for step in range(2):
        for each in (job, other):
            each.reduce(gradients(rank, step))
    before = job.residuals()
    nonfinite = gradients(rank, 2)
    if rank in ranks:
        nonfinite[name].flat[7] = bad
    for key, result in job.reduce(nonfinite).items():
        assert result.isnan().all(), key
    for key, residual in job.residuals().items():
        assert np.array_equal(residual, before[key])
    for step in (3, 4):
        a, b = (each.reduce(gradients(rank, step)) for each in (job, other))
        for key in a:
            assert torch.equal(a[key], b[key])  # as if it had never been
    return True


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("name", "bad", "ranks", "dtype", "average"),
    [
        ("b", float("nan"), [1], "float32", True),
        ("b", float("inf"), [1], "bfloat16", True),
        ("bias", float("nan"), [2], "float32", True),
        ("bias", 2e38, [0, 1], "float32", True),  # only their sum is too large
        ("narrow", float("inf"), [1], "float32", True),  # which is sent uncompressed, in place
        ("c", 60000.0, [0, 1], "float16", False),  # only the result is
    ],
)
def test_a_step_with_a_nan_is_nan_everywhere_and_leaves_nothing(name, bad, ranks, dtype, average):
    succeed(run_ranks(skips, 3, 3, name, bad, ranks, getattr(torch, dtype), average))


def restart(rank, world_size):
    job = Job(rank)
    for step in range(3):
        job.reduce(gradients(rank, step))
    saved = copy.deepcopy(job.synchronizer.state_dict())
    again = Job(rank)
    again.synchronizer.load_state_dict(saved)
    assert (
        flat_state(again.synchronizer.state_dict()).keys() == flat_state(saved).keys()
    )  # also before it is used
    for step in (3, 4):
        a, b = (each.reduce(gradients(rank, step)) for each in (job, again))
        for name in a:
            assert torch.equal(a[name], b[name])
    after = copy.deepcopy(job.synchronizer.state_dict())
    job.synchronizer.load_state_dict(saved)  # back, when it has other memory in use
    for each in (job, again):
        each.synchronizer.load_state_dict(saved)
    a, b = (each.reduce(gradients(rank, 3)) for each in (job, again))
    for name in a:
        assert torch.equal(a[name], b[name])
    other = Job(rank, rank=3)  # in which there is another start for the same residuals
    other.synchronizer.load_state_dict(saved)
    zeros = {name: np.zeros(shape) for name, shape in SHAPES.items()}
    return saved, after, other.reduce(zeros), other.residuals()


def elsewhere(rank, saved, type, params):
    """Return the sum of this job's results and residuals in a step without gradients."""
    job = Job(rank, type=type, **params)
    job.synchronizer.load_state_dict(saved)
    return job.reduce({name: np.zeros(shape) for name, shape in SHAPES.items()}), job.residuals()


@pytest.mark.slow
def test_a_state_goes_on_with_the_same_bits_and_to_other_jobs_with_nothing_lost():
    results = succeed(run_ranks(restart, 3, 3))
    saved = {key: value for state, *_ in results for key, value in state.items()}
    left = {
        name: sum(flat_state(saved)[f"rank{r}/state/{name}/0/states/residual"] for r in range(3))
        / 3
        for name in "abc"
    }
    jobs = [[of for _, _, *of in results]]
    for type, params in (("powersgd", {"rank": 3}), ("none", {})):
        jobs.append(succeed(run_ranks(elsewhere, 2, saved, type, params)))
    for job in jobs:
        for name, want in left.items():
            residuals = [of.get(name) for _, of in job]
            there = 0 if residuals[0] is None else sum(residuals) / len(job)
            there = there + job[0][0][name].flatten().numpy()
            np.testing.assert_allclose(there, want, atol=1e-4)


def train(rank, world_size):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    plain = DistributedDataParallel(network())
    # Buckets of one gradient each, rebuilt after the first step.
    ddp, compression = wrap(network(), "powersgd", rank=4, bucket_cap_mb=0.01, warmup_steps=2)
    other = network()
    wrapped = hipress.torch.DistributedOptimizer(
        torch.optim.SGD(other.parameters(), lr=0.3),
        named_parameters=other.named_parameters(),
        compression={"type": "powersgd", "rank": 4},
        min_size=1000,
        warmup_steps=2,
    )
    losses = []
    for step in range(40):
        found = []
        for each in (plain, ddp, other):
            each.zero_grad()
            loss = loss_of(each, rank, step % 4)
            loss.backward()
            found.append(loss.item())
            if each is other:
                wrapped.step()
                continue
            with torch.no_grad():
                for parameter in each.parameters():
                    parameter -= 0.3 * parameter.grad
        losses.append(found)
    for each in (compression, wrapped.compression):
        compressed = {name for name, _ in each.error_feedback.states}
        assert compressed == {"0.weight", "2.weight", "4.weight"}
    bits = [[p.detach().numpy().tobytes() for p in m.parameters()] for m in (plain, ddp, other)]
    return losses, bits


def test_training_with_ddp_and_with_the_optimizer():
    results = succeed(run_ranks(train, 2, 2))
    plain, ddp, optimizer = results[0][1]
    assert results[1][1] == [plain, ddp, optimizer]
    assert plain not in (ddp, optimizer)
    mean = np.mean([losses for losses, _ in results], axis=0)
    plain, ddp, optimizer = mean[-4:].mean(axis=0)
    assert plain < mean[0, 0] - 0.5  # it learns
    assert abs(ddp - plain) < 0.15 and abs(optimizer - plain) < 0.15


def test_ddp_has_gradients_where_its_parameters_lie():
    from hipress.torch.integrations.ddp import Compression

    transposed = torch.nn.Parameter(torch.zeros(3, 5).t())
    assert Compression._shape(None, transposed) == (3, 5)
    last = torch.zeros(8, 4, 3, 2).to(memory_format=torch.channels_last)
    assert Compression._shape(None, torch.nn.Parameter(last)) == (8, 3, 2, 4)
    assert Compression._shape(None, torch.nn.Parameter(torch.zeros(8, 4, 3))) == (8, 4, 3)


def misuse(rank, options):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    hipress.torch.compress(DistributedDataParallel(network()), "powersgd", **options)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank must be a whole number from 1 to 32, not 0"),
        ({"rank": 2.0}, "rank must be a whole number from 1 to 32, not 2.0"),
        ({"ranks": 2}, "powersgd has no parameter 'ranks'; it has rank"),
        ({"shared_momentum": 0.9}, "powersgd has no shared_momentum=0.9"),
        ({"encode_on": "device"}, "powersgd has no encode_on='device'"),
        ({"plan": "auto"}, "plan='auto' measures codecs"),
    ],
)
def test_misuse_is_one_sentence_on_every_rank(options, message):
    for result in run_ranks(misuse, 2, options):
        assert result.startswith("ValueError: ") and message in result


def shard(rank):
    from torch.distributed.fsdp import fully_shard

    import hipress.torch

    model = network()
    fully_shard(model)
    hipress.torch.compress_fsdp(model, "powersgd")


def test_where_there_are_no_whole_gradients_it_is_refused(monkeypatch):
    from hipress.torch.bench import run as bench
    from hipress.torch.integrations.process_group import settings_from_environment

    monkeypatch.setenv("HIPRESS_COMPRESSION", "powersgd")
    with pytest.raises(ValueError, match="needs whole gradients .* an all-reduce does not have"):
        settings_from_environment()
    with pytest.raises(ValueError, match="needs whole gradients .* this benchmark does not have"):
        bench("4", "8", 2, "float", 1, 0, "powersgd", {}, "ps")
    results = run_ranks(shard, 2)
    for result in results:
        assert "needs whole gradients" in result and "FSDP2 does not have" in result


def test_ranks_that_differ_are_told():
    results = run_ranks(differ, 2)
    for result in results:
        assert "ranks 0 and 1 differ in compression" in result and "rank=2" in result


def differ(rank):
    misuse(rank, {"rank": 2 + rank})
