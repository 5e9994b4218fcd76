"""Prediction of the demo's runs over links that cannot be made here, from its runs on this host.

A step on loopback includes all of the computation and the codecs, because all nodes share this
host. The additional time of the links is simulated with the bytes that each type has sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hipress.planning.cluster import Cluster, Codec, Costs
from hipress.simulator.models import Layer, Model
from hipress.simulator.step import Options, simulate

Records = list[dict[str, Any]]


def layers(hidden: int) -> list[int]:
    """Return the elements of the gradients of train.py's network, from the first layer on."""
    convolutions = [(1, 32), (32, 48), (48, 64)]
    sizes = [size for before, after in convolutions for size in (9 * before * after, after)]
    return [*sizes, 1024 * hidden, hidden, 10 * hidden, 10]


def elements(hidden: int) -> int:
    """Return the number of weights of train.py's network."""
    return sum(layers(hidden))


def predict(
    runs: Mapping[str, Records], nodes: int, bandwidth: float, hidden: int
) -> dict[str, Records]:
    """Return the epochs of each run with their predicted seconds over such links.

    Args:
        runs: Epochs on this host, by compression type.
        nodes: Number of hosts, each with a worker and a server.
        bandwidth: Bytes per second of a host's link, in each direction.
    """
    sizes = layers(hidden)
    found = {}
    for kind, records in runs.items():
        last = records[-1]
        here = last["seconds"] / last["step"]
        # Nothing is synchronized during a backward pass, so the parts of a step do not matter.
        parts = tuple(here / len(sizes) / 2 for _ in sizes)
        named = tuple(Layer(str(index), size) for index, size in enumerate(sizes))
        model = Model("digits", "train.py", 16, named, parts, parts)
        sent = (last["pushed_bytes"] + last["pulled_bytes"]) / last["step"] / 2 / sum(sizes)
        codec = Codec(kind, sent)
        how = Options("ps", nodes, overlap=False)
        step = simulate(model, Costs(codec, codec), Cluster(bandwidth), how).seconds
        found[kind] = [{**record, "seconds": record["step"] * step} for record in records]
    return found
