"""MXNet's stores in an elastic job: scripts that know nothing of it survive their workers' ends."""

import json
import sys
import textwrap

import numpy as np
import pytest

import refusals
from harness.elastic import ElasticJob
from harness.launch import Launch
from harness.processes import wait_until

pytest.importorskip("mxnet_hipress")

#: Prints its state after each step. Slot 2's first process dies in its tenth; the others end when
#: its second one has taken part for 8 steps. That one would go on for longer.
PROGRAM = """
import json
import os
import signal
import sys
import time

import mxnet as mx
import numpy as np

kv = mx.kv.create("dist_sync")
first = os.environ["HIPRESS_ELASTIC_RESTART"] == "0"
optimizer = mx.optimizer.SGD(momentum=0.9, rescale_grad=1 / kv.num_workers)
kv.set_optimizer(optimizer)
keys = ["a", "b", "not pushed"]
kv.init(keys, [mx.nd.full((5, 8), kv.rank + at) for at in range(3)])
out = [mx.nd.zeros((5, 8)) for key in keys]
kv.pull(keys, out=out)
together = 0
for step in range(1 << 30):
    optimizer.set_learning_rate(0.1 / (1 + step // 4))  # a worker's own, after a restart
    gradient = np.random.RandomState(1000 * kv.rank + step).randn(5, 8)
    kv.push("a", mx.nd.array(gradient))
    if kv.rank == 2 and first and step == 9:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    kv.push("b", [mx.nd.array(gradient), mx.nd.array(-2 * gradient)])  # of two devices
    kv.pull(keys, out=out)
    print(json.dumps({**kv.stats(), "step": step, "a": out[0].asnumpy().tolist(),
                      "b": out[1].asnumpy().tolist()}), flush=True)
    together += kv.stats()["workers"] == 3 and kv.stats()["epoch"] > 2
    if together == (8 if first else 12):
        break
    time.sleep(0.02)
kv.barrier()
print("done", kv.num_dead_node(), flush=True)
"""


def states_of(job, name):
    """What a process has printed, step by step."""
    lines = job.output(name).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


@pytest.mark.slow
def test_a_script_goes_on_without_a_worker_and_with_its_successor(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mxnet_hipress", str(tmp_path / "train.py")]
    with ElasticJob(command, 3, env={"OMP_NUM_THREADS": "1"}) as job:
        wait_until(lambda: job.step(0) >= 15, 120, "the others to go on")
        job.restart(2)
        job.wait(90)
        names = ["worker 0", "worker 1", "worker 2 again 1"]
        assert [job.processes[name].returncode for name in names] == [0, 0, 0], job.report()
        assert all("done" in job.output(name) for name in names)
        of_late = job.output("worker 2 again 1")
        printed = {name: states_of(job, name) for name in [*names, "worker 2"]}

    late = printed["worker 2 again 1"]
    end = printed["worker 0"][-1]
    assert "training is over, as another" in of_late
    # The job was over for it before its script was: it has the weights that the others ended with.
    assert late[-1]["steps"] == late[-2]["steps"] == end["steps"]
    assert [late[-1][key] for key in "ab"] == [end[key] for key in "ab"]

    present = {}  # by step of the job: what those that made it had after it, and their own step
    for name, states in printed.items():
        slot = int(name.split()[1])
        for before, state in zip(states[1:], states[2:]):
            if state["steps"] == before["steps"] + 1:
                present.setdefault(state["steps"], {})[slot] = state
    last = max(present)
    assert sorted(present) == list(range(1, last + 1))
    sizes = [len(present[step]) for step in sorted(present)]
    assert sizes[0] == sizes[-1] == 3 and 2 in sizes and sizes[8] == 2
    weights = {"a": np.full((5, 8), 0.0), "b": np.full((5, 8), 1.0)}  # slot 0's
    momentum = {key: np.zeros((5, 8)) for key in weights}
    for step in range(1, last + 1):
        rate = 0.1 / (1 + present[step][0]["step"] // 4)  # of who was there all the time
        gradients = [
            np.random.RandomState(1000 * slot + state["step"]).randn(5, 8)
            for slot, state in present[step].items()
        ]
        for key, factor in (("a", 1.0), ("b", -1.0)):
            momentum[key] = 0.9 * momentum[key] - rate * factor * np.mean(gradients, axis=0)
            weights[key] = weights[key] + momentum[key]
            for state in present[step].values():
                np.testing.assert_allclose(state[key], weights[key], atol=1e-4)


GLUON = """
import mxnet as mx
from mxnet import autograd, gluon

kv = mx.kv.create("dist_device_sync")
mx.random.seed(kv.rank)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(96, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(4))
net.initialize(mx.init.Xavier())
schedule = mx.lr_scheduler.FactorScheduler(5, 0.9, base_lr=0.05)
trainer = gluon.Trainer(
    net.collect_params(), "sgd", {"momentum": 0.9, "lr_scheduler": schedule}, kvstore=kv,
    compression_params={"type": "onebit", "min_size": 10})
losses = []
for step in range(60):
    values = mx.nd.random.normal(shape=(16, 64))
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(values), values[:, :4] * 2)
    loss.backward()
    trainer.step(16 * kv.num_workers)
    losses.append(loss.mean().asscalar())
trainer.save_states(f"{kv.rank}.states")
trained = [p for p in net.collect_params().values() if p.grad_req != "null"]
total = sum(p.data().sum().asscalar() for p in trained)
print("done", losses[-1] < 0.7 * losses[0], total, trainer.learning_rate, kv.stats()["steps"])
"""


@pytest.mark.slow
def test_a_trainer_of_an_unchanged_script(tmp_path):
    (tmp_path / "train.py").write_text(GLUON)
    launch = Launch(
        ["--elastic", "--hipress", "-n", "2", sys.executable, "train.py"], cwd=tmp_path,
        env={"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert launch.finish(90) == 0, launch.err
    done = [line.split("done ")[1] for line in launch.out.splitlines() if "done " in line]
    assert len(done) == 2 and done[0] == done[1], launch.out
    assert done[0].startswith("True ") and done[0].endswith(" 58")
    assert (tmp_path / "1.states").exists()


def test_the_time_to_wait_is_that_of_the_environment(monkeypatch):
    from mxnet.base import MXNetError

    from mxnet_hipress.elastic_store import ElasticStore

    def timeout():
        store = ElasticStore("dist_sync")
        store._end.leave()
        return store._state.timeout

    monkeypatch.setenv("HIPRESS_ELASTIC_AGENTS", "127.0.0.1:1,127.0.0.1:2")
    monkeypatch.setenv("HIPRESS_ELASTIC_SLOT", "0")
    monkeypatch.setenv("HIPRESS_SECRET", "0" * 32)
    assert timeout() == 300
    monkeypatch.setenv("HIPRESS_TIMEOUT", "7")
    assert timeout() == 7
    monkeypatch.setenv("HIPRESS_TIMEOUT", "7.5")
    with pytest.raises(MXNetError, match="HIPRESS_TIMEOUT is '7.5'; it takes a number from 1 to"):
        timeout()


@pytest.mark.slow
def test_what_cannot_be_is_refused_in_a_sentence():
    program = """
        import mxnet_hipress
        import mxnet as mx

        def store(name="dist_sync_hipress", optimizer=True):
            kv = mx.kv.create(name)
            if optimizer:
                kv.set_optimizer(mx.optimizer.SGD())
            kv.init([1, 2], [mx.nd.ones(4)] * 2)
            return kv

        def push(kv, *keys):
            for key in keys:
                kv.push(key, mx.nd.ones(4))

        def later(kv):
            kv._steps, kv._state.gradients, kv._state.names = 1, {1: 0, 2: 0}, {1: "1", 2: "2"}
            return kv

        dense = mx.gluon.nn.Dense(2, in_units=2)
        dense.initialize()
        row_sparse = mx.nd.zeros((4, 4), stype="row_sparse")
        for refused in (
            lambda: mx.kv.create("dist_async_hipress"),
            lambda: mx.kv.create("dist_sync"),
            lambda: store().init(3, row_sparse),
            lambda: store().init(3, mx.nd.ones(4, dtype="float64")),
            lambda: store().init([3, 3], [mx.nd.ones(4)] * 2),
            lambda: push(store(), 3),
            lambda: (lambda kv: (push(kv, 1), kv.init(3, mx.nd.ones(4))))(store()),
            lambda: push(store(optimizer=False), 1, 2, 1),
            lambda: push(later(store()), 1, 1),
            lambda: store().set_gradient_compression({"type": "auto", "warmup_steps": 3}),
            lambda: store().set_gradient_compression({"type": "twobit"}),
            lambda: store().set_gradient_compression({"type": "onebit", "pull": "none"}),
            lambda: store(optimizer=False).save_optimizer_states("states"),
            lambda: store().row_sparse_pull(1),
            lambda: store().push(1, mx.nd.ones(5)),
            lambda: mxnet_hipress.DiLoCoTrainer(dense.collect_params(), "sgd", sync_every=3),
        ):
            try:
                refused()
                print("nothing")
            except (mx.base.MXNetError, ValueError) as error:
                print(str(error).splitlines()[0])
    """
    variables = {
        "HIPRESS_ELASTIC_AGENTS": "127.0.0.1:1,127.0.0.1:2", "HIPRESS_ELASTIC_SLOT": "0",
        "HIPRESS_SECRET": "0" * 32,
    }  # fmt: skip
    expected = (
        "no asynchronous store", "has no store 'dist_sync'", "key 3 is row_sparse",
        "has dtype float64", "init of key 3 takes one value", "init it first",
        "comes after the first push", "call set_optimizer before", "before key 2, which every step",
        "leave warmup_steps out", 'unknown compression type "twobit"', "pull is for kvstores",
        "this store has no optimizer", "no row_sparse keys", "cannot push shape (5,)",
        "needs a job whose workers stay",
    )  # fmt: skip
    refusals.check(textwrap.dedent(program), expected, variables)
