"""The optimizer wrapper in Horovod's shape."""

import copy
import os
import time

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import (
    MIN_SIZE,
    Branches,
    bits,
    expect,
    loss_of,
    mean_gradients,
    network,
    succeed,
)


def horovod_script(rank, world_size, passes, bucket_bytes):
    import hipress.torch as hvd

    hvd.integrations.optimizer.BUCKET_BYTES = bucket_bytes
    model = network(seed=rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (rank + 1), momentum=0.9)
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression={"type": "topk", "ratio": 0.1},
        backward_passes_per_step=passes,
        min_size=MIN_SIZE,
    )
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert optimizer.param_groups[0]["lr"] == 0.1
    plain = copy.deepcopy(model)
    sizes = {n: p.numel() for n, p in model.named_parameters()}
    references = expect("topk", {"ratio": 0.1}, "ps", sizes, world_size)
    for step in range(3):
        optimizer.zero_grad()
        for part in range(passes):
            loss_of(model, rank, 10 * step + part).backward()
        optimizer.synchronize()
        plain.load_state_dict(model.state_dict())

        def losses(r, step=step):
            return lambda m: sum(loss_of(m, r, 10 * step + part) for part in range(passes))

        want = mean_gradients(plain, [losses(r) for r in range(world_size)], references)
        for name, parameter in model.named_parameters():
            if passes == 1 and name in references:
                assert torch.equal(parameter.grad, want[name]), (step, name)
            else:
                torch.testing.assert_close(parameter.grad, want[name], rtol=1e-4, atol=1e-5)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert optimizer.compression.step == 3
    return bits(model)


@pytest.mark.slow
def test_a_script_in_horovods_shape():
    for passes, bucket_bytes in ((1, 1), (1, 200_000), (2, 25 << 20)):
        succeed(run_ranks(horovod_script, 2, 2, passes, bucket_bytes))


def other_order(rank):
    """Train with gradients in another order, or none, on one rank: no hang, the right mean."""
    import hipress.torch as hvd

    torch.manual_seed(0)
    model = Branches(rank)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        model.named_parameters(),
        "fp16",
        min_size=1000,
        timeout=10,
    )
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(2, 64)).sum().backward()
        optimizer.step()
    problems = []
    for wrong in ({"op": "max"}, {"compression": "nonsense"}, {"named_parameters": []}):
        arguments = {"named_parameters": model.named_parameters(), **wrong}
        try:
            hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), **arguments)
        except ValueError as error:
            problems.append(str(error))
    assert "'average' or 'sum'" in problems[0] and "nonsense" in problems[1]
    assert "lacks 4 of the optimizer's parameters" in problems[2]
    return bits(model)


def with_a_plan(rank):
    """Return names that are compressed, and how many collective operations a step has."""
    import hipress.torch as hvd
    from hipress.planning.plan import Decision

    model = network()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        model.named_parameters(),
        "onebit",
        min_size=MIN_SIZE,
        plan={"0.weight": Decision(False, 1), "2.bias": Decision(True, 1)},
    )
    loss_of(model, rank, 0).backward()
    optimizer.step()
    compressed = {name for name, _ in optimizer.compression.error_feedback.states}
    return sorted(compressed), len(optimizer._buckets)


def test_a_plan_decides_for_the_gradients_that_it_names():
    compressed, buckets = succeed(run_ranks(with_a_plan, 2))[0]
    assert compressed == ["2.bias", "2.weight", "4.weight"] and buckets == 1


@pytest.mark.slow
def test_ranks_may_differ_in_what_they_compute():
    succeed(run_ranks(other_order, 2))


def with_a_scaler(rank):
    """Train a step that a GradScaler leaves out on all ranks, and those after it."""
    import hipress.torch as hvd

    model = network()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        model.named_parameters(),
        "onebit",
        min_size=MIN_SIZE,
        timeout=10,
    )
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    found = []
    for step in range(4):
        optimizer.zero_grad()
        loss = loss_of(model, rank, step) * (float("inf") if (rank, step) == (1, 1) else 1.0)
        scaler.scale(loss).backward()
        optimizer.synchronize()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        found.append(bits(model))
    assert found[1] == found[0] != found[2] != found[3]
    assert scaler.get_scale() == 512 and optimizer.compression.step == 4
    return found


@pytest.mark.slow
def test_a_scaler_leaves_a_step_out():
    found = succeed(run_ranks(with_a_scaler, 2))
    assert found[0] == found[1]


def distributed(model, optimizer=None, compression="none", **options):
    import hipress.torch as hvd

    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    named = options.pop("named", None) or model.named_parameters()
    return hvd.DistributedOptimizer(
        optimizer, named, compression, min_size=MIN_SIZE, timeout=10, **options
    )


def said(what):
    """Return the message with which it is refused."""
    try:
        what()
    except (RuntimeError, TypeError, ValueError) as error:
        return str(error)
    return ""


def twice(rank):
    """Refuse steps with gradients that are not averaged, or are of another step."""
    model, other = network(), network()
    refused = distributed(other)
    loss_of(other, rank, 0).backward()
    found = said(lambda: loss_of(other, rank, 1).backward())
    refused.detach()

    optimizer = distributed(model)
    loss_of(model, rank, 0).backward()  # for another one's step
    optimizer.synchronize()
    optimizer.zero_grad()
    before = bits(model)
    loss_of(model, rank, 2).backward()
    optimizer.step()
    assert bits(model) != before
    return found, bits(model)


def test_gradients_that_are_on_their_way_get_no_others():
    (first, weights), (second, others) = returned(run_ranks(twice, 2))
    assert "gets a gradient once more before step()" in first
    assert first == second and weights == others


def clipped(rank):
    """A gradient that is alone in a bucket is sent without a copy. The other rank may refuse one
    that changes meanwhile, and that ends the job."""
    os.environ["HIPRESS_SHARED_MEMORY"] = "off"
    torch.manual_seed(0)
    model = torch.nn.Linear(256, 1 << 16)
    optimizer = distributed(model)
    model(torch.ones(4, 256)).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-6)
    time.sleep(1.0)
    return [said(optimizer.step)]


@pytest.mark.slow
def test_gradients_that_are_on_their_way_stay_as_they_are():
    [first], [second] = returned(run_ranks(clipped, 2))
    assert "was changed between backward() and step()" in first
    assert "call synchronize() before you clip" in first
    assert first == second


def in_two_passes(rank):
    """Train in two passes: a bucket that the first backward pass leaves incomplete takes what the
    second one adds."""
    torch.manual_seed(0)
    first, second = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    model = torch.nn.ModuleList([first, second])
    plain = copy.deepcopy(model)
    optimizer = distributed(model)
    x = torch.full((2, 8), rank + 1.0)
    first(x).sum().backward()
    second(first(x).detach()).sum().backward(inputs=list(second.parameters())[:1])
    first(x).square().sum().backward()
    optimizer.synchronize()
    mean = [torch.full((2, 8), r + 1.0) for r in range(2)]
    total = sum(
        plain[0](x).sum() + plain[1](plain[0](x).detach()).sum() + plain[0](x).square().sum()
        for x in mean
    )
    (total / 2).backward()
    for mine, theirs in zip(first.parameters(), plain[0].parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)
    return bits(model)


def test_a_bucket_waits_for_all_that_comes_before_the_step():
    succeed(run_ranks(in_two_passes, 2))


def with_a_closure(rank):
    model, plain = network(), network()
    optimizer = distributed(model)
    reference = torch.optim.SGD(plain.parameters(), lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, rank, 0)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    assert loss.item() == loss_of(plain, rank, 0).item()
    (sum(loss_of(plain, r, 0) for r in range(2)) / 2).backward()
    reference.step()
    for mine, theirs in zip(model.parameters(), plain.parameters()):
        torch.testing.assert_close(mine, theirs)
    return bits(model)


def test_a_closures_gradients_are_averaged():
    first, second = succeed(run_ranks(with_a_closure, 2))
    assert first == second


def fused_with_a_scaler(rank):
    """Train with an optimizer that unscales gradients and skips steps by itself."""
    model, plain = network(), network()
    optimizer = distributed(model, torch.optim.SGD(model.parameters(), lr=0.1, fused=True))
    reference = torch.optim.SGD(plain.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(3):
        optimizer.zero_grad()
        before = bits(model)
        loss = loss_of(model, rank, step) * (float("inf") if (rank, step) == (1, 1) else 1.0)
        scaler.scale(loss).backward()
        optimizer.synchronize()
        scaler.step(optimizer)
        scaler.update()
        assert (bits(model) == before) == (step == 1)
        if step != 1:
            reference.zero_grad()
            (sum(loss_of(plain, r, step) for r in range(2)) / 2).backward()
            reference.step()
    for mine, theirs in zip(model.parameters(), plain.parameters()):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
    assert not hasattr(optimizer, "found_inf") and scaler.get_scale() == 512
    return bits(model)


def test_a_fused_optimizer_hears_of_the_scale():
    first, second = succeed(run_ranks(fused_with_a_scaler, 2))
    assert first == second


def other_parameters(rank):
    """Check that frozen parameters stay unmodified, and that those not averaged are refused."""
    model, head, late = network(), torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
    late.requires_grad_(False)
    decays = torch.optim.AdamW([*model.parameters(), *late.parameters()], lr=0.1, weight_decay=0.5)
    optimizer = distributed(model, decays)
    named = {"params": head.named_parameters()}
    found = {
        "added": said(lambda: optimizer.add_param_group({"params": head.parameters()})),
        "named": said(lambda: optimizer.add_param_group(named)),
    }
    for step in range(3):
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        optimizer.step()
        if step == 0:
            frozen = model[0].weight
            frozen.requires_grad_(False)
            kept = frozen.detach().clone()
    assert torch.equal(frozen, kept) and frozen.grad is None
    late.requires_grad_(True)
    late(torch.ones(1, 8)).sum().backward()
    found["unfrozen"] = said(optimizer.step)

    two = [("weight", torch.nn.Parameter(torch.ones(4))) for _ in range(2)]
    one = [(name, two[0][1]) for name in ("a", "b")]
    for what, named in (("names", two), ("tied", one)):
        sgd = torch.optim.SGD([p for _, p in named[: 2 if what == "names" else 1]], lr=0.1)
        found[what] = said(lambda sgd=sgd, named=named: distributed(None, sgd, named=named))
    lbfgs = torch.optim.LBFGS(network().parameters())
    found["lbfgs"] = said(lambda: distributed(network(), lbfgs))
    return found


def test_parameters_that_are_frozen_added_or_named_twice():
    first, _ = returned(run_ranks(other_parameters, 2))
    assert first["added"] == first["named"]
    assert "is not among named_parameters" in first["added"]
    assert "make a new DistributedOptimizer" in first["unfrozen"]
    assert "two parameters 'weight'" in first["names"]
    assert "'b' and 'a' are one parameter" in first["tied"]
    assert "LBFGS decides by the loss" in first["lbfgs"]


def mistaken(rank):
    """Mistaken arguments in place of names with values, or of seconds, are refused."""
    import datetime

    import hipress.torch as hvd

    model = network()
    found = [
        said(lambda: hvd.DeMo(model.parameters(), lr=0.1)),
        said(lambda: hvd.broadcast_parameters(model)),
        said(lambda: distributed(model, named=model.parameters())),
        said(lambda: hvd.load_checkpoint(None, "/nowhere")),
    ]
    made = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), 0.1),
        model.named_parameters(),
        "none",
        timeout=datetime.timedelta(seconds=50),
    )
    return [*found, made.compression.engine.timeout]


def test_mistakes_get_a_sentence():
    takes = "takes names with their values, as of"
    for demo, broadcast, optimizer, checkpoint, seconds in returned(run_ranks(mistaken, 2)):
        assert demo == f"DeMo {takes} model.named_parameters(), and not a Parameter"
        assert broadcast == f"broadcast_parameters {takes} model.state_dict(), and not a Sequential"
        assert "DistributedOptimizer takes names with their values" in optimizer
        assert checkpoint == "cannot read the checkpoint '/nowhere': there is no such folder"
        assert seconds == 50
