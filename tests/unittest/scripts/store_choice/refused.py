"""Settings that type auto refuses."""

from common import show
from hipress.runtime.node import Node

said = []
node = Node()
for config, change in (
    ({"bits": 3}, None),
    ({"plan": "auto"}, None),
    ({}, "async"),
    ({}, None),
    ({}, None),
    ({"min_size": 9}, None),
):
    try:
        if change == "async":
            node.set_sync(False)
        node.set_gradient_compression({"type": "auto", **config})
    except Exception as error:
        said.append(str(error))
    finally:
        if change == "async":
            node.set_sync(True)
show(said=said)
