"""The MXNet front end on real jobs: values, arguments, optimizers. Programs run on every worker."""

import sys

import pytest

from harness.cluster import run_cluster, worker_outputs

pytest.importorskip("mxnet")

UNMODIFIED = {"worker_prefix": [sys.executable, "-m", "mxnet_hipress"]}


@pytest.mark.slow
def test_values_of_every_call():
    def program():
        import mxnet as mx
        import numpy as np

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        assert isinstance(kv, mx.kv.KVStore)
        assert (kv.type, kv.num_workers) == ("dist_sync_hipress", 2)
        one = mx.nd.ones((3, 4))
        out = mx.nd.zeros((3, 4))

        kv.init("a", one * (5 + kv.rank))  # rank 0's value wins
        kv.pull("a", out)
        assert (out.asnumpy() == 5).all()

        kv.push("a", one * (kv.rank + 1))
        kv.pull("a", out=out)
        assert (out.asnumpy() == 3).all()

        for i in range(10):  # pushes without pulls count, each on its own
            kv.push("a", one * i)
        kv.pull("a", out)
        assert (out.asnumpy() == 18).all()

        gradient = one * 2
        kv.pushpull("a", gradient)  # in place
        assert (gradient.asnumpy() == 4).all()
        kv.pushpull("a", gradient, out=out)
        assert (out.asnumpy() == 8).all() and (gradient.asnumpy() == 4).all()

        # Device arrays are summed, results reach all of them.
        kv.push("a", [one, one * 2])
        outs = [mx.nd.zeros((3, 4)), mx.nd.zeros((3, 4))]
        kv.pull("a", outs)
        assert all((o.asnumpy() == 6).all() for o in outs)
        gradients = [one * 1, one * 3]
        kv.pushpull("a", gradients)
        assert all((g.asnumpy() == 8).all() for g in gradients)
        kv.pushpull("a", gradients, out=outs)
        assert all((o.asnumpy() == 32).all() for o in outs)

        # Lists of keys, and lists of device arrays for each.
        kv.init(["b", "c"], [mx.nd.zeros(5), mx.nd.zeros((2, 2), dtype="float16")])
        b, c = mx.nd.zeros(5), mx.nd.zeros((2, 2), dtype="float16")
        kv.push(["b", "c"], [[mx.nd.ones(5)] * 2, [mx.nd.ones((2, 2), dtype="float16")]])
        kv.pull(["c", "b"], [[c], b])
        assert (b.asnumpy() == 4).all() and (c.asnumpy() == 2).all() and c.dtype == np.float16

        # broadcast is init and pull.
        outs = [mx.nd.zeros(3), mx.nd.zeros(3)]
        kv.broadcast("d", mx.nd.ones(3) * (kv.rank + 1), outs)
        assert all((o.asnumpy() == 1).all() for o in outs)

        # A row_sparse gradient of a dense key; NumPy-like arrays; one array under several keys.
        kv.push("a", one.tostype("row_sparse"))
        kv.pull("a", out)
        assert (out.asnumpy() == 2).all()
        array = mx.np.ones((3, 4))
        kv.pushpull("a", array)
        assert float(array.sum()) == 24
        kv.pushpull(["a", "d"], [one[0:3], mx.nd.ones(3)], out=[out, outs[0]])
        assert (out.asnumpy() == 2).all() and (outs[0].asnumpy() == 2).all()

        # Another shape of as many elements, as MXNet allows.
        flat = mx.nd.zeros(12)
        kv.pull("a", flat)
        assert (flat.asnumpy() == 2).all()

        # A key large enough to be cut over both servers.
        n = 1_000_003
        big = mx.nd.arange(n)
        kv.init("big", big)
        kv.pushpull("big", big)
        assert np.array_equal(big.asnumpy(), 2 * np.arange(n, dtype="float32"))

        kv.barrier()
        assert kv.num_dead_node() == kv.get_num_dead_node(4, timeout=1) == 0
        assert kv.stats()["pushed_bytes"] > 4 * n
        print("all values right")

    outputs = worker_outputs(run_cluster(program))
    assert all("all values right" in output for output in outputs)


@pytest.mark.slow
def test_wrong_arguments_are_one_sentence():
    def program():
        import mxnet as mx
        import numpy as np

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        a = mx.nd.zeros((3, 4))
        kv.init("a", a)
        calls = [
            ("key 'a' is initialized already", kv.init, ("a", a)),
            ("keys must be all int or all str", kv.init, (3, a)),
            ("takes one value", kv.init, ("z", [a, a])),
            ("has dtype int32", kv.init, ("i", mx.nd.zeros(3, dtype="int32"))),
            ("float32, float16, bfloat16", kv.init, ("i", mx.nd.zeros(3, dtype="float64"))),
            ("storage type csr", kv.init, ("s", mx.nd.zeros((3, 3)).tostype("csr"))),
            ("cannot push key 'b': init it first", kv.push, ("b", a)),
            ("cannot push key 'b': init it first", kv.pushpull, ("b", a)),
            ("cannot pull key 'b': init it first", kv.pull, ("b", a)),
            ("keys must be all int or all str", kv.push, (1, a)),
            ("keys must be all int or all str", kv.push, (["a", 1], [a, a])),
            ("a key must be an int or a str", kv.push, (1.5, a)),
            ("a value for each of the 2 keys", kv.push, (["a", "b"], [a])),
            ("must be an NDArray", kv.push, ("a", np.zeros((3, 4)))),
            ("is an empty list", kv.push, ("a", [])),
            ("cannot push shape (3,)", kv.push, ("a", mx.nd.zeros(3))),
            ("cannot pull shape (3,)", kv.pushpull, ("a", a, mx.nd.zeros(3))),
            ("cannot push float16", kv.push, ("a", a.astype("float16"))),
            ("cannot pull float16", kv.pull, ("a", a.astype("float16"))),
            ("pull needs out", kv.pull, ("a",)),
            ("key 'a' is dense", lambda: kv.row_sparse_pull("a", out=a, row_ids=a), ()),
            ("use set_optimizer", kv._set_updater, (print,)),
            ("must be a dict", kv.set_gradient_compression, ("2bit",)),
            ("nobit", kv.set_gradient_compression, ({"type": "nobit"},)),
            ("threshold", kv.set_gradient_compression, ({"type": "2bit", "threshold": -1},)),
            ("holds no optimizer states", kv.load_optimizer_states, (__file__,)),
            (
                "cannot read the optimizer states nofile: No such file or directory",
                kv.load_optimizer_states,
                ("nofile",),
            ),
            ("no optimizer", kv.save_optimizer_states, ("states",)),
            ("this one is synchronous", mx.kv.create, ("dist_async_hipress",)),
        ]
        for expected, function, arguments in calls:
            try:
                function(*arguments)
            except mx.MXNetError as error:
                sentence = str(error)
                assert expected in sentence, (expected, sentence)
                assert "\n" not in sentence.strip(), sentence
            else:
                raise AssertionError(f"no error: {expected}")
        kv.pushpull("a", a)  # and nothing is broken
        a.wait_to_read()
        print("all refused")

    outputs = worker_outputs(run_cluster(program))
    assert all("all refused" in output for output in outputs)


@pytest.mark.slow
def test_operations_of_a_key_keep_their_order():
    """Operations of a key keep their order, although arrays become ready in any order, and arrays
    of a convolution have private layouts."""

    def program():
        import mxnet as mx
        import numpy as np

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        n = 400
        slow = mx.nd.random.uniform(shape=(n, n))
        out = mx.nd.zeros((n, n))
        kv.init(0, out)
        # The push waits for a long computation; the pull, whose array is ready, must not overtake.
        gradient = slow
        for _ in range(10):
            gradient = mx.nd.dot(gradient, slow) / n
        kv.push(0, gradient)
        kv.pull(0, out)
        assert abs(out.asnumpy().sum()) > 0
        # A pull before a push gives the earlier value, and the push reads before the overwriting.
        for step in range(50):
            kv.pushpull(0, mx.nd.ones((n, n)) * step, out=out)
            before = mx.nd.zeros((n, n))
            gradient = mx.nd.ones((n, n)) * 1000
            kv.pull(0, before)
            kv.push(0, gradient)
            gradient[:] = 0
            assert (before.asnumpy() == 2 * step).all()
        kv.pull(0, out)
        assert (out.asnumpy() == 2000).all()
        # Two views of one memory.
        both = mx.nd.arange(8)
        kv.init(1, mx.nd.zeros(4))
        kv.push(1, both[0:4])
        kv.pull(1, both[4:8])
        assert np.array_equal(both.asnumpy(), [0, 1, 2, 3, 0, 2, 4, 6])

        x, w = mx.nd.random.uniform(shape=(2, 16, 8, 8)), mx.nd.ones((32, 16, 3, 3))

        def convolved():
            return mx.nd.Convolution(x, w, no_bias=True, kernel=(3, 3), num_filter=32)

        sums = convolved().asnumpy() + 0
        y = convolved()
        kv.init(2, mx.nd.zeros(y.shape))
        kv.init(3, mx.nd.zeros(w.shape))
        z = mx.nd.zeros(y.shape)
        kv.push(2, convolved())
        kv.pull(2, z)
        mine = mx.nd.array(sums)
        kv.pushpull(2, mine)
        assert np.array_equal(z.asnumpy(), mine.asnumpy())
        y.wait_to_read()
        kv.pushpull(2, y)
        assert np.array_equal(y.asnumpy(), mine.asnumpy())
        convolved().wait_to_read()  # has left w in a private layout
        kv.push(3, mx.nd.arange(w.size).reshape(w.shape))
        kv.pull(3, w)
        assert np.array_equal(w.asnumpy().ravel(), 2 * np.arange(w.size))
        print("in order")

    for engine in ("ThreadedEnginePerDevice", "NaiveEngine"):
        results = run_cluster(program, env={"MXNET_ENGINE_TYPE": engine})
        assert all("in order" in output for output in worker_outputs(results))


@pytest.mark.slow
def test_trainer_with_and_without_update_on_kvstore():
    def program():
        import mxnet as mx
        import numpy as np
        from mxnet import autograd, gluon

        def train(update, compression, kvstore="dist_sync"):
            np.random.seed(1)
            mx.random.seed(1)
            net = gluon.nn.HybridSequential()
            net.add(gluon.nn.Conv2D(8, 3, activation="relu"), gluon.nn.Dense(16), gluon.nn.Dense(2))
            net.initialize(mx.init.Xavier())
            net(mx.nd.zeros((1, 1, 8, 8)))
            trainer = gluon.Trainer(
                net.collect_params(),
                "sgd",
                {"learning_rate": 0.05, "momentum": 0.9},
                kvstore=kvstore,
                compression_params=compression,
                update_on_kvstore=update,
            )
            loss = gluon.loss.SoftmaxCrossEntropyLoss()
            data = np.random.RandomState(5)
            for step in range(6):
                x = data.rand(16, 1, 8, 8)
                y = x.mean(axis=(1, 2, 3)) > 0.5
                rank = getattr(trainer._kvstore, "rank", mx.kv.create("dist_sync").rank)
                part = slice(rank * 8, rank * 8 + 8)
                x, y = mx.nd.array(x[part]), mx.nd.array(y[part])
                with autograd.record():
                    error = loss(net(x), y)
                error.backward()
                trainer.step(16)
                if step == 3:
                    net(x).wait_to_read()
            assert trainer._update_on_kvstore is (update is not False)
            weights = [p.data().asnumpy().ravel() for p in net.collect_params().values()]
            return np.concatenate(weights)

        exact = [train(update, None) for update in (None, True, False)]
        exact.append(train(None, None, mx.kv.create("dist_device_sync")))
        assert all(np.allclose(w, exact[0], atol=1e-6) for w in exact[1:])
        two_bit = {"type": "2bit", "threshold": 0.01, "min_size": 0}
        coarse = [train(update, two_bit) for update in (True, False)]
        assert all(np.isfinite(w).all() and not np.allclose(w, exact[0]) for w in coarse)
        print("digest", [w.tobytes().hex()[:64] for w in exact + coarse])

    outputs = worker_outputs(run_cluster(program, **UNMODIFIED))
    digests = [line for output in outputs for line in output.splitlines() if "digest" in line]
    assert len(digests) == 2 and digests[0] == digests[1]  # replicas agree to the bit


@pytest.mark.slow
def test_module_fit_with_string_keys_and_multipliers():
    def program():
        import mxnet as mx
        import numpy as np

        data = np.random.RandomState(3)
        x = data.rand(64, 10).astype("float32")
        y = (x[:, :5].sum(axis=1) > x[:, 5:].sum(axis=1)).astype("float32")
        symbol = mx.sym.FullyConnected(
            mx.sym.var("data"),
            num_hidden=2,
            name="fc",
            weight=mx.sym.var("fc_weight"),
            bias=mx.sym.var("fc_bias", lr_mult=0.0),
        )
        module = mx.mod.Module(mx.sym.SoftmaxOutput(symbol, name="softmax"))
        kv = mx.kv.create("dist_sync")
        rank, count = kv.rank, kv.num_workers
        module.fit(
            mx.io.NDArrayIter(x[rank::count], y[rank::count], batch_size=16),
            kvstore=kv,
            optimizer="sgd",
            optimizer_params={"learning_rate": 0.5},
            initializer=mx.init.Uniform(0.1),
            num_epoch=12,
        )
        score = module.score(mx.io.NDArrayIter(x, y, batch_size=16), "acc")[0][1]
        arguments, _ = module.get_params()
        assert score > 0.8, score
        assert (arguments["fc_bias"].asnumpy() == 0).all()  # lr_mult reaches the servers
        print("digest", arguments["fc_weight"].asnumpy().tobytes().hex())

    outputs = worker_outputs(run_cluster(program, **UNMODIFIED))
    digests = [line for output in outputs for line in output.splitlines() if "digest" in line]
    assert len(digests) == 2 and digests[0] == digests[1]


@pytest.mark.slow
def test_optimizer_on_the_servers_matches_a_local_one_and_its_states_survive():
    def program():
        import mxnet as mx
        import numpy as np
        from mxnet import gluon

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_sync_hipress")
        shapes = {0: (7,), 1: (1200, 1000), 2: (5, 5)}
        optimizer = mx.optimizer.Adam(learning_rate=0.1)
        optimizer.param_dict = {2: gluon.Parameter("frozen", shape=(5, 5), lr_mult=0.0)}
        kv.set_optimizer(optimizer)
        local = mx.optimizer.get_updater(mx.optimizer.Adam(learning_rate=0.1))
        weights, mirror = {}, {}
        for key, shape in shapes.items():
            dtype = "float16" if key == 0 else "float32"
            mirror[key] = mx.nd.ones(shape)
            weights[key] = mx.nd.ones(shape, dtype=dtype)
            kv.init(key, weights[key])

        def step(number):
            for key, shape in shapes.items():
                gradient = mx.nd.ones(shape, dtype=weights[key].dtype) * (number + 1)
                kv.push(key, gradient * (kv.rank + 1), priority=-key)
                kv.pull(key, weights[key], priority=-key)
                local(key, mx.nd.ones(shape) * 3 * (number + 1), mirror[key])
            assert np.allclose(weights[0].asnumpy(), mirror[0].asnumpy(), atol=1e-3)
            assert np.allclose(weights[1].asnumpy(), mirror[1].asnumpy(), atol=1e-6)
            assert (weights[2].asnumpy() == 1).all()

        for number in range(4):
            step(number)
        kv.barrier()
        if kv.rank == 0:
            kv.save_optimizer_states("states", dump_optimizer=True)
        kv.barrier()
        before = weights[1].copy()
        step(4)
        first = (weights[1] - before).asnumpy()
        step(5)
        kv.barrier()
        if kv.rank == 0:
            kv.load_optimizer_states("states")
            assert abs(kv._updater.optimizer.lr - 0.1) < 1e-9
        kv.barrier()
        # From the same states the same gradient moves the weights by as much as then.
        before = weights[1].copy()
        kv.push(1, mx.nd.ones(shapes[1]) * 5 * (kv.rank + 1))
        kv.pull(1, weights[1])
        again = (weights[1] - before).asnumpy()
        assert np.allclose(again, first, atol=1e-6), (again.ravel()[0], first.ravel()[0])
        print("optimizer right")

    outputs = worker_outputs(run_cluster(program))
    assert all("optimizer right" in output for output in outputs)


@pytest.mark.slow
def test_a_plan_by_itself_is_made_anew_once_the_servers_have_the_optimizer():
    def program():
        import mxnet as mx

        import mxnet_hipress  # noqa: F401
        from hipress.autotune.plan_controller import PlanController

        decided, real = [], PlanController._decide
        PlanController._decide = lambda self: decided.append(real(self))
        PlanController._seconds = lambda self, case: 1e-8 * case.size
        kv = mx.kv.create("dist_sync_hipress")
        kv.set_gradient_compression({"type": "tbq", "plan": "auto"})
        if kv.rank == 0:  # one is enough
            kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
        weight = mx.nd.zeros(10)
        kv.init(0, weight)
        assert len(decided) == 1
        for step in range(1, 4):
            kv.push(0, mx.nd.ones(10))
            kv.pull(0, weight)
            assert (weight.asnumpy() == -2 * step).all()
            assert len(decided) == 2

    run_cluster(program)


@pytest.mark.slow
def test_two_trainers_share_a_job():
    def program():
        import mxnet as mx
        import numpy as np

        first, second = mx.kv.create("dist_sync"), mx.kv.create("dist_sync")
        first.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
        a, b = mx.nd.zeros(3), mx.nd.zeros(4)
        first.init(0, a)
        second.init(0, b)
        first.pushpull(0, mx.nd.ones(3), out=a)
        second.pushpull(0, mx.nd.ones(4), out=b)
        assert np.array_equal(a.asnumpy(), [-2] * 3) and np.array_equal(b.asnumpy(), [2] * 4)
        second.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
        second.pushpull(0, mx.nd.ones(4), out=b)
        assert np.array_equal(b.asnumpy(), [1] * 4)
        print("both right")

    outputs = worker_outputs(run_cluster(program, **UNMODIFIED))
    assert all("both right" in output for output in outputs)


@pytest.mark.slow
def test_asynchronous_store():
    def program():
        import mxnet as mx

        import mxnet_hipress  # noqa: F401

        kv = mx.kv.create("dist_async_hipress")
        weight = mx.nd.zeros(10)
        kv.init(0, weight)
        try:
            kv.push(0, weight)
        except mx.MXNetError as error:
            assert "call set_optimizer before push" in str(error)
        else:
            raise AssertionError("pushed without an optimizer")
        try:
            kv.set_gradient_compression({"type": "tbq", "plan": "auto"})
        except mx.MXNetError as error:
            assert "plan auto needs synchronous updates" in str(error)
        else:
            raise AssertionError("plan auto without sums")
        kv.barrier()
        if kv.rank == 0:
            kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
        kv.barrier()
        for _ in range(10 + 10 * kv.rank):  # workers need not push equally often
            kv.push(0, mx.nd.ones(10))
        kv.pull(0, weight)
        assert (weight.asnumpy() <= -10 * (kv.rank + 1)).all()  # at least the own pushes
        kv.barrier()
        kv.pull(0, weight)
        assert (weight.asnumpy() == -30).all()
        print("async right")

    outputs = worker_outputs(run_cluster(program))
    assert all("async right" in output for output in outputs)


def test_a_file_of_states_is_whole_or_refused(tmp_path):
    import pickle

    import mxnet as mx

    from mxnet_hipress import _states

    path = tmp_path / "states"
    _states.write(str(path), [b"one", b"two"], True, of_servers=True)
    assert _states.read(str(path), of_servers=True) == ([b"one", b"two"], True)
    whole = path.read_bytes()
    foreign = "holds no optimizer states of a distributed store"
    for content in (b"", whole[:20], b"text", pickle.dumps([1]), pickle.dumps({"format": 2})):
        path.write_bytes(content)
        with pytest.raises(mx.MXNetError, match=foreign):
            _states.read(str(path))
    with pytest.raises(mx.MXNetError, match="cannot write the optimizer states .*: Is a directory"):
        _states.write(str(tmp_path), [], False)
    assert [entry.name for entry in tmp_path.iterdir()] == ["states"]
