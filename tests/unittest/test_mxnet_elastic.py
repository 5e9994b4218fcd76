"""Elastic training under MXNet: workers die and join, and every step has the reference's bits."""

import json
import subprocess
import sys
import textwrap

import pytest

import refusals
from harness.elastic import ElasticJob
from harness.processes import base_environment, wait_until

pytest.importorskip("mxnet_hipress")

#: Trains; slot 2's first process dies in the middle of step 12, when others have encoded. Ends when
#: another one has taken part for 8 steps.
PROGRAM = """
import json
import os
import signal
import sys
import time
import zlib

import mxnet_hipress.elastic as elastic
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

BATCH, DIES, WARM_UP = 48, 12, 5


class Bits:
    data = b""  # some of which are those of NaNs of every kind

    def state_dict(self):
        return {"data": self.data}

    def load_state_dict(self, found):
        self.data = found["data"]


def parts(compression, seed=0):
    np.random.seed(seed)
    mx.random.seed(seed)
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(96, activation="relu", in_units=64), gluon.nn.Dense(4, in_units=96))
    net.initialize(mx.init.Normal(0.1))
    net.hybridize()
    schedule = mx.lr_scheduler.FactorScheduler(5, 0.9, base_lr=0.05)
    options = {"learning_rate": 0.05, "momentum": 0.9, "lr_scheduler": schedule}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options, kvstore=None)
    state = elastic.State(
        net, trainer, compression, check_every=1, timeout=60, notes="", bits=Bits())
    if seed == 0:
        state.bits.data = np.random.bytes(6 << 20)
    return net, trainer, state


def backward(net, step, rank, size):
    values = np.random.RandomState(step).randn(BATCH, 64).astype(np.float32)[rank::size]
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(mx.nd.array(values)), mx.nd.array(values[:, :4] * 2))
    loss.backward()


def main():
    compression, slot = json.loads(sys.argv[1]), os.environ["HIPRESS_ELASTIC_SLOT"]
    first = os.environ["HIPRESS_ELASTIC_RESTART"] == "0"
    # Others' weights are copied.
    net, trainer, state = parts(compression, 0 if slot == "0" and first else os.getpid())

    @elastic.run
    def train(state):
        enough = state.size == 3 and state.step > DIES
        last = state.step + 8 if enough else 1 << 30
        while state.step < last:
            backward(net, state.step, state.rank, state.size)
            if first and slot == "2" and state.step == DIES:
                time.sleep(1.5)  # the others begin this step, too
                os.kill(os.getpid(), signal.SIGKILL)
            state.trainer.step(BATCH)
            state.notes = f"step {state.step}"
            state.commit(rate=trainer.learning_rate, updates=trainer.optimizer.num_update)
            time.sleep(0.02)

    train(state)
    print(state.notes, zlib.crc32(state.bits.data))


if __name__ == "__main__":
    main()
"""

#: The same training in one process: prints the digest of the weights after each step.
REFERENCE = """
import json
import sys

import numpy as np
import train

from hipress import Compressor
from hipress.elastic_training.session import digest

views, last = json.loads(sys.argv[1])
net, trainer, state = train.parts(None)
names = list(state.sizes())
left, digests = {}, {}
for (begin, slots), (end, _) in zip(views, [*views[1:], (last, [])]):
    size = len(slots)
    codecs, shared, plain = {}, {}, Compressor("none")
    for at, name in enumerate(names):
        n = state.sizes()[name][0]
        kind = "onebit" if n >= 256 else "none"
        shared[name] = Compressor(kind).for_sum_of(size)
        for slot in slots:
            codecs[slot, name] = Compressor(kind)
            if kind == "onebit":
                codecs[slot, name].residual = left.get((slot, name), np.zeros(n, np.float32))
    for step in range(begin, end):
        payloads = {name: [] for name in names}
        for rank, slot in enumerate(slots):
            train.backward(net, step, rank, size)
            for name in names:
                gradient = state._trained[name].grad().asnumpy().reshape(-1)
                codec = plain if step < train.WARM_UP else codecs[slot, name]
                payloads[name].append(codec.encode(gradient))
        for name in names:
            grad = state._trained[name].grad()
            codec = plain if step < train.WARM_UP else shared[name]
            total = codec.decode_sum(payloads[name], grad.size)
            grad[:] = codec.decode(codec.encode(total), grad.shape)
        trainer.update(train.BATCH)
        digests[step + 1] = digest(state.weights())
    # Who owned a sum has its residual, too, in units of a gradient.
    left = {key: codec.residual for key, codec in codecs.items() if codec.type == "onebit"}
    for at, name in enumerate(names):
        if shared[name].type == "onebit" and shared[name].residual is not None:
            left[slots[at % size], name] = left[slots[at % size], name] + shared[name].residual
print(json.dumps(digests))
"""


@pytest.fixture
def job(tmp_path):
    """Starts a job of the program above, of three workers."""
    (tmp_path / "train.py").write_text(PROGRAM)
    jobs = []

    def start(compression, **options):
        command = [sys.executable, str(tmp_path / "train.py"), json.dumps(compression)]
        jobs.append(ElasticJob(command, 3, env={"OMP_NUM_THREADS": "1"}, **options))
        return jobs[-1]

    yield start
    for each in jobs:
        each.close()


def events(job, kind):
    """What all slots have written of this kind."""
    return [event for slot in range(3) for event in job.journal(slot) if event["event"] == kind]


def digests_of(job):
    """The digest after each step, which all that made it had."""
    found = {}
    for event in events(job, "step"):
        found.setdefault(event["step"], set()).add(event["digest"])
    assert all(len(each) == 1 for each in found.values()), found
    return {step: each.pop() for step, each in found.items()}


@pytest.mark.slow
def test_every_step_has_the_bits_of_a_reference(job, tmp_path):
    compression = {"type": "onebit", "min_size": 256, "warmup_steps": 5}
    with job(compression) as running:
        wait_until(lambda: running.step(0) >= 16, 120, "the others to go on")
        assert {event["step"] for event in events(running, "rollback")} == {12}
        other = json.dumps({"type": "onebit", "min_size": 64})
        running.restart(2, [*running.command[:-1], other])
        refused = running.processes[running.present(2)]
        wait_until(lambda: refused.poll() is not None, 120, "the end of a worker that differs")
        last = running.output(running.present(2)).splitlines()[-1]
        assert last.startswith("ValueError: this worker") and "differ in compression" in last
        running.restart(2)
        running.wait(120)
        names = [running.present(slot) for slot in range(3)]
        assert all(running.processes[name].returncode == 0 for name in names), running.report()
        (kept,) = {running.output(name).splitlines()[-1] for name in names}
        assert kept.startswith(f"step {running.step(0) - 1} ")
        found = digests_of(running)
        for event in events(running, "step"):  # the schedule goes on for who joins, too
            assert event["updates"] == event["step"]
            assert event["rate"] == pytest.approx(0.05 * 0.9 ** ((event["step"] - 1) // 5))
        began = {}
        for slot in range(3):
            for event in running.journal(slot):
                if event["event"] == "view":
                    _, slots = began.setdefault(event["epoch"], (event["step"], {}))
                    slots[event["rank"]] = slot
    views = [(step, [slots[rank] for rank in sorted(slots)]) for step, slots in began.values()]
    assert [(step, sorted(slots)) for step, slots in views][:2] == [(0, [0, 1, 2]), (12, [0, 1])]
    assert sorted(found) == list(range(1, max(found) + 1))
    reference = tmp_path / "reference.py"
    reference.write_text(REFERENCE)
    ended = subprocess.run(
        [sys.executable, str(reference), json.dumps([views, max(found)])], timeout=60,
        env=base_environment({"OMP_NUM_THREADS": "1"}), capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert {int(step): d for step, d in json.loads(ended.stdout).items()} == found


def test_rank_0_dies_and_then_there_is_one(job):
    """With another codec, which has states of other kinds, on a ring."""
    compression = {"type": "dgc", "ratio": 0.05, "min_size": 256, "topology": "ring"}
    with job(compression, min_workers=1) as running:
        wait_until(lambda: running.step(1) >= 16, 120, "slot 2 to have died by itself")
        running.kill(0)
        wait_until(lambda: running.step(1) >= 25, 120, "a worker to go on alone")
        assert {event["size"] for event in running.journal(1) if "size" in event} == {1, 2, 3}
        assert sorted(digests_of(running))[:25] == list(range(1, 26))


@pytest.mark.slow
def test_what_cannot_be_is_refused_in_a_sentence():
    program = """
        import mxnet_hipress.elastic as elastic
        import mxnet as mx
        from mxnet import gluon

        def net(**options):
            made = gluon.nn.Dense(4, **{"in_units": 8, **options})
            made.initialize()
            return made

        def state(*parts, of=None, **options):
            dense = of or net()
            trainer = gluon.Trainer(dense.collect_params(), "sgd", **options)
            return elastic.State(dense, trainer, *parts)

        sparse = gluon.nn.Embedding(8, 4, sparse_grad=True)
        sparse.initialize()
        for refused in (
            lambda: state(of=net(in_units=0)),
            lambda: state(kvstore="dist_sync"),
            lambda: state(compression_params={"type": "2bit"}),
            lambda: state(of=net(dtype="float64")),
            lambda: state(of=sparse),
            lambda: state({"type": "twobit"}),
            lambda: state({"type": "onebit", "shared_momentum": 0.5}),
            lambda: state({"type": "onebit", "pull": "none"}),
            lambda: elastic.State(net(), mx.optimizer.SGD(lr_scheduler=lambda step: 0.1)),
            lambda: state().trainer.step(1),
            lambda: state().commit(),
            lambda: elastic.run(lambda state: None)(state()),
        ):
            try:
                refused()
            except Exception as error:
                print(str(error).splitlines()[0])
    """
    expected = (
        "has no values yet", "kvstore=None", "belong to elastic.State", "sums dense ones",
        "sums dense ones", 'unknown compression type "twobit"', "shared_momentum is for PyTorch",
        "pull is for kvstores", "cannot be copied to a worker", "mxnet_hipress.elastic.run runs",
        "state.commit() belongs", "hipress launch --elastic",
    )  # fmt: skip
    refusals.check(textwrap.dedent(program), expected)
