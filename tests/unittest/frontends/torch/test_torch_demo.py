"""DeMo: the largest cosine coefficients of each rank's momentum, and steps by their signs."""

import math

import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import MIN_SIZE, expect, loss_of, network

CHUNK = 25
RATE = 0.01
LARGE = {"0.weight", "2.weight", "4.weight"}


def cosine(size):
    """Compute the DCT-II from its definition, a sum at a time."""
    rows = [
        [
            math.cos(math.pi * (i + 0.5) * k / size) * math.sqrt((2 if k else 1) / size)
            for i in range(size)
        ]
        for k in range(size)
    ]
    return torch.tensor(rows, dtype=torch.float64)


def by_blocks(values, rows, columns):
    """Return the transform of each block by itself."""
    down, across = cosine(rows), cosine(columns)
    found = values.double().clone()
    for y in range(0, values.shape[0], rows):
        for x in range(0, values.shape[1], columns):
            block = found[y : y + rows, x : x + columns].clone()
            found[y : y + rows, x : x + columns] = down @ block @ across.T
    return found.float()


@pytest.mark.parametrize(
    ("shape", "rows", "columns"),
    [((12, 50), 6, 5), ((7,), 1, 7), ((64,), 1, 8), ((6, 2, 3, 3), 6, 6), ((13, 11), 1, 1)],
)
def test_coefficients_are_those_of_blocks(shape, rows, columns):
    from hipress.torch.integrations.demo import Blocks

    blocks = Blocks(shape, 8)
    assert (blocks.rows, blocks.columns) == (rows, columns)
    values = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    found = blocks.coefficients(values)
    assert found.shape == values.shape
    flat = values.view(shape[0] if len(shape) > 1 else 1, -1)
    torch.testing.assert_close(found.view_as(flat), by_blocks(flat, rows, columns))
    torch.testing.assert_close(blocks.values(found), values)
    assert found.norm().item() == pytest.approx(values.norm().item(), rel=1e-5)


def optimizer_of(model, **options):
    import hipress.torch

    options = {"compression_topk": 20, "compression_chunk": CHUNK, "min_size": MIN_SIZE, **options}
    return hipress.torch.DeMo(model.named_parameters(), **{"lr": RATE, **options})


def expected_gradients(model, step, references, world_size):
    """Return the gradients whose signs the optimizer takes, by name: the reference of the exchanged
    coefficients turned back, or the mean."""
    from hipress.topology.graph import worker
    from hipress.torch.integrations.demo import Blocks

    local = []
    for rank in range(world_size):
        model.zero_grad()
        loss_of(model, rank, step).backward()
        local.append({n: p.grad.clone() for n, p in model.named_parameters()})
    found = {name: sum(g[name] for g in local) / world_size for name in local[0]}
    for name, reference in references.items():
        blocks = Blocks(
            found[name].shape, CHUNK
        )  # another rounding would choose other coefficients
        coefficients = {
            worker(rank): blocks.coefficients(gradients[name]).flatten().numpy()
            for rank, gradients in enumerate(local)
        }
        mean = torch.from_numpy(reference.step(coefficients)[worker(0)])
        found[name] = blocks.values(mean.view_as(found[name]))
    return found


def steps_script(rank, world_size, topology):
    model, plain = network(), network()
    optimizer = optimizer_of(model, compression_decay=0.9, weight_decay=0.1, topology=topology)
    sizes = {n: p.numel() for n, p in model.named_parameters()}
    params = {"ratio": 20 / CHUNK**2, "decay": 0.9}
    references = expect("sparseloco", params, topology, sizes, world_size)
    assert set(references) == LARGE
    for step in range(3):
        loss_of(model, rank, step).backward()
        optimizer.synchronize()
        plain.load_state_dict(model.state_dict())
        expected = expected_gradients(plain, step, references, world_size)
        before = {n: p.detach().clone() for n, p in model.named_parameters()}
        optimizer.step()
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(parameter.grad, expected[name], rtol=1e-4, atol=1e-5)
            moved = before[name] * (1 - RATE * 0.1) - RATE * parameter.grad.sign()
            torch.testing.assert_close(parameter.detach(), moved)
        optimizer.zero_grad()
    assert optimizer.compression.step == 3
    assert set(optimizer.compression.stats().parameters) == set(sizes) - LARGE
    return [p.detach().numpy().tobytes() for p in model.parameters()]


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("topology", ["ps", "ring"])
def test_steps_are_signs_of_the_exchanged_coefficients(topology):
    first, second = returned(run_ranks(steps_script, 2, 2, topology))
    assert first == second


def learning_script(rank):
    model = network()
    optimizer = optimizer_of(model, lr=3e-3)
    for step in range(80):
        optimizer.zero_grad()
        loss = loss_of(model, rank, step % 4)
        loss.backward()
        optimizer.step()
        if step == 0:
            first = loss.item()
    return first, loss.item()


def test_a_network_learns():
    for first, last in returned(run_ranks(learning_script, 2)):
        assert last < first / 4, (first, last)


def resumed_script(rank):
    def steps(model, optimizer, numbers):
        for step in numbers:
            loss_of(model, rank, step).backward()
            optimizer.step()
            optimizer.zero_grad()

    model = network()
    optimizer = optimizer_of(model)
    steps(model, optimizer, range(3))
    weights, momenta = model.state_dict(), optimizer.compression.state_dict()
    weights = {name: value.clone() for name, value in weights.items()}
    steps(model, optimizer, range(3, 6))
    other = network()
    other.load_state_dict(weights)
    optimizer = optimizer_of(other)
    optimizer.compression.load_state_dict(momenta)
    steps(other, optimizer, range(3, 6))
    for a, b in zip(model.parameters(), other.parameters()):
        assert torch.equal(a, b)


def test_a_job_goes_on_from_the_momenta():
    returned(run_ranks(resumed_script, 2))


def wrong_script(rank):
    cases = [
        ({"compression_topk": 0}, "compression_topk must be 1 or more, not 0"),
        ({"compression_chunk": "64"}, "compression_chunk must be 1 or more, not '64'"),
        ({"compression_decay": 1.5}, "decay"),
        ({"lr": -1.0}, "lr must be 0 or more, not -1.0"),
    ]
    for options, message in cases:  # on one rank only, but both receive the error
        with pytest.raises(ValueError, match=message):
            optimizer_of(network(), **(options if rank == 0 else {}))


def test_all_ranks_are_told_what_is_wrong():
    returned(run_ranks(wrong_script, 2))


def broken(rank):
    import hipress.torch

    model = network()
    optimizer = hipress.torch.DeMo(model.named_parameters(), lr=RATE, min_size=MIN_SIZE)
    (loss_of(model, rank, 0) * (float("inf") if rank else 1.0)).backward()
    optimizer.synchronize()
    return [bool(p.grad.isnan().all()) for p in model.parameters()]


def test_a_nan_reaches_all_ranks_where_a_loss_scaler_looks_for_it():
    assert returned(run_ranks(broken, 2)) == [[True] * 6] * 2
