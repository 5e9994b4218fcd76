"""Optimizers on servers and elsewhere: their states in files, their rates, NumPy's arrays."""

import sys

import pytest

from harness.elastic import ElasticJob
from harness.launch import run

pytest.importorskip("mxnet_hipress")

TRAINER = """
import os
import sys
import mxnet as mx
from mxnet import autograd, gluon
numpy = os.environ.get("NUMPY")
if numpy:
    mx.npx.set_np()
ones = mx.np.ones if numpy else mx.nd.ones
net = gluon.nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.Dense(2, in_units=3))
net.initialize(mx.init.One())
net(ones((1, 4)))

def train(trainer, steps):
    for _ in range(steps):
        with autograd.record():
            loss = net(ones((1, 4))).sum()
        loss.backward()
        trainer.step(2)

def weight():
    return net[0].weight.data().asnumpy().ravel()[:2].tolist()
"""

STATES = TRAINER + """
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, kvstore="dist_sync")
if sys.argv[2] == "save":
    train(trainer, 2)
    trainer.save_states(sys.argv[1])
else:
    try:
        trainer.load_states(sys.argv[1])
        train(trainer, 3)
        print("trained", flush=True)
    except mx.base.MXNetError as error:
        print("refused:", error, flush=True)
"""
SERVERS, RING = ["-n", "1", "-s", "1"], ["-n", "1", "-s", "0", "--topo", "ring"]
ELASTIC = ["-n", "1", "--elastic", "--max-restarts", "0"]


def launch(where, folder, code, *args):
    """Runs a script, without a change of its stores' names."""
    script = folder / "train.py"
    script.write_text(code)
    done = run(["--hipress", *where, sys.executable, str(script), *args])
    assert done.process.returncode == 0, done.err
    return done.out


def states(where, what, file):
    return launch(where, file.parent, STATES, str(file), what)


@pytest.mark.slow
@pytest.mark.parametrize(("saved", "loaded", "sentence"), [
    (SERVERS, RING, "of servers: load them in a job that has 1 of them"),
    (SERVERS, ELASTIC, "of servers: load them in a job that has 1 of them"),
    (RING, SERVERS, "of a job without servers: load them in a job that has none"),
])
def test_states_of_another_kind_of_job_are_refused_by_name(tmp_path, saved, loaded, sentence):
    states(saved, "save", tmp_path / "states")
    out = states(loaded, "load", tmp_path / "states")
    assert f"refused: {tmp_path / 'states'} holds the optimizer states {sentence}" in out


@pytest.mark.slow
def test_servers_states_are_resumed_with_numpys_arrays(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMPY", "1")
    states(SERVERS, "save", tmp_path / "states")
    assert "trained" in states(SERVERS, "load", tmp_path / "states")


@pytest.mark.slow
def test_servers_heed_another_learning_rate(tmp_path):
    """From the third of four steps on it is 0."""
    code = TRAINER + """
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.125}, kvstore="dist_sync")
train(trainer, 2)
trained = weight()
trainer.set_learning_rate(0.0)
train(trainer, 2)
assert weight() == trained != [1.0, 1.0], (weight(), trained)
trainer.set_learning_rate(0.5)
train(trainer, 1)
assert weight() != trained
"""
    launch(["-n", "2", "-s", "2"], tmp_path, code)


@pytest.mark.slow
def test_another_optimizer_comes_after_what_was_pushed(tmp_path):
    code = """
import time
import mxnet as mx
kv = mx.kv.create("dist_sync")
kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
out = mx.nd.zeros(50)
kv.init(3, out)
if kv.rank == 1:
    time.sleep(2)
kv.push(3, mx.nd.ones(50))
kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.0))
kv.push(3, mx.nd.ones(50))
kv.pull(3, out=out)
assert out.asnumpy()[0] == -2, out
"""
    launch(["-n", "2", "-s", "1"], tmp_path, code)


@pytest.mark.slow
def test_an_asynchronous_barrier_waits_for_pushes_with_pulls_behind_them(tmp_path):
    code = """
import time
import mxnet as mx

class Slow(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        time.sleep(2)
        self.assign(out_data[0], req[0], in_data[0])

@mx.operator.register("slow")
class SlowProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Slow()

kv = mx.kv.create("dist_async")
kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
outs = [mx.nd.zeros(50), mx.nd.zeros(50)]
kv.init([3, 4], outs)
kv.barrier()
if kv.rank == 0:
    gradient = mx.nd.Custom(mx.nd.ones(50), op_type="slow")
    kv.push(3, gradient)
    kv.pull(3, out=outs[0])
    kv.pushpull(4, gradient, out=outs[1])
kv.barrier()
if kv.rank == 1:
    kv.pull([3, 4], out=outs)
assert [out.asnumpy()[0] for out in outs] == [-1, -1], outs
"""
    launch(["-n", "2", "-s", "1"], tmp_path, code)


@pytest.mark.slow
def test_states_are_those_after_the_last_push_also_if_nothing_is_pulled_after_it(tmp_path):
    code = """
import pickle
import sys
import time
import mxnet as mx
kv = mx.kv.create("dist_sync")
kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0, momentum=0.5))
weight, table = mx.nd.zeros(50_000), mx.nd.zeros((40, 5)).tostype("row_sparse")
kv.init([3, 4], [weight, table])
for step in range(3):
    kv.pull(3, out=weight)
    weight.wait_to_read()
    if step == 2 and kv.rank == 1:
        time.sleep(1)
    kv.push(3, mx.nd.ones(50_000))
    kv.push(4, mx.nd.ones((40, 5)).tostype("row_sparse"))
path = f"{sys.argv[1]}/{kv.rank}"
kv.save_optimizer_states(path)
states = pickle.loads(pickle.load(open(path, "rb"))["states"][0])
assert states[3].asnumpy()[0] == -3.5, states[3]
assert states[4].asnumpy()[0, 0] == -3.5, states[4]
kv.barrier()
"""
    launch(["-n", "2", "-s", "1"], tmp_path, code, str(tmp_path))


@pytest.mark.slow
def test_a_process_may_fork_while_gradients_travel(tmp_path):
    """MXNet waits before that for what is under way."""
    code = """
import os
import mxnet as mx
kv = mx.kv.create("dist_sync")
values = [mx.nd.ones(300_000) for _ in range(20)]
kv.set_gradient_compression({"type": "onebit"})
kv.init(list(range(20)), values)
for step in range(5):
    kv.push(list(range(20)), values)
    kv.pull(list(range(20)), out=values)
    if not (child := os.fork()):
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
mx.nd.waitall()
kv.barrier()
"""
    launch(["-n", "2", "-s", "1", "--timeout", "60"], tmp_path, code)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("script", ["elastic", "rounds", "store"])
def test_elastic_jobs_take_numpys_arrays(script):
    """And copy them to the workers that do not count, at the beginning."""
    code = "import mxnet_hipress.elastic as elastic\n" + TRAINER + """
if sys.argv[1] == "store":
    import mxnet_hipress
    mxnet_hipress.install()
    train(gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1},
                        kvstore="dist_sync"), 6)
else:
    rounds = {"sync_every": 2, "outer_optimizer": "nag"} if sys.argv[1] == "rounds" else {}
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1}, kvstore=None)
    state = elastic.State(net, trainer, {"type": "onebit", "min_size": 0}, timeout=60, **rounds)

    @elastic.run
    def steps(state):
        while state.step < 4:
            train(state.trainer, 1)
            state.commit()

    steps(state)
    state.load_state_dict(state.state_dict())
assert weight() != [1.0, 1.0]
print("trained", flush=True)
"""
    with ElasticJob([sys.executable, "-c", code, script], 2, env={"NUMPY": "1"}) as job:
        job.wait(90, succeed=True)
        assert all("trained" in job.output(f"worker {slot}") for slot in range(2))


def test_parameters_with_the_same_name_are_refused_where_workers_know_them_by_it():
    from mxnet import gluon, init

    from mxnet_hipress import elastic

    nets = [gluon.nn.Dense(3, in_units=2, prefix="fc_") for _ in range(2)]
    parameters = [p for net in nets for p in net.collect_params().values()]
    for net in nets:
        net.initialize(init.One())
    trainer = gluon.Trainer(parameters, "sgd", kvstore=None)
    with pytest.raises(ValueError, match="two parameters are called 'fc_weight'"):
        elastic.State(parameters, trainer)
