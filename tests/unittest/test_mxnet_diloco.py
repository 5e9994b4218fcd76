"""DiLoCo under MXNet: every worker has the weights of a reference in NumPy, round after round."""

from __future__ import annotations

import json
import re

import pytest

from diloco_reference import REFERENCE
from harness.cluster import run_cluster, worker_outputs
from mxnet_network import NETWORK

pytest.importorskip("mxnet", reason="MXNet is not installed")

HEAD = """
import mxnet_hipress
import hashlib
import json
import os
import sys
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.base import MXNetError

H = 4
options = json.loads(sys.argv[1])

""" + NETWORK + """
def trained(net, **more):
    return mxnet_hipress.DiLoCoTrainer(
        net.collect_params(), "adam", {"learning_rate": 0.01},
        **{"sync_every": H, **options, **more})

def train(net, trainer, rank, step):
    inputs = mx.nd.array(np.random.RandomState(1000 * rank + step).randn(16, 32))
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(inputs), inputs[:, :8])
    loss.backward()
    trainer.step(16)

def weights(net):
    return [p.data().asnumpy() for p in net.collect_params().values()]

def digest(net):
    return hashlib.sha256(b"".join(w.tobytes() for w in weights(net))).hexdigest()[:16]
"""

#: Compares with Adam by MXNet, and all else by NumPy.
COMPARED = """
nets = [network() for _ in range(int(os.environ["DMLC_NUM_WORKER"]))]
inner = [gluon.Trainer(each.collect_params(), "adam", {"learning_rate": 0.01}, None)
         for each in nets]

def step_of(net, worker, step):
    train(net, inner[worker], worker, step)

def assign(net, i, values):
    list(net.collect_params().values())[i].set_data(mx.nd.array(values))

net = network(seed=int(os.environ["DMLC_WORKER_ID"]))  # the first one's become everybody's
trainer = trained(net)
rank = trainer.store.rank
rate, factor = (1, 0) if EXACT else (0.7, 0.9)
delay, alpha = options.get("fragment_sync_delay", 0), options.get("fragment_update_alpha", 0)
params = options["compression_params"]
reference = Reference(
    nets, step_of, TURNS, delay, alpha, rate, factor, params["type"], params["min_size"],
    [2, 4, 5] if "early_steps" in options else [])

def compare():
    for mine, theirs in zip(weights(net), weights(reference.nets[rank])):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=0 if EXACT else 3e-7)

for step in range(1, 3 * H + 2):
    train(net, trainer, rank, step)
    reference.advance(step)
    compare()
    if step > reference.first and (step - reference.first) % H == 0:
        print("digest", digest(net) if not alpha else hashlib.sha256(
            b"".join(o.tobytes() for f in trainer._diloco.outer.fragments for o in f.outer.values())
        ).hexdigest())
trainer.finish()
for step in list(reference.under_way):
    reference.take(step)
compare()
stats = trainer.store.stats()
assert EXACT == (stats["pushed_bytes"] < stats["pushed_raw_bytes"]), stats
"""


H = 4


def run(body: str, options: dict, workers: int = 2, servers: int = 0) -> list[str]:
    return worker_outputs(run_cluster(
        HEAD + body, workers, servers, timeout=120, args=[json.dumps(options)],
        env={"OMP_NUM_THREADS": "1"},
    ))  # fmt: skip


def same(outputs: list[str], count: int) -> None:
    """Checks that all workers printed the same digests."""
    found = [re.findall(r"^digest (\w+)", output, re.MULTILINE) for output in outputs]
    assert len(found[0]) == count and all(each == found[0] for each in found), outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "servers", "topology", "type_", "more"),
    [
        (2, 0, "ring", "none", {}),
        (3, 0, "colocated", "sparseloco", {}),
        (2, 1, "ps", "onebit", {"fragments": 2, "fragment_sync_delay": 3,
                                "fragment_update_alpha": 0.25}),
        (2, 0, "colocated", "onebit", {"early_steps": 5, "early_sync_every": 2}),
    ],
    ids=["uncompressed", "sparseloco", "onebit, servers, two fragments, delayed", "early steps"],
)  # fmt: skip
def test_weights_after_each_round_are_those_of_a_reference(
    workers, servers, topology, type_, more
):
    compression = {"type": type_, "topology": topology, "min_size": 1024}
    options = {"compression_params": compression, **more}
    if type_ != "none":  # MXNet's SGD of length 1 rounds as NumPy does, its "nag" does not
        options |= {"outer_optimizer": "sgd", "outer_optimizer_params": {"learning_rate": 1.0}}
    # The middle of all 5240 numbers is in the second layer's weights.
    turns = [(2, range(2)), (0, range(2, 6))] if "fragments" in more else [(0, range(6))]
    body = REFERENCE + COMPARED.replace("TURNS", repr(turns)).replace("EXACT", str(type_ != "none"))
    same(run(body, options, workers, servers), 2 if "early_steps" in more else 3)


@pytest.mark.slow
def test_a_job_goes_on_from_its_files_bit_for_bit(tmp_path):
    options = {
        "compression_params": {"type": "sparseloco", "min_size": 64}, "fragments": 2,
        "fragment_sync_delay": 1, "fragment_update_alpha": 0.5,
    }  # fmt: skip
    body = f"path = {str(tmp_path)!r}" + """
net = network()
trainer = trained(net)
rank, first = trainer.store.rank, FIRST
if first:
    net.load_parameters(f"{path}/weights-{rank}")
    trainer.load_states(f"{path}/states")
    try:
        trainer.load_states(f"{path}/nothing")
    except MXNetError as error:
        assert "there is no such file" in str(error)
    outer = trainer._diloco.outer.optimizer
    assert outer._updater.optimizer is outer.optimizer
    saved = np.load(f"{path}/states.diloco-{rank}", allow_pickle=False)
    with open(f"{path}/others.diloco-{rank}", "wb") as file:
        np.savez(file, **{**saved, "workers": 8})
    try:
        trainer.load_states(f"{path}/others")
    except MXNetError as error:
        assert "is of a job of 8 workers, and this one has 2" in str(error)
    else:
        raise AssertionError("another number of workers")
for step in range(first, 3 * H + 3):
    if step == 2 * H + 2 and not first:  # the first fragment has just been sent
        net.save_parameters(f"{path}/weights-{rank}")
        trainer.save_states(f"{path}/states")
    train(net, trainer, rank, step + 1)
trainer.synchronize()
print("digest", digest(net))
"""
    found = [run(body.replace("FIRST", str(first)), options) for first in (0, 2 * H + 2)]
    same([*found[0], *found[1]], 1)
    names = ["states.diloco-0", "states.diloco-1", "states.worker-0", "states.worker-1"]
    assert sorted(path.name for path in tmp_path.glob("states*")) == names


def test_a_nan_takes_all_back_and_what_is_wrong_is_said():
    run("""
def refused(sentence, error=ValueError, net=None, **more):
    try:
        trained(net or network(), **more)
    except error as caught:
        assert sentence in str(caught), caught
    else:
        raise AssertionError(sentence)

used = mx.optimizer.SGD()
used.num_update = 3
empty = gluon.nn.Dense(3)
empty.initialize()
rows = gluon.nn.Embedding(8, 4, sparse_grad=True)
rows.initialize()
half = gluon.nn.Dense(3, in_units=3, dtype="float64")
half.initialize()
refused("sync_every must be 1 or more, not 0", sync_every=0)
refused("in [0, sync_every) = [0, 4), not 4", fragment_sync_delay=H)
refused("fragment_update_alpha must be in [0, 1)", fragment_update_alpha=1)
refused("too few steps for 5 fragments", fragments=5)
refused("has made steps before", outer_optimizer=used)
refused("an Optimizer or its name", outer_optimizer=3)
refused("needs a synchronous distributed store", kvstore="device")
refused("has no values yet", net=empty)
refused("is sparse, or of type float32", net=rows)
refused("of type float64", net=half)
narrow = gluon.nn.Dense(3, in_units=3, dtype="float16")
narrow.initialize()
try:
    mxnet_hipress.DiLoCoTrainer(
        narrow.collect_params(), "adam", {"multi_precision": True}, sync_every=H)
except ValueError as error:
    assert "train float32 weights" in str(error), error
else:
    raise AssertionError("multi_precision")
refused('unknown compression type "nonsense"', MXNetError,
        compression_params={"type": "nonsense"})

# 2bit has no code for a NaN.
net = network()
trainer = trained(net, compression_params={"type": "2bit", "threshold": 0.01, "min_size": 0})
rank = trainer.store.rank
for step in range(1, 2 * H + 1):
    if step == H + 1:
        before = weights(net)
    if step == 2 * H and rank == 1:
        net[0].weight.data()[3, 3] = float("nan")
    train(net, trainer, rank, step)
for mine, theirs in zip(weights(net), before):
    assert np.array_equal(mine, theirs)
for step in range(2 * H + 1, 3 * H + 1):  # the inner Adam's states had the NaN, too
    train(net, trainer, rank, step)
assert all(np.isfinite(w).all() for w in weights(net))
assert not np.array_equal(weights(net)[0], before[0])
refused("every 4", MXNetError, sync_every=H + rank)
""", {})
