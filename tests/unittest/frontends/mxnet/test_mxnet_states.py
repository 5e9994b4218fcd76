"""Saved states: a job that loads them continues with the bits of an uninterrupted job."""

import json

import numpy as np
import pytest

from harness.cluster import run_cluster, worker_outputs
from scripts import SCRIPTS

pytest.importorskip("mxnet")


def program():
    import json
    import pathlib
    import sys
    import warnings

    import mxnet_hipress  # noqa: F401 - before mxnet
    import mxnet as mx  # isort: skip
    import numpy as np

    folder, options, first, last, name = sys.argv[1:]
    options, first, last = json.loads(options), int(first), int(last)
    folder = pathlib.Path(folder)
    shapes = {"a": (7, 11), "b": (300, 13), "c": (5,)}
    kv = mx.kv.create("dist_sync_hipress")
    kv.set_gradient_compression(options["compression"])
    saved = np.load(folder / "weights.npz") if first else None
    for i, (key, shape) in enumerate(shapes.items()):
        start = np.random.RandomState(i).uniform(-1, 1, shape).astype(np.float32)
        kv.init(key, mx.nd.array(saved[key] if first else start))
    if options["optimizer"]:
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.1, momentum=0.9))
    if first:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if options["optimizer"]:
                kv.load_optimizer_states(str(folder / "states"))
            else:
                kv.load_compression_states(str(folder / "states"))
        print("warned:", [str(w.message) for w in caught if "compression" in str(w.message)])
    results, outs = {}, {key: mx.nd.zeros(shape) for key, shape in shapes.items()}
    for step in range(first, last):
        for i, (key, shape) in enumerate(shapes.items()):
            numbers = np.random.RandomState(1000 * step + 10 * i + kv.rank)
            kv.push(key, mx.nd.array(numbers.uniform(-1, 1, shape)))
            kv.pull(key, outs[key])
        for key, out in outs.items():
            results[f"{key} {step}"] = out.asnumpy()
    np.savez(folder / f"{name}-{kv.rank}.npz", **results)
    if name == "first":
        if options["optimizer"]:
            kv.save_optimizer_states(str(folder / "states"))
        else:
            kv.save_compression_states(str(folder / "states"))
        if kv.rank == 0:
            np.savez(folder / "weights.npz", **{key: out.asnumpy() for key, out in outs.items()})
    kv.barrier()


def run(folder, options, first, last, name, servers=2, workers=2):
    args = [str(folder), json.dumps(options), str(first), str(last), name]
    environment = {"HIPRESS_TOPOLOGY": options.get("topology", "ps")}
    return worker_outputs(
        run_cluster(program, workers, servers=servers, timeout=100, args=args, env=environment)
    )


CASES = [
    ({"type": "2bit", "threshold": 0.5}, True, "ps"),
    ({"type": "onebit"}, False, "ps"),
    ({"type": "terngrad"}, True, "ps"),
    ({"type": "terngrad"}, False, "ps"),
    ({"type": "dgc", "ratio": 0.05}, True, "ps"),
    ({"type": "onebit"}, False, "ring"),
    ({"type": "randomk", "ratio": 0.2}, False, "colocated"),
]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("compression", "optimizer", "topology"),
    CASES,
    ids=[f"{c['type']}-{'sgd' if o else 'sum'}-{t}" for c, o, t in CASES],
)
def test_a_job_goes_on_with_the_same_bits(tmp_path, compression, optimizer, topology):
    """A job that loads the states of another one continues with the same bits, and with other
    bits without them.

    Cost: Three or four jobs of three or five processes follow each other.
    """
    options = {"compression": {**compression, "min_size": 0}, "optimizer": optimizer}
    options["topology"] = topology
    servers = 2 if topology == "ps" else 0
    run(tmp_path, options, 0, 10, "whole", servers)
    run(tmp_path, options, 0, 5, "first", servers)
    outputs = run(tmp_path, options, 5, 10, "second", servers)
    assert all("warned: []" in output for output in outputs), outputs
    for rank in range(2):
        whole, second = (np.load(tmp_path / f"{name}-{rank}.npz") for name in ("whole", "second"))
        assert len(second.files) == 15
        for name in second.files:
            assert second[name].any() and np.array_equal(whole[name], second[name]), name
    # It matters: without the states of compression other bits come out.
    for rank in range(2):
        (tmp_path / f"states.worker-{rank}").unlink()
    if optimizer:
        outputs = run(tmp_path, options, 5, 10, "without", servers)
        assert all("compression starts without what it remembered" in out for out in outputs)
        without = np.load(tmp_path / "without-0.npz")
        assert any(not np.array_equal(whole[name], without[name]) for name in without.files)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_states_that_do_not_fit_cost_a_warning_and_nothing_else(tmp_path):
    """Damaged states and those of another number of workers are left out with a warning.

    Cost: Several jobs follow each other, because a job has one number of workers.
    """
    options = {"compression": {"type": "2bit", "min_size": 0}, "optimizer": True}
    run(tmp_path, options, 0, 5, "first")
    path = tmp_path / "states.worker-0"
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    outputs = run(tmp_path, options, 5, 7, "torn")
    assert "states.worker-0 is not whole" in outputs[0] and "warned: []" in outputs[1], outputs
    path.write_bytes(b"something else")
    outputs = run(tmp_path, options, 5, 7, "other")
    assert "states.worker-0 holds no compression states" in outputs[0], outputs
    path.write_bytes(whole)
    outputs = run(tmp_path, options, 5, 7, "more", workers=3)
    words = "of a job with 2 workers and 2 servers, and this is worker 0 of 3"
    assert words in outputs[0] and "there is no" in outputs[2], outputs


def test_damaged_states_are_refused_in_a_sentence_and_change_nothing(tmp_path):
    def program():
        import random

        import numpy as np

        from hipress.runtime.node import HipressError, Node

        with Node() as node:
            node.init_array(3, np.zeros(1000, np.float32), "w")
            node.set_gradient_compression({"type": "dgc", "ratio": 0.1, "min_size": 0})
            out = np.zeros(1000, np.float32)
            node.pushpull(3, np.random.RandomState(1).normal(size=1000).astype("f"), out).wait()
            states = node.save_states()
            assert len(states) > 4000 and node.save_states(first=4) == b""
            dice, refused = random.Random(1), 0
            for _ in range(3000):
                damaged = bytearray(states[: dice.choice([len(states), dice.randrange(400)])])
                for _ in range(dice.randint(0, 3)):
                    if damaged:
                        damaged[dice.randrange(min(300, len(damaged)))] = dice.randrange(256)
                try:
                    node.load_states(bytes(damaged))
                except HipressError as error:
                    assert str(error), damaged
                    refused += 1
                    node.load_states(states)
            assert refused > 1500, refused
            node.load_states(states)
            assert node.save_states() == states
            try:
                node.load_states(states, server=0)
                raise AssertionError("a server took a worker's states")
            except HipressError as error:
                assert "server 0" in str(error) and "'w'" in str(error), error
        print("refused")

    results = run_cluster(program, workers=1, servers=1, timeout=60)
    assert any("refused" in result.output for result in results)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_saving_waits_for_pushes_that_nobody_pulled(tmp_path):
    def program():
        import sys
        import time

        import numpy as np

        from hipress.runtime import states
        from hipress.runtime.node import Node

        with Node() as node:
            node.init_array(1, np.zeros(5000, np.float32))
            node.set_gradient_compression({"type": "onebit", "min_size": 0})
            gradient = np.random.RandomState(node.rank).normal(size=5000).astype("f")
            if node.rank == 1:
                time.sleep(2)  # the servers cannot encode the sum before this worker's push
            node.push(1, gradient).wait()
            states.save(node, sys.argv[1])
            node.barrier()
            if node.rank == 0:
                saved = states.read(node, sys.argv[1])
                assert saved == [node.save_states(), node.save_states(0)] and all(saved)
            node.barrier()
            print("same")

    results = run_cluster(program, 2, servers=1, timeout=60, args=[str(tmp_path / "states")])
    assert sum("same" in result.output for result in results) == 2


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_trainer_on_the_workers_goes_on_with_the_same_bits(tmp_path):
    def program():
        import sys

        import mxnet_hipress  # noqa: F401 - before mxnet
        import mxnet as mx  # isort: skip
        import numpy as np
        from mxnet import autograd, gluon

        folder, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        net = gluon.nn.Dense(30, in_units=40)
        net.initialize(mx.init.Constant(0.01))
        if first:
            net.load_parameters(f"{folder}/weights")
        params = {"type": "terngrad", "min_size": 0}
        kv = mx.kv.create("dist_sync_hipress")
        settings = {"learning_rate": 0.1, "momentum": 0.9}
        trainer = gluon.Trainer(
            net.collect_params(), "sgd", settings, kv, params, update_on_kvstore=False
        )
        if first:
            trainer.load_states(f"{folder}/states")
        for step in range(first, last):
            numbers = np.random.RandomState(100 * step + kv.rank)
            x = mx.nd.array(numbers.normal(size=(8, 40)))
            with autograd.record():
                loss = (net(x) ** 2).mean()
            loss.backward()
            trainer.step(8)
        if last == 4:
            trainer.save_states(f"{folder}/states")
            if kv.rank == 0:
                net.save_parameters(f"{folder}/weights")
        kv.barrier()
        print("bits", hash(net.weight.data().asnumpy().tobytes()))

    def bits(first, last):
        results = run_cluster(
            program,
            2,
            servers=1,
            timeout=100,
            args=[str(tmp_path), str(first), str(last)],
            env={"PYTHONHASHSEED": "1"},
        )
        found = {output[output.index("bits") :].split()[1] for output in worker_outputs(results)}
        assert len(found) == 1
        return found

    whole = bits(0, 8)
    assert bits(0, 4) != whole and bits(4, 8) == whole


TRAINER = SCRIPTS / "mxnet_trainer_states.py"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_trainer_that_updates_weights_itself_says_what_it_lacks(tmp_path):
    def job(what, workers):
        args = [what, str(tmp_path / "states")]
        return worker_outputs(run_cluster(TRAINER, workers, servers=1, timeout=100, args=args))

    assert all("warned: []" in out for out in job("save_states", 2))
    assert all("warned: []" in out for out in job("load_states", 2))
    outputs = job("load_states", 3)
    assert all("compression starts without what it remembered" in out for out in outputs), outputs


def test_a_store_resumes_though_another_one_was_told_the_compression(tmp_path):
    """A store resumes although another one received the compression. States that it cannot read
    cost a warning, also in a job that does not compress yet."""

    def program():
        import sys
        import warnings

        import mxnet_hipress  # noqa: F401 - before mxnet
        import mxnet as mx  # isort: skip

        def warned(name):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                second.resume_compression(f"{folder}/{name}")
            found = [str(w.message) for w in caught if "compression" in str(w.message)]
            return found[0] if found else ""

        folder, what = sys.argv[1:]
        first, second = (mx.kv.create("dist_sync_hipress") for _ in range(2))
        out = mx.nd.zeros(64)
        second.init("a", out)
        if what == "load":
            assert warned("missing") == ""
            assert "holds no compression states" in warned("torn")
        first.set_gradient_compression({"type": "2bit", "threshold": 4, "min_size": 0})
        if what == "load":
            assert "there is no" in warned("missing")
            assert warned("states") == ""
        second.pushpull("a", mx.nd.full(64, 3), out=out)  # with a residual of 3 it is 4
        assert out.asnumpy()[0] == (4 if what == "load" else 0), out
        if what == "save":
            second.save_compression_states(f"{folder}/states")

    (tmp_path / "torn.worker-0").write_text("something else")
    for what in ("save", "load"):
        run_cluster(program, 1, servers=1, timeout=100, args=[str(tmp_path), what])
