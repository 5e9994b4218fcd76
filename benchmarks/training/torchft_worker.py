"""Worker of the peer in `faults --peer`: examples/torch/elastic.py's training by torchft's DDP.

Each worker is a replica group of one process, as in torchft's own example. The lighthouse
(TORCHFT_LIGHTHOUSE) forms a quorum in each step, Gloo sums gradients, all discard a step with an
error, and a joining worker gets the weights from a peer. Events are written to a journal as in an
elastic job, with the quorum's number as the epoch.
"""

from __future__ import annotations

import argparse
import sys

import torch
from torch.nn import functional as F

from benchmarks.training import torchft_peer
from harness import ROOT
from hipress.elastic.membership import settings
from hipress.elastic.training.journal import Journal
from hipress.elastic.training.session import digest

sys.path.insert(0, str(ROOT / "examples" / "torch"))
from digits import load
from models import small_cnn

BATCH = 48
"""Images of a worker's step."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    args = parser.parse_args()

    found = settings.from_environment()
    host = found.agents[found.slot][0]
    journal = Journal(found.slot)
    journal.write("start")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    (images, labels), _ = load()
    model = small_cnn()
    inner = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)

    manager = torchft_peer.manager(
        host,
        f"worker_{found.slot}",
        found.min_members,
        # The same limit of silence as in the elastic job.
        seconds=found.heartbeat_timeout,
        load_state_dict=lambda state: (
            model.load_state_dict(state["model"]),
            inner.load_state_dict(state["optimizer"]),
        ),
        state_dict=lambda: {"model": model.state_dict(), "optimizer": inner.state_dict()},
    )
    from torchft import DistributedDataParallel, Optimizer

    replicated, optimizer = DistributedDataParallel(manager, model), Optimizer(manager, inner)
    while manager.current_step() < args.steps:
        before = manager.current_step()
        generator = torch.Generator().manual_seed(1_000_003 * (found.slot + 1) + before)
        mine = torch.randint(len(images), (BATCH,), generator=generator)
        optimizer.zero_grad()
        loss = F.cross_entropy(replicated(images[mine]), labels[mine])
        loss.backward()
        optimizer.step()
        step, size = manager.current_step(), manager.num_participants()
        if step > before:
            weights = ((n, memoryview(p.detach().numpy())) for n, p in model.named_parameters())
            journal.write(
                "step",
                epoch=manager._quorum_id,
                step=step,
                size=size,
                digest=digest(weights),
                loss=loss.item(),
            )
        else:
            journal.write("discarded", epoch=manager._quorum_id, step=step, size=size)


if __name__ == "__main__":
    main()
