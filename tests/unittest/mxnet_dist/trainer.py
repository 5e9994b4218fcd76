"""Gluon's Trainer: where it updates, steps of dense and sparse parameters, states, errors."""

import os

import mxnet as mx
import numpy as np
from checks import arguments, job

CONTEXTS = [mx.cpu(0), mx.cpu(1)]


def parameter(name, shape, init="ones", ctx=CONTEXTS, **options):
    """Return an initialized parameter."""
    param = mx.gluon.Parameter(name, shape=shape, **options)
    param.initialize(ctx=ctx, init=init)
    return param


def start(trainer):
    """Set the Trainer's store up and wait for the weights that it pulls. MXNet's store may answer a
    pull with what is pushed after it."""
    trainer._init_kvstore()
    trainer._init_params()
    mx.nd.waitall()


def backward(checks, param, factor=1):
    """Give the parameter the gradient (rank + 1) * factor on each device."""
    for ctx in param.list_ctx():
        with mx.autograd.record():
            if param._stype == "default":
                weight = param.data(ctx)
            else:
                weight = param.row_sparse_data(mx.nd.arange(param.shape[0], ctx=ctx))
            loss = (checks.rank + 1) * factor * weight
        loss.backward()


def try_types(checks):
    """Try which parameters and which update_on_kvstore go together."""
    for number, (stype, grad_stype, asked, expected) in enumerate(
        [
            ("default", "default", None, True),
            ("default", "default", True, True),
            ("default", "default", False, False),
            ("default", "row_sparse", None, True),
            ("default", "row_sparse", True, True),
            ("default", "row_sparse", False, ValueError),
            ("row_sparse", "row_sparse", None, True),
            ("row_sparse", "row_sparse", True, True),
            ("row_sparse", "row_sparse", False, ValueError),
        ]
    ):
        param = parameter(f"p{number}", (10, 1), "zeros", stype=stype, grad_stype=grad_stype)
        trainer = mx.gluon.Trainer(
            [param], "sgd", {"learning_rate": 0.1}, kvstore=checks.kv, update_on_kvstore=asked
        )
        if expected is ValueError:
            checks.refused(f"type {number}", ValueError, trainer._init_kvstore)
        else:
            trainer._init_kvstore()
            assert trainer._kv_initialized and trainer._distributed
            assert trainer._update_on_kvstore is expected, number


def try_step(checks, update_on_kvstore):
    """Make several steps of parameters that are whole, partitioned among the servers, and without a
    gradient. Use the batch size and a parameter's own learning rate as far as the store supports
    them."""
    params = [parameter("a", (10, 1)), parameter("b", (120, 120)), parameter("c", (7,))]
    params.append(parameter("fixed", (3, 3), grad_req="null"))
    optimizer = {"learning_rate": 0.5, "momentum": 0.5}
    trainer = mx.gluon.Trainer(
        params, "sgd", optimizer, kvstore=checks.kv, update_on_kvstore=update_on_kvstore
    )
    if not update_on_kvstore:  # servers get the optimizer, with the batch size, in the first step
        start(trainer)
    weight, momentum = 1.0, 0.0
    for step in range(4):
        for param in params[:3]:
            backward(checks, param)
        trainer.step(4)
        momentum = 0.5 * momentum - 0.5 * 2 * checks.rank_sum() / 4
        weight += momentum
        for param in params[:3]:
            for i, data in enumerate(param.list_data()):
                checks.equal(f"{param.name} step {step} device {i}", data, weight)
    checks.equal("fixed", params[3].data(CONTEXTS[0]), 1)
    return trainer, params


def try_sparse_step(checks):
    """Train row_sparse weights, and dense ones with row_sparse gradients."""
    one = CONTEXTS[:1]
    params = [
        parameter("s", (2, 10), ctx=one, stype="row_sparse", grad_stype="row_sparse"),
        parameter("t", (120, 40), ctx=one, stype="row_sparse", grad_stype="row_sparse"),
    ]
    trainer = mx.gluon.Trainer(params, "sgd", {"learning_rate": 1.0}, kvstore=checks.kv)
    for step in range(3):
        for param in params:
            backward(checks, param)
        # The gradient does not depend on the weight. MXNet's store writes the result of a pull also
        # into the list of lengths that a push of the same key sends. A push that leaves before the
        # weight arrives sends wrong lengths to its servers, and they abort.
        mx.nd.waitall()
        trainer.step(1)
        for param in params:
            rows = mx.nd.arange(param.shape[0])
            weight = 1 - (step + 1) * checks.rank_sum()
            checks.equal(f"{param.name} {step}", param.row_sparse_data(rows), weight)
    refuse_updates_by_hand(checks, trainer)


def refuse_updates_by_hand(checks, trainer):
    """Check that a worker neither sums nor updates where the optimizer runs on the servers."""
    checks.refused("allreduce_grads", AssertionError, trainer.allreduce_grads)
    checks.refused("update", AssertionError, trainer.update, 1)


def try_embedding(checks):
    """Train a dense weight whose gradient has the rows that were looked up."""
    table = mx.gluon.nn.Embedding(50, 30, sparse_grad=True, weight_initializer="ones")
    table.initialize(ctx=CONTEXTS[:1])
    trainer = mx.gluon.Trainer(
        table.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=checks.kv
    )
    expected = np.ones((50, 30), np.float32)
    for step in range(3):
        with mx.autograd.record():
            loss = table(mx.nd.array([0, checks.rank + 1, 49])).sum()
        loss.backward()
        trainer.step(1)
        for rank in range(checks.workers):
            expected[[0, rank + 1, 49]] -= 0.5
        checks.equal(f"embedding {step}", table.weight.data(), expected)


def try_allreduce(checks):
    """Check sums that the script reads before it updates, in steps of other batch sizes."""
    params = [parameter("a", (10, 1)), parameter("b", (120, 120))]
    trainer = mx.gluon.Trainer(
        params, "sgd", {"learning_rate": 1.0}, kvstore=checks.kv, update_on_kvstore=False
    )
    start(trainer)
    weight = 1.0
    for step, batch in enumerate([1, 2, 4]):
        for param in params:
            backward(checks, param)
        trainer.allreduce_grads()
        for param in params:
            for i, grad in enumerate(param.list_grad()):
                checks.equal(f"{param.name} sum {step} device {i}", grad, 2 * checks.rank_sum())
        trainer.update(batch)
        weight -= 2 * checks.rank_sum() / batch
        for param in params:
            checks.equal(f"{param.name} after {step}", param.data(CONTEXTS[1]), weight)


def try_states(checks, folder):
    """Save the momentum of a Trainer that updates by itself, and load it."""
    trainer, params = try_step(checks, update_on_kvstore=False)
    path = f"{folder}/states-{checks.rank}"
    trainer.save_states(path)
    assert os.path.getsize(path) > 0
    before = [param.data(CONTEXTS[0]).copy() for param in params[:3]]

    def three_steps(name):
        for param, value in zip(params, before):
            param.set_data(value)
        trainer.load_states(path)
        for _ in range(3):
            for param in params[:3]:
                backward(checks, param, factor=2)
            trainer.step(4)
        for param in params[:3]:
            checks.keep(f"{name} {param.name}", param.data(CONTEXTS[0]))
        return [param.data(CONTEXTS[0]).asnumpy() for param in params[:3]]

    first, second = three_steps("first"), three_steps("second")
    assert all(np.array_equal(a, b) for a, b in zip(first, second))
    checks.refused("reset", RuntimeError, trainer._reset_kvstore)


def try_update_on_kvstore(checks, folder):
    """Update with the servers' optimizer, and refuse another batch size, which they would not
    receive."""
    trainer, params = try_step(checks, update_on_kvstore=True)
    refuse_updates_by_hand(checks, trainer)
    for param in params[:3]:
        backward(checks, param)
    checks.refused("batch size", UserWarning, trainer.step, 8)
    checks.refused("reset", RuntimeError, trainer._reset_kvstore)


def try_reload(checks, folder):
    """Loading parameters would create the store again, which a distributed one refuses."""
    params = mx.gluon.ParameterDict()
    x = params.get("x", shape=(4, 2), lr_mult=1.0, stype="row_sparse")
    params.initialize(ctx=mx.cpu(0), init="zeros")
    trainer = mx.gluon.Trainer(params, "sgd", {"learning_rate": 0.1}, kvstore=checks.kv)
    path = f"{folder}/params-{checks.rank}"
    params.save(path)
    checks.equal("zeros", x.row_sparse_data(mx.nd.arange(0, 4)), 0)
    assert trainer._kv_initialized and trainer._update_on_kvstore
    mx.nd.waitall()
    checks.refused("load", RuntimeError, params.load, path)


PARTS = {
    "types": lambda checks, folder: try_types(checks),
    "servers": try_update_on_kvstore,
    "states": try_states,
    "allreduce": lambda checks, folder: try_allreduce(checks),
    "sparse": lambda checks, folder: try_sparse_step(checks),
    "embedding": lambda checks, folder: try_embedding(checks),
    "reload": try_reload,
}


def main():
    options = arguments(part="types")
    with job(options) as checks:
        PARTS[options.part](checks, options.folder)


main()
