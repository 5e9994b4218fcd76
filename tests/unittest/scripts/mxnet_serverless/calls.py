"""Makes each call of a kvstore that there is without servers."""

import mxnet as mx
from mxnet.base import MXNetError

import mxnet_hipress

mxnet_hipress.install()
kv = mx.kv.create("dist_sync")
kv.set_gradient_compression({"type": "2bit", "threshold": 0.5, "topology": "ring"})
workers, rank = kv.num_workers, kv.rank
assert kv.num_servers == 0
shape = (40, 50)
kv.init(3, mx.nd.ones(shape) * (7 + rank))
kv.init(9, mx.nd.zeros((5,)))
out = mx.nd.zeros(shape)
kv.pull(3, out=out)
assert (out.asnumpy() == 7).all()
a, b = mx.nd.zeros(shape), mx.nd.zeros(shape)
for _ in range(3):
    # Two device arrays are summed first; 0.625 leaves a residual.
    kv.push(3, [mx.nd.ones(shape) * 0.5, mx.nd.ones(shape) * 0.5])
    kv.pull(3, out=[a, b])
    assert (a.asnumpy() == b.asnumpy()).all()
    kv.pull(3, out=b)
    assert (a.asnumpy() == b.asnumpy()).all()
    kv.push(9, mx.nd.ones((5,)))
    small = mx.nd.zeros((5,))
    kv.pull(9, out=small)
    assert (small.asnumpy() == workers).all()  # below min_size
    kv.pull(9, out=small)
    assert (small.asnumpy() == workers).all()
x = mx.nd.ones((5,)) * 2
kv.pushpull(9, x)
assert (x.asnumpy() == 2 * workers).all()
kv.barrier()


def refused(call, *words):
    try:
        call()
    except MXNetError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError(words)


sparse = mx.nd.sparse.zeros("row_sparse", (4, 2))
refused(lambda: kv.init(11, sparse), "row_sparse", "topology ring")
refused(lambda: kv.set_gradient_compression({"topology": "tree"}), "before the first key")
refused(lambda: kv.set_gradient_compression({"topology": "mesh"}), "there are ps")
refused(lambda: kv.save_optimizer_states("x"), "set_optimizer")
