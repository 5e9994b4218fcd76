"""Steps of 8 billion weights with FSDP2 and HSDP on two hosts of eight GPUs, simulated.

The model is Llama 3.1 8B, or LoRA adapters of rank 16 on all its linear layers. Each step is
simulated on links of `--rates` and on links without a limit, uncompressed and with `compress_fsdp`.
Codecs have the measured speed of an H200's kernels (benchmarks/results/cuda.json) or of this
project's test machine's cores (codecs-speed.json). The other numbers are assumptions, and
`ASSUMPTIONS` lists them. It needs no root and takes seconds.

FSDP2 gathers the weights of each module before its forward pass and again before its backward pass.
On a mesh of all GPUs, these bytes and the gradients cross the link between the hosts. With HSDP,
weights are gathered inside a host, and only gradients cross. `gather="differences"` is simulated
as if `compress_fsdp` supported it on GPUs, where it raises an error today.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.common.options import Output, Quick, Rates
from benchmarks.common.results import PUBLISHED, Record, console
from hipress.base import units
from hipress.planning.cluster import Cluster
from hipress.simulator.event_simulation import Run, Tasks

HOSTS, GPUS = 2, 8
RANKS = HOSTS * GPUS
FLOPS = 989e12
"""Operations per second of an H100 or H200 with dense bfloat16 matrices, by its data sheet."""
UTILIZATION = 0.4
"""Share of FLOPS that the model reaches on an unlimited network (MFU)."""
TOKENS = 8192
"""Tokens per GPU and step: one sequence."""
NVLINK, PCIE = 300e9, 50e9
"""Bytes per second of a GPU to other GPUs of its host, and to host memory, in each direction."""
CORES = 8
"""Cores of a host that run codecs, one for each GPU."""
LORA_RANK = 16
BYTES_PER_ELEMENT = 0.5 + 8 / 1024
"""Bytes of `maxmin` with 4 bits: per block of 1,024 elements also its minimum and its maximum."""
WEIGHT = 2
"""Bytes of a gathered weight: bfloat16."""
CHUNK = 4 << 20
"""Bytes that a host sends as one message of the simulation."""
AHEAD = 2
"""Modules whose weights are gathered before they are needed."""

ASSUMPTIONS = f"""\
- {HOSTS} hosts of {GPUS} GPUs. A host has one link, which all its GPUs share in both directions. It
  carries payloads at its full rate. Inside a host each GPU has {NVLINK / 1e9:.0f} GB/s.
- One sequence of {TOKENS:,} tokens per GPU and step. Weights are gathered in bfloat16.
- GPUs reach {UTILIZATION:.0%} of {FLOPS / 1e12:.0f} TFLOP/s, and recompute no activations.
  Optimizers take no time.
- Uncompressed collectives of all GPUs run in one ring, which crosses each link once.
- `maxmin` with 4 bits of float32 gradients. Its kernels have an H200's measured speed, and the GPU
  does not compute the model while they run. On the host, {CORES} cores each have the measured speed
  of one core of an AMD EPYC, and gradients are copied at {PCIE / 1e9:.0f} GB/s.
- Replicas of gather="differences" are in host memory."""


@dataclass(frozen=True)
class Module:
    """Parameters that are gathered and reduced together, and the computation with them."""

    name: str
    trained: int
    """Weights that have gradients."""
    frozen: int
    """Weights that have none."""
    forward: float
    """Operations of one GPU's forward pass."""
    backward: float

    @property
    def weights(self) -> int:
        """All weights of the module."""
        return self.trained + self.frozen


@dataclass(frozen=True)
class Method:
    """Way to shard the model and to exchange it between the hosts."""

    name: str
    hybrid: bool = False
    """Whether the model is sharded inside each host, and replicated on all (HSDP)."""
    compressed: bool = False
    """Whether gradients between hosts are compressed."""
    differences: bool = False
    """Whether weights are gathered as differences, once a step."""
    on_host: bool = False
    """Whether the codec runs on the host's cores instead of the GPU."""
    gradient: int = 4
    """Bytes of an uncompressed gradient."""


METHODS = (
    Method("FSDP2 over 16 GPUs, float32 gradients"),
    Method("FSDP2 over 16 GPUs, bfloat16 gradients", gradient=2),
    Method("FSDP2, `compress_fsdp`", compressed=True),
    Method('FSDP2, `compress_fsdp` with `gather="differences"`', compressed=True, differences=True),
    Method("HSDP, float32 gradients", hybrid=True),
    Method("HSDP, bfloat16 gradients", hybrid=True, gradient=2),
    Method("HSDP, `compress_fsdp` with `replicate_group`", hybrid=True, compressed=True),
    Method('HSDP, also with `encode_on="host"`', hybrid=True, compressed=True, on_host=True),
)


def llama(lora: bool = False) -> list[Module]:
    """Return the modules of Llama 3.1 8B in forward order, as torchtitan shards them.

    Args:
        lora: Whether only adapters of rank ``LORA_RANK`` of all linear layers of blocks are
            trained. Frozen weights have no gradients, so their backward pass is as long as the
            forward pass instead of twice as long.
    """
    width, hidden, layers, vocabulary, key_width = 4096, 14336, 32, 128256, 1024
    linear = [(width, width), (width, key_width), (width, key_width), (width, width)]
    linear += [(width, hidden), (width, hidden), (hidden, width)]
    matrices = sum(rows * columns for rows, columns in linear)
    adapters = LORA_RANK * sum(rows + columns for rows, columns in linear) if lora else 0
    # Causal attention computes half of the products of queries and keys, and of those with values.
    attention = 2.0 * TOKENS * TOKENS * width
    products = 2.0 * TOKENS * (matrices + adapters) + attention
    whole = matrices + 2 * width
    back = products + attention + 2.0 * TOKENS * adapters if lora else 2 * products
    shares = (adapters, whole) if lora else (whole, 0)
    found = [_end("embedding", vocabulary * width, 0.0, lora)]
    found += [Module(f"block {i}", *shares, products, back) for i in range(layers)]
    found.append(_end("output", (vocabulary + 1) * width, 2.0 * TOKENS * vocabulary * width, lora))
    return found


def _end(name: str, weights: int, forward: float, frozen: bool) -> Module:
    shares = (0, weights) if frozen else (weights, 0)
    return Module(name, *shares, forward, forward if frozen else 2 * forward)


# Bytes that one host sends to the other, per step and module.


def ring_bytes(payload: float) -> float:
    """Return a link's bytes of a ring of all ranks that gathers or reduce-scatters ``payload``."""
    return payload * (RANKS - 1) / RANKS


def exchanged_bytes(payload: float) -> float:
    """Return a host's bytes if each of its ranks exchanges ``payload`` with all other ranks.

    In a compressed reduce-scatter, each rank sends a part of 1/16 to each rank of the other host.
    In a gather, each rank sends its part of 1/16 to each rank of the other host.
    """
    return payload * GPUS * (RANKS - GPUS) / RANKS


def weight_bytes(method: Method, module: Module) -> tuple[float, float]:
    """Return the bytes of the gathers before the forward pass, and before the backward pass."""
    if method.hybrid:
        return 0.0, 0.0
    if method.differences:
        return exchanged_bytes(module.trained * BYTES_PER_ELEMENT), 0.0
    return (ring_bytes(module.weights * WEIGHT),) * 2


def gradient_bytes(method: Method, module: Module) -> float:
    """Return the bytes of the reduction of a module's gradients."""
    if method.compressed:
        payload = module.trained * BYTES_PER_ELEMENT
        # Between two hosts, a rank sends half of its shard, and its half of the sum.
        return payload if method.hybrid else exchanged_bytes(payload)
    payload = module.trained * method.gradient
    return payload if method.hybrid else ring_bytes(payload)


@dataclass(frozen=True)
class CodecSpeeds:
    """Elements per second of one rank's codec."""

    encode: float
    decode: float
    add: float
    """Decoding payloads and adding them, by their elements."""


def speeds(on_host: bool) -> CodecSpeeds:
    """Return the measured speeds of `maxmin`, by one GPU or by one core."""
    if on_host:
        table = json.loads((PUBLISHED / "codecs-speed.json").read_text())["tables"][""]
        (row,) = (row for row in table["rows"] if row[0] == "maxmin, 4 bits")
        heads = ("16 Mi: encode", "decode", "sum of 8")
        encode, decode, total = (float(row[table["heads"].index(head)]) for head in heads)
        add = 8 * total  # the table counts the result's bytes
    else:
        rows = json.loads((PUBLISHED / "cuda.json").read_text())["rows"]
        (row,) = (row for row in rows if row["codec"] == "maxmin")
        encode, decode, add = (row[head] for head in ("encode", "decode", "decode-add"))
    return CodecSpeeds(*(each * 1e9 / 4 for each in (encode, decode, add)))


GPU, CPU, COPY, INSIDE = range(4)
"""Resources of a host, each with one queue: its GPUs, which all do the same at the same time, one
core for each, their copies to and from host memory, and the network inside the host. The link
between the hosts is that of GPU."""
URGENT, GATHER, REDUCE, LATER = range(4)
"""Priorities: codecs, gathers, gradients, and the model's computation."""


class StepTasks:
    """Tasks of one host in a step. Both hosts do the same, so a host receives what it sends."""

    def __init__(self, modules: Sequence[Module], method: Method) -> None:
        self.tasks, self.method = Tasks(), method
        self.codec, self.core = speeds(method.on_host), CPU if method.on_host else GPU
        self.computed: list[int] = []
        """Computations of the model so far, in order."""
        self.gathered: list[int] = []
        self.reduced: list[int] = []
        self.sent = {GATHER: 0.0, REDUCE: 0.0}
        """Bytes between the hosts, of weights and of gradients."""
        for module in modules:
            self._use(module, module.forward, forward=True)
        for module in reversed(modules):
            self._use(module, module.backward, forward=False)
            if module.trained:
                self._reduce(module)

    def _use(self, module: Module, operations: float, forward: bool) -> None:
        """Gather a module's weights, and compute with them."""
        after = self.gathered[-1:] + self.computed[: len(self.computed) + 1 - AHEAD][-1:]
        self.gathered.append(self._gather(module, after, forward))
        inputs = [self.gathered[-1], *self.computed[-1:]]
        seconds = operations / (FLOPS * UTILIZATION)
        self.computed.append(self.tasks.compute(GPU, seconds, LATER, inputs))

    def _gather(self, module: Module, after: Sequence[int], forward: bool) -> int:
        before_forward, before_backward = weight_bytes(self.method, module)
        payload = before_forward if forward else before_backward
        whole = module.weights * WEIGHT
        if not self.method.differences:
            if self.method.hybrid:
                return self._inside(whole, after)
            return self._send(payload, GATHER, after)
        # The replica is copied to the GPU, and, if it changes, back.
        copied = self.tasks.compute(COPY, whole / PCIE, URGENT, after)
        if not payload:
            return copied
        encoded = self._code(module.trained / RANKS / self.codec.encode, after)
        arrived = self._send(payload, GATHER, [encoded])
        decoded = self._code(module.trained / self.codec.add, [copied, arrived])
        self.tasks.compute(COPY, module.trained * WEIGHT / PCIE, LATER, [decoded])
        return decoded

    def _reduce(self, module: Module) -> None:
        method, codec, count = self.method, self.codec, module.trained
        after = [self.computed[-1]]
        if method.hybrid:
            after, count = [self._inside(count * method.gradient, after)], count / GPUS
        payload = gradient_bytes(method, module)
        if not method.compressed:
            self.reduced.append(self._send(payload, REDUCE, after))
            return
        if method.on_host:
            after = [self.tasks.compute(COPY, count * method.gradient / PCIE, URGENT, after)]
        encoded = self._code(count / codec.encode, after)
        if not method.hybrid:
            arrived = self._send(payload, REDUCE, [encoded])
            self.reduced.append(self._code(count / codec.add, [arrived]))
            return
        # Each rank merges its half of the shard, and encodes the sum for its counterpart.
        arrived = self._send(payload / 2, REDUCE, [encoded])
        merged = self._code(count / codec.add + count / 2 / codec.encode, [arrived])
        decoded = self._code(count / codec.decode, [self._send(payload / 2, REDUCE, [merged])])
        if method.on_host:
            decoded = self.tasks.compute(COPY, count * method.gradient / PCIE, URGENT, [decoded])
        self.reduced.append(decoded)

    def _code(self, seconds: float, after: Sequence[int]) -> int:
        return self.tasks.compute(self.core, seconds, URGENT, after)

    def _inside(self, payload: float, after: Sequence[int]) -> int:
        """Gather or reduce-scatter inside the host."""
        return self.tasks.compute(INSIDE, payload * (GPUS - 1) / GPUS / NVLINK, URGENT, after)

    def _send(self, payload: float, priority: int, after: Sequence[int]) -> int:
        """Send a payload to the other host, and return the arrival of the whole."""
        self.sent[priority] += payload
        pieces = max(1, math.ceil(payload / CHUNK))
        arrivals = []
        for _ in range(pieces):
            message = self.tasks.send(GPU, payload / pieces, priority, after)
            arrivals.append(self.tasks.recv(GPU, priority))
            self.tasks.join(message, arrivals[-1])
        return self.tasks.wait(GPU, 0.0, arrivals)

    def seconds(self, bandwidth: float) -> float:
        """Return the seconds of the step on links of so many bytes per second."""
        run = Run(self.tasks, Cluster(bandwidth, threads=1, task=0.0), hosts=4)
        return max(run.end)


def main(rates: Rates = "10gbit 25gbit", output: Output = "fsdp-simulated", quick: Quick = False):
    record = Record(output, {"rates": rates})
    record["assumptions"] = ASSUMPTIONS
    console.print(ASSUMPTIONS, highlight=False)
    heads = ["", "GB of weights", "GB of gradients", "unlimited: s"]
    for rate in rates.split():
        link = rate.replace("gbit", " Gbit/s")
        heads += [f"{link}: s", f"{link}: times unlimited"]
    for key, lora in (("full", False), ("lora", True)):
        modules = llama(lora)
        modules = [modules[0], *modules[1:3], modules[-1]] if quick else modules
        rows, base = [], StepTasks(modules, METHODS[0]).seconds(math.inf)
        for method in METHODS:
            step = StepTasks(modules, method)
            row = [method.name, *(f"{step.sent[of] / 1e9:.2f}" for of in (GATHER, REDUCE))]
            row.append(f"{step.seconds(math.inf):.2f}")
            for rate in rates.split():
                seconds = step.seconds(units.rate(rate))
                row += [f"{seconds:.2f}", f"{seconds / base:.2f}"]
            rows.append(row)
        count = sum(module.weights for module in modules)
        trained = sum(module.trained for module in modules)
        title = f"a simulated step, {count / 1e9:.2f} billion weights, {trained / 1e6:,.0f} million"
        record.table(heads, rows, f"{title} trained", key)
    record.save()
