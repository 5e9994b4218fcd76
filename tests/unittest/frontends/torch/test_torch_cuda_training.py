"""Training with the model on a GPU: results are those on the CPU, except for rounding.

Parts that run on a GPU skip where there is none.
"""

import sys

import pytest

from harness.elastic import ElasticJob
from harness.processes import base_environment, wait_until
from harness.torch_ranks import returned, run_ranks, torch
from scripts import SCRIPTS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

H = 4


def network(seed, device):
    torch.manual_seed(seed)
    layers = torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8)
    return torch.nn.Sequential(*layers).to(device)


def train(model, optimizer, rank, steps, device):
    for step in range(steps):
        generator = torch.Generator().manual_seed(1000 * rank + step)
        inputs = torch.randn(16, 32, generator=generator).to(device)
        optimizer.zero_grad()
        loss = (model(inputs) - inputs[:, :8]).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def diloco(rank, device, **options):
    import hipress.torch

    model = network(rank, device)  # the first rank's weights become everybody's
    inner = torch.optim.AdamW(model.parameters(), lr=0.02)
    outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    with hipress.torch.DiLoCo(model, inner, outer, H, **options):
        loss = train(model, inner, rank, 5 * H, device)
    return model, loss


def demo(rank, device):
    import hipress.torch

    model = network(0, device)
    optimizer = hipress.torch.DeMo(
        model.named_parameters(), lr=0.01, compression_topk=20, compression_chunk=16, min_size=64
    )
    return model, train(model, optimizer, rank, 20, device)


def compressed(rank, device, *compression, **options):
    import hipress.torch

    model = network(0, device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    hipress.torch.compress(ddp, *compression, min_size=64, **options)
    return model, train(ddp, optimizer, rank, 20, device)


EIGHT_BITS = {"type": "maxmin", "bits": 8}
TRAININGS = {
    "diloco": lambda *where: diloco(*where, compression=EIGHT_BITS, min_size=64),
    "diloco on the GPU": lambda *where: diloco(
        *where,
        compression=EIGHT_BITS,
        min_size=64,
        backup_device=where[1] if where[1] != "cpu" else None,
    ),
    "fragments": lambda *where: diloco(
        *where, compression=EIGHT_BITS, fragments=2, fragment_sync_delay=1, min_size=64
    ),
    "demo": demo,
    "onebit": lambda *where: compressed(*where, "onebit"),
    "powersgd": lambda *where: compressed(*where, "powersgd"),
    "lossless": lambda *where: compressed(*where, "lossless"),
    "entropy": lambda *where: compressed(*where, {"type": "maxmin", "bits": 4, "entropy": True}),
    "auto": lambda *where: compressed(*where, "auto"),
}


def trained(rank, training, device):
    model, loss = TRAININGS[training](rank, device)
    return [p.detach().cpu().numpy() for p in model.parameters()], loss


@pytest.mark.parametrize("training", TRAININGS)
def test_it_ends_where_it_ends_on_the_cpu(training):
    on_cpu = returned(run_ranks(trained, 2, training, "cpu"))
    on_gpu = returned(run_ranks(trained, 2, training, "cuda:0", gpu=True))
    (mine, _), (others, _) = on_gpu
    if training != "fragments":  # the ranks' weights diverge while one is in transit
        assert all((a == b).all() for a, b in zip(mine, others))
    # The smallest difference can make another sign of a coefficient, or another choice.
    for (_, expected), (_, loss) in zip(on_cpu, on_gpu):
        assert loss == pytest.approx(expected, rel=0.2)
    if training in ("lossless", "diloco", "diloco on the GPU", "fragments"):
        for a, b in zip(mine, on_cpu[0][0]):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-2, atol=1e-2)


ELASTIC = SCRIPTS / "torch_elastic_cuda.py"


@pytest.mark.parametrize("kind", ["steps", "rounds", "delayed rounds"])
def test_elastic_workers_die_and_join(kind):
    command = [sys.executable, str(ELASTIC), "400", kind]
    with ElasticJob(command, 3, env=base_environment()) as job:
        wait_until(lambda: job.step(1) >= 20, 90, "20 steps")
        job.kill(1)
        died = job.step(0)
        wait_until(lambda: job.step(0) >= died + 20, 120, "20 steps more")
        job.restart(1)
        job.wait(120)
        found = {job.output(job.present(slot)).strip().splitlines()[-1] for slot in range(3)}
        assert all(job.processes[job.present(slot)].returncode == 0 for slot in range(3)), (
            job.report()
        )
        assert len(found) == 1 and "weights" in found.pop(), job.report()
        assert any(event["event"] == "copied" for event in job.journal(1)), job.report()
        digests = {}
        for slot in range(3):
            for event in job.journal(slot):
                if "digest" in event:
                    digests.setdefault(event["step"], set()).add(event["digest"])
        assert digests and all(len(each) == 1 for each in digests.values())
