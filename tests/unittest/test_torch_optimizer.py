"""The optimizer wrapper in Horovod's shape."""

import copy

from harness.torch_ranks import run_ranks, torch
from test_torch_ddp import MIN_SIZE, Branches, expect, loss_of, mean_gradients, network, succeed


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
    return [p.detach().numpy().tobytes() for p in model.parameters()]


def test_a_script_in_horovods_shape():
    for passes, bucket_bytes in ((1, 1), (1, 200_000), (2, 25 << 20)):
        succeed(run_ranks(horovod_script, 2, 2, passes, bucket_bytes))


def other_order(rank):
    """Gradients come in another order, or not at all, on one rank: no hang, the right mean."""
    import hipress.torch as hvd

    torch.manual_seed(0)
    model = Branches(rank)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), "fp16",
        min_size=1000, timeout=10,
    )  # fmt: skip
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
    return [p.detach().numpy().tobytes() for p in model.parameters()]


def with_a_plan(rank):
    """Names that are compressed, and how many collective operations a step is."""
    import hipress.torch as hvd
    from hipress.secopa.plan import Decision

    model = network()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), "onebit",
        min_size=MIN_SIZE, plan={"0.weight": Decision(False, 1), "2.bias": Decision(True, 1)},
    )  # fmt: skip
    loss_of(model, rank, 0).backward()
    optimizer.step()
    compressed = {name for name, _ in optimizer.compression.error_feedback.states}
    return sorted(compressed), len(optimizer._buckets)


def test_a_plan_decides_for_the_gradients_that_it_names():
    compressed, buckets = succeed(run_ranks(with_a_plan, 2))[0]
    assert compressed == ["2.bias", "2.weight", "4.weight"] and buckets == 1


def test_ranks_may_differ_in_what_they_compute():
    succeed(run_ranks(other_order, 2))


def with_a_scaler(rank):
    """A step that a GradScaler leaves out on all ranks, and those after it."""
    import hipress.torch as hvd

    model = network()
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), "onebit",
        min_size=MIN_SIZE, timeout=10,
    )  # fmt: skip
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
        found.append([p.detach().numpy().tobytes() for p in model.parameters()])
    assert found[1] == found[0] != found[2] != found[3]
    assert scaler.get_scale() == 512 and optimizer.compression.step == 4
    return found


def test_a_scaler_leaves_a_step_out():
    found = succeed(run_ranks(with_a_scaler, 2))
    assert found[0] == found[1]
