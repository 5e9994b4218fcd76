"""Ray Train jobs on a local cluster; argument: a folder for checkpoints. Prints what they found."""

import json
import os
import sys
import tempfile
import threading
import time
from collections import ChainMap
from pathlib import Path

import ray
import ray.train
import torch
from ray.cluster_utils import Cluster
from ray.train.torch import TorchTrainer, prepare_model

import hipress.torch
from hipress.torch.ray import HiPressConfig

FOLDER = Path(sys.argv[1])
STEPS = 12


def train(settings):
    context = ray.train.get_context()
    rank, size = context.get_world_rank(), context.get_world_size()
    torch.manual_seed(0)
    model = prepare_model(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compression = None
    if settings["compress"]:
        compression = hipress.torch.compress(model, "onebit", min_size=1)
    start = 0
    if ray.train.get_checkpoint() is not None:
        with ray.train.get_checkpoint().as_directory() as folder:
            saved = [
                torch.load(path, weights_only=True)
                for path in sorted(Path(folder).glob("rank-*.pt"))
            ]
        start = saved[0]["step"]
        model.load_state_dict(saved[0]["model"])
        compression.load_state_dict(ChainMap(*(each["compression"] for each in saved)))
    for step in range(start, STEPS):
        mark = FOLDER / settings["name"]
        if step == 7 and rank == 1 and settings["fails"] and not mark.exists():
            mark.write_text(ray.get_runtime_context().get_node_id())
            if settings["fails"] == "node":
                time.sleep(60)  # until it is removed
            raise RuntimeError("a fault of this test")
        optimizer.zero_grad()
        x = torch.randn(8, 64, generator=torch.Generator().manual_seed(10 * step + rank))
        (model(x) - x.flip(1)).square().mean().backward()
        optimizer.step()
        if step % 4 == 3:
            part = Path(tempfile.mkdtemp(dir=FOLDER))
            state = {"step": step + 1, "model": model.state_dict()}
            if compression is not None:
                state["compression"] = compression.state_dict()
            torch.save(state, part / f"rank-{rank}.pt")
            weights = model.module.weight.detach().view(torch.int32)
            found = {
                "bits": int(weights.sum()),
                "size": size,
                "start": start,
                "backend": torch.distributed.get_backend(),
                "secret": bool(os.environ["HIPRESS_SECRET"]),
            }
            if not settings["compress"]:
                found["stats"] = str(torch.distributed.group.WORLD.stats())
            ray.train.report(found, checkpoint=ray.train.Checkpoint.from_directory(str(part)))


def run(name, backend=None, fails="", compress=True, workers=2):
    trainer = TorchTrainer(
        train,
        train_loop_config={"name": name, "fails": fails, "compress": compress},
        torch_config=HiPressConfig(backend),
        scaling_config=ray.train.ScalingConfig(num_workers=workers),
        run_config=ray.train.RunConfig(
            name=name,
            storage_path=str(FOLDER / "results"),
            failure_config=ray.train.FailureConfig(max_failures=2 if fails else 0),
        ),
    )
    began = time.monotonic()
    metrics = trainer.fit().metrics
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return metrics


def remove_marked_node():
    """Remove the node whose id a worker of the elastic job writes."""
    mark = FOLDER / "elastic"
    while not mark.exists() or not mark.read_text():
        time.sleep(0.1)
    time.sleep(5)  # Ray's controller asks the workers for their checkpoints every few seconds
    (node,) = [each for each in nodes if each.node_id == mark.read_text()]
    cluster.remove_node(node, allow_graceful=False)


LOOPBACK = {"node_ip_address": "127.0.0.1"}
cluster = Cluster(
    initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **LOOPBACK}
)
nodes = [cluster.add_node(num_cpus=1, **LOOPBACK) for _ in range(3)]
ray.init(address=cluster.address, log_to_driver=False)
os.environ.update(HIPRESS_MIN_SIZE="1", HIPRESS_BITS="8")  # of the backend, for all workers
found = {
    "undisturbed": run("undisturbed"),
    "restarted": run("restarted", fails="worker"),
    "backend": run("backend", "hipress", compress=False),
}
threading.Thread(target=remove_marked_node, daemon=True).start()
found["elastic"] = run("elastic", fails="node", workers=(2, 3))
print("found", json.dumps(found))
ray.shutdown()
cluster.shutdown()
