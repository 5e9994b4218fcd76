"""Counts in how many steps a worker waits while methods are tried."""

from common import make, show, train
from hipress.autotune import store
from known_times import measure_store

lines = measure_store(
    lambda method_name: {"uncompressed": 0.1, "bf16": 0.09}.get(method_name, 0.01), watched=False
)
waits, before_push = [], store.StoreController.before_push


def counted(self, keys, settle):
    before_push(self, keys, lambda: (waits.append(self._frontend.step), settle()))


store.StoreController.before_push = counted
node = make(sees=False)
train(node, 2)
steps, begun = 0, len(waits)
while not node.is_settled and steps < 400:
    train(node, 1)
    steps += 1
show(waits=len(waits) - begun, steps=steps, lines=lines)
