"""Worker 0 pushes a slow gradient; a barrier waits for it and for the pulls behind it."""

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
