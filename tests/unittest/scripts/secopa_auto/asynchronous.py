"""Asynchronous updates and plan auto refuse each other."""

from hipress.runtime.node import HipressError, Node

node = Node()


def refused(function, *arguments):
    try:
        function(*arguments)
    except HipressError as error:
        return str(error)
    raise AssertionError("not refused")


wish = {"type": "tbq", "plan": "auto"}
node.set_sync(False)
first = refused(node.set_gradient_compression, wish)
assert first.startswith("plan auto needs synchronous updates") and node.auto is None
node.set_gradient_compression({"type": "tbq"})
node.set_sync(True)
node.set_gradient_compression(wish)
assert refused(node.set_sync, False) == first
node.set_sync(True)
node.stop()
