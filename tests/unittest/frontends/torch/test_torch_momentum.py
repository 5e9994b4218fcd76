"""Shared momentum: every rank compresses the next value of the sum that all of them have."""

import copy

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import MIN_SIZE, expect, loss_of, network, wrap

FACTOR, WARM_UP = 0.9, 2


def local_gradients(model, world_size, step):
    """Return gradients of all ranks, by name."""
    found = []
    for rank in range(world_size):
        model.zero_grad()
        loss_of(model, rank, step).backward()
        found.append({n: p.grad.clone().flatten() for n, p in model.named_parameters()})
    return found


def equals_reference(rank, world_size, type, params, topology, warm_up=WARM_UP, **keywords):
    """Encode FACTOR times the last result plus the gradient: the reference's bits."""
    from hipress.topology.graph import worker

    model = network()
    ddp, compression = wrap(
        model,
        type,
        topology=topology,
        warmup_steps=warm_up,
        shared_momentum=FACTOR,
        **params,
        **keywords,
    )
    plain = copy.deepcopy(model)
    sizes = {n: p.numel() for n, p in model.named_parameters()}
    references = expect(type, params, topology, sizes, world_size)
    sums = {name: torch.zeros(size) for name, size in sizes.items()}
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    plans = []
    for step in range(warm_up + 3):
        plain.load_state_dict(model.state_dict())
        optimizer.zero_grad()
        loss_of(ddp, rank, step).backward()
        local = local_gradients(plain, world_size, step)
        for name, parameter in model.named_parameters():
            found = parameter.grad.flatten()
            compressed = name in references and step >= warm_up
            if compressed:
                given = [g[name] + FACTOR * sums[name] for g in local]
                flat = {worker(r): g.numpy() for r, g in enumerate(given)}
                want = torch.from_numpy(references[name].step(flat)[worker(rank)])
            else:
                want = sum(g[name] for g in local) / world_size + FACTOR * sums[name]
            if compressed:
                assert torch.equal(found, want), (step, name)
            else:
                torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-6)
            sums[name] = found.clone()
        optimizer.step()
        plans.append(set(compression._buckets))
    if not warm_up:  # DDP has rebuilt its buckets since the first step
        assert plans[0].isdisjoint(plans[1]), plans
    return [p.detach().numpy().tobytes() for p in model.parameters()]


def sgd_has_it(rank):
    """Train without loss: the momentum is SGD's own, also for small gradients and in a warm-up."""
    import hipress.torch

    def run(op, shared):
        model = network()
        optimizer = hipress.torch.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.0 if shared else FACTOR),
            model.named_parameters(),
            "none",
            op=op,
            min_size=MIN_SIZE,
            warmup_steps=WARM_UP,
            shared_momentum=shared,
        )
        for step in range(6):
            optimizer.zero_grad()
            loss_of(model, rank, step).backward()
            optimizer.step()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    for op in ("average", "sum"):
        torch.testing.assert_close(run(op, FACTOR), run(op, 0.0), rtol=1e-4, atol=1e-5)


def adam_has_it(rank):
    """Train without loss: the momentum is FrozenAdamW's own first moment."""
    import hipress.torch

    runs = []
    for shared in (0.0, FACTOR):
        model = network()
        ddp, compression = wrap(model, "none", warmup_steps=WARM_UP, shared_momentum=shared)
        optimizer = hipress.torch.FrozenAdamW(
            model.parameters(), lr=0.003, freeze_step=WARM_UP, compression=compression
        )
        for step in range(6):
            optimizer.zero_grad()
            loss_of(ddp, rank, step).backward()
            optimizer.step()
        runs.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    torch.testing.assert_close(*runs, rtol=1e-4, atol=1e-5)


def overflows(rank):
    """Return a NaN of one rank on all ranks; it is not kept."""
    model = network()
    ddp, compression = wrap(model, "onebit", shared_momentum=FACTOR)
    for step in range(4):
        model.zero_grad()
        scale = float("nan") if step == 2 and rank == 1 else 1.0
        (scale * loss_of(ddp, rank, step)).backward()
        finite = all(bool(p.grad.isfinite().all()) for p in model.parameters())
        assert finite == (step != 2), step
    kept = compression.shared.state()
    assert kept.keys() == dict(model.named_parameters()).keys()
    assert all(bool(values.isfinite().all()) for _, values in kept.values())


def sum_overflows(rank):
    """Add a finite gradient and a finite last result, whose sum is not finite in float16."""
    import hipress.torch

    size = 40000
    parameter = torch.nn.Parameter(torch.zeros(size, dtype=torch.float16))
    optimizer = hipress.torch.DistributedOptimizer(
        torch.optim.SGD([parameter], lr=0.0), [("p", parameter)], "none", shared_momentum=FACTOR
    )
    before = torch.zeros(size)
    for ones in (4e4, 6e4, 0.0):  # of rank 1 alone: 2e4 in the mean, then 6e4 + 0.9 * 2e4
        optimizer.zero_grad()
        (parameter[: size // 2] * (ones * rank)).sum().backward()
        optimizer.step()
        found = parameter.grad.float()
        if ones == 6e4:
            assert bool(found.isnan().all())
        else:
            want = torch.zeros(size)
            want[: size // 2] = ones / 2
            torch.testing.assert_close(found, want.add(before, alpha=FACTOR), rtol=1e-3, atol=0)
            before = found
        _, kept = optimizer.compression.shared.state()["p"]
        assert torch.equal(kept, before), ones


def sum_overflows_in_some_partitions(rank):
    """Leave out the whole bucket on overflow in some partitions; every place is a step older, once,
    on all ranks."""
    import hipress.torch
    from hipress.planning.plan import Decision

    size = 40_000
    parameter = torch.nn.Parameter(torch.zeros(size, dtype=torch.float16))
    optimizer = hipress.torch.DistributedOptimizer(
        torch.optim.SGD([parameter], lr=0.0),
        [("p", parameter)],
        "terngrad",
        plan={"p": Decision(True, 8)},
        shared_momentum=FACTOR,
    )
    for step, ones in enumerate((4e4, 6e4, 2e4), 1):  # as above, in the last half
        optimizer.zero_grad()
        (parameter[size // 2 :] * (ones * rank)).sum().backward()
        optimizer.step()
        found = parameter.grad
        assert bool(found.isnan().all() if step == 2 else found.isfinite().all()), step
        codecs = optimizer.compression.error_feedback.states.values()
        assert {codec.step for codec in codecs} == {step}
    want = torch.zeros(size)
    want[size // 2 :] = 2e4 / 2 + FACTOR * 4e4 / 2
    torch.testing.assert_close(found.float(), want, rtol=1e-3, atol=0)


def in_another_job(rank, state=None):
    """Continue sums in a job of another size: a step without gradients gives FACTOR times them."""
    model = network()
    ddp, compression = wrap(model, "none", shared_momentum=FACTOR)
    if state is not None:
        compression.load_state_dict(state)
        (0.0 * loss_of(ddp, rank, 0)).backward()
        return {n: p.grad.flatten() for n, p in model.named_parameters()}
    for step in range(2):
        model.zero_grad()
        loss_of(ddp, rank, step).backward()
    return compression.state_dict(), {n: p.grad.flatten() for n, p in model.named_parameters()}


def refuses(rank):
    for settings, sentence in (
        ({"shared_momentum": 1.0}, r"shared_momentum must be in \[0, 1\), not 1.0"),
        ({"shared_momentum": "much"}, r"shared_momentum must be in \[0, 1\), not 'much'"),
        ({"shared_momentum": 0.9, "momentum": 0.9}, "give ternary momentum=0"),
        ({"shared_momentum": 0.1 * (rank + 1)}, "ranks 0 and 1 differ in shared_momentum: '0.1'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            wrap(network(), "ternary", **settings)


def all_of_it(rank):
    found = [
        equals_reference(rank, 2, "onebit", {}, "ps"),
        equals_reference(rank, 2, "ternary", {}, "ring"),
        # DDP rebuilds its buckets when payloads of the old ones' plans are the momentum.
        equals_reference(rank, 2, "onebit", {}, "ps", warm_up=0, bucket_cap_mb=0.05),
    ]
    for check in (
        sgd_has_it,
        adam_has_it,
        overflows,
        sum_overflows,
        sum_overflows_in_some_partitions,
        refuses,
    ):
        check(rank)
    return found, in_another_job(rank)


def on_every_topology(rank):
    return [
        equals_reference(rank, 4, type, {}, topology)
        for type, topology in (
            ("onebit", "ps"),
            ("stc", "ring"),
            ("maxminef", "tree"),
            ("onebit", "butterfly"),
            ("ternary", "star"),
            ("stc", "hierarchical"),
        )
    ]


@pytest.mark.slow
def test_on_every_topology_too():
    results = returned(run_ranks(on_every_topology, 4))
    assert all(found == results[0] for found in results)


def test_what_is_compressed_is_the_next_value_of_the_shared_sum():
    results = returned(run_ranks(all_of_it, 2))
    assert results[0][0] == results[1][0]
    states = {key: value for _, (state, _) in results for key, value in state.items()}
    for found in returned(run_ranks(in_another_job, 3, states)):
        for name, values in results[0][1][1].items():
            torch.testing.assert_close(found[name], FACTOR * values)


def test_a_result_in_chunks_is_kept_whole_or_not_at_all():
    from hipress.torch.gradient import Gradient
    from hipress.torch.state.momentum import SharedMomentum

    shared = SharedMomentum(FACTOR)
    flat, chunks = torch.ones(8), [Gradient("p", 1, 5, chunk=3, stride=4)]
    flat[6] = float("inf")
    shared.keep(flat, chunks)
    assert torch.equal(shared.sums["p"], torch.zeros(5))
    shared.keep(torch.ones(8), chunks)
    assert torch.equal(shared.sums["p"], torch.ones(5))


def test_renewed_momentum_has_the_shards_of_the_job():
    import torch

    from hipress.torch.gradient import Gradient
    from hipress.torch.state.momentum import SharedMomentum

    shared = SharedMomentum(0.9, {"w": 4}, 0.5)
    found = shared.renewed()
    found.keep(torch.ones(2), [Gradient("w", 0, 2)])
    assert found.weight == shared.weight
    assert [offset for offset, _ in found.state().values()] == [4]
