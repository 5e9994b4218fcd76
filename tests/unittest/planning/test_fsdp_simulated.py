"""Bytes and times of the simulated FSDP2 steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.planning.sharding import (
    BYTES_PER_ELEMENT,
    FLOPS,
    GATHER,
    GPUS,
    HOSTS,
    METHODS,
    RANKS,
    REDUCE,
    UTILIZATION,
    Method,
    StepTasks,
    exchanged_bytes,
    gradient_bytes,
    llama,
    weight_bytes,
)
from hipress.compression.compressor import Compressor
from hipress.planning.cluster import HEADER
from hipress.topology import Op, topologies
from hipress.topology.all_gather import all_gather

FLAT, HYBRID = Method("FSDP2"), Method("HSDP", hybrid=True)
OURS = Method("FSDP2", compressed=True, differences=True)
RATE = 1.25e9


def sent_to_other_host(graph, per_host: int) -> float:
    """Return the payloads' elements that rank 0's host sends to other hosts."""
    return sum(
        graph.partitions[task.partition].count
        for node, program in graph.tasks.items()
        for task in program
        if task.op == Op.SEND and node.rank // per_host == 0 != task.peer.rank // per_host
    )


def test_model_has_the_published_number_of_weights():
    assert sum(module.weights for module in llama()) == 8_030_261_248
    lora = llama(lora=True)
    assert sum(module.frozen for module in lora) == 8_030_261_248
    assert sum(module.trained for module in lora) == 32 * 16 * 81920


def test_forward_pass_needs_two_operations_per_weight_and_attention():
    weights = sum(module.weights for module in llama()[1:])
    operations = sum(module.forward for module in llama())
    attention = 32 * 2 * 8192 * 8192 * 4096
    assert operations == pytest.approx(2 * 8192 * weights + attention, rel=1e-3)
    assert sum(module.backward for module in llama()) == pytest.approx(2 * operations)


def test_fsdp2_gathers_weights_twice_a_step():
    step, weights = StepTasks(llama(), FLAT), 8_030_261_248
    assert step.sent[GATHER] == pytest.approx(2 * 2 * weights * 15 / 16)
    assert step.sent[REDUCE] == pytest.approx(4 * weights * 15 / 16)


@pytest.mark.parametrize("method", [each for each in METHODS if each.hybrid])
def test_with_hsdp_only_gradients_cross_hosts(method):
    step = StepTasks(llama(), method)
    size = BYTES_PER_ELEMENT if method.compressed else method.gradient
    assert step.sent[GATHER] == 0
    assert step.sent[REDUCE] == pytest.approx(size * 8_030_261_248)


def test_differences_of_frozen_weights_are_not_sent():
    for module in llama(lora=True):
        assert weight_bytes(OURS, module) == (
            exchanged_bytes(module.trained * BYTES_PER_ELEMENT),
            0,
        )
        assert sum(weight_bytes(FLAT, module)) == 2 * 2 * module.weights * 15 / 16


def test_bytes_between_hosts_are_those_of_the_graphs():
    collectives = pytest.importorskip("hipress.torch.executors.collectives", exc_type=ImportError)
    part, module = 4096, llama()[1]
    scale = module.trained / (RANKS * part) * BYTES_PER_ELEMENT
    gather = sent_to_other_host(all_gather(part, RANKS), GPUS)
    assert weight_bytes(OURS, module)[0] == pytest.approx(gather * scale)
    reduce = sent_to_other_host(collectives.reduce_scatter(RANKS * part, part, RANKS), GPUS)
    assert gradient_bytes(OURS, module) == pytest.approx(reduce * scale)
    between = sent_to_other_host(topologies.build("ps", part, HOSTS, HOSTS), 1)
    hybrid = Method("HSDP", hybrid=True, compressed=True)
    scale = module.trained / part * BYTES_PER_ELEMENT  # of the shards of all GPUs of a host
    assert gradient_bytes(hybrid, module) == pytest.approx(between * scale)


def test_codec_has_the_assumed_bytes_per_element():
    payload = Compressor("maxmin", bits=4).encode(np.ones(1 << 20, np.float32))
    assert len(payload) == BYTES_PER_ELEMENT * (1 << 20)
    assert HEADER < 1e-3 * len(payload), "headers are not simulated"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("lora", [False, True])
def test_step_takes_at_least_its_computation_and_its_bytes(method, lora):
    modules = llama(lora)
    step = StepTasks(modules, method)
    operations = sum(module.forward + module.backward for module in modules)
    compute = operations / (FLOPS * UTILIZATION)
    unlimited, limited = step.seconds(math.inf), step.seconds(RATE)
    assert compute <= unlimited < compute + 0.5
    assert max(unlimited, sum(step.sent.values()) / RATE) <= limited
    assert limited < unlimited + sum(step.sent.values()) / RATE * 1.1 + 0.1
