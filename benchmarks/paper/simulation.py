"""Simulator and paper: 16 hosts of 8 GPUs, and the published range of 17.2% to 69.5%.

Bai et al. (SOSP 2021) report that HiPress trains six models 17.2% to 69.5% faster than the
compression-enabled systems of the time: co-located parameter servers with onebit on the CPU
(BytePS), and a ring that gathers DGC payloads (Horovod). The simulator runs all of them with the
published planner's constants. What it assumes is printed with the result; times of computation are
assumptions, so only the order of magnitude can be expected to agree.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.common.options import Models, Quick
from benchmarks.common.results import Record, console
from hipress.planning import planner, profiles
from hipress.planning.cluster import Codec, Costs
from hipress.planning.curve import Curve
from hipress.planning.plan import Decision, GradientSize
from hipress.simulator import models
from hipress.simulator.step import Options, simulate

NODES, DEVICES = 16, 8
RATIO = {"onebit": 1 / 32, "dgc": 0.002}  # DGC: 0.1% of the values, and as many indices
SLOWDOWN = {"onebit": 35.6, "dgc": 5.1}
BYTEPS_PART = 1_024_000  # elements: BytePS cuts gradients into 4 MB
BYTEPS_LEAST = 16_384  # elements: BytePS compresses from 64 KiB on

ASSUMPTIONS = f"""\
- {NODES} hosts of {DEVICES} V100s. Gradients of a host are summed over links of 60 GB/s before, and
  copied back after; so in the baselines.
- Links: the published ring step's constants, 4.7 GB/s (37.6 of 100 Gbit/s) and 203 us a message.
- Codecs: the published encode and decode curves; payloads of 1/32 (onebit) and 0.2% (DGC) of the
  size; each payload of a merge is decoded by itself; one codec task of a host at a time.
- The baselines' codecs take more time per element by the factors that the paper gives for those
  it compares with: onebit on the CPU {SLOWDOWN["onebit"]:g}, DGC {SLOWDOWN["dgc"]:g}.
- Baseline 1: co-located servers, parts of 4 MB. Baseline 2: a ring that gathers payloads of whole
  gradients. Both compress what has 64 KiB or more (BytePS's default), overlap with the backward
  pass and send the first layers first.
- HiPress: CaSync-PS against baseline 1, CaSync-Ring against baseline 2, both with a SeCoPa plan.
  Batching of small codec tasks is not simulated.
- Computation: counted operations over an assumed speed of a V100 in float32 (10^12/s):
  {", ".join(f"{k} {v:g}" for k, v in models.TFLOPS.items())}."""


def codec(profile, kind: str, slowdown: float = 1.0) -> Codec:
    """Return the published curves for a codec of another ratio, slowed down."""
    ratio = RATIO[kind]
    scaled = replace(profile, ratio=ratio)
    base = scaled.costs().compressed

    def slow(curve: Curve) -> Curve:
        return Curve(curve.w * slowdown, curve.b, curve.o)  # per element; the start costs the same

    parts = {op: slow(getattr(base, op)) for op in ("encode", "decode", "merge")}
    return replace(base, name=kind, **parts)


def seconds(model, topology: str, used: Codec, cluster, plan=None) -> float:
    """Return the simulated seconds of one step."""
    plain = Codec("none", 4.0)
    return simulate(model, Costs(plain, used), cluster, Options(topology, NODES), plan).seconds


def main(networks: Models = "", quick: Quick = False) -> None:
    if quick:
        networks = "vgg19"
    networks = networks or " ".join(models.names())
    record = Record("paper", locals())
    record["assumptions"] = ASSUMPTIONS
    profile = profiles.load("sosp21")
    cluster = replace(profile.cluster(), devices=DEVICES)
    console.print(ASSUMPTIONS, highlight=False)
    cells, rows = [], []
    for name in networks.split():
        model = models.load(name)
        gradients = [GradientSize(layer.name, layer.size) for layer in model.layers]
        whole = {g.name: Decision(g.size >= BYTEPS_LEAST, 1) for g in gradients}
        parts = {
            g.name: Decision(g.size >= BYTEPS_LEAST, -(-g.size // BYTEPS_PART)) for g in gradients
        }
        plans = {}
        for topology, kind in (("PS", "onebit"), ("RING", "dgc")):
            made = planner.make(gradients, topology, NODES, profile, ratio=RATIO[kind])
            plans[topology] = {c.gradient.name: c.decision for c in made.choices}
        raw = seconds(model, "ring", Codec("none", 4.0), cluster)
        slow1, slow2 = (codec(profile, kind, SLOWDOWN[kind]) for kind in ("onebit", "dgc"))
        fast1, fast2 = (codec(profile, kind) for kind in ("onebit", "dgc"))
        base1 = seconds(model, "colocated", slow1, cluster, parts)
        ours1 = seconds(model, "colocated", fast1, cluster, plans["PS"])
        base2 = seconds(model, "allgather", slow2, cluster, whole)
        ours2 = seconds(model, "ring", fast2, cluster, plans["RING"])
        compute = sum(model.forward) + sum(model.backward)
        row = (name, compute, raw, base1, ours1, base1 / ours1 - 1, base2, ours2, base2 / ours2 - 1)
        rows.append(row)
        shown = [f"{v:.1%}" if i in (5, 8) else f"{1e3 * v:.1f}" for i, v in enumerate(row) if i]
        cells.append([name, *shown])
    heads = [
        "model",
        "compute",
        "none (ring)",
        "co-sited onebit",
        "CaSync-PS",
        "faster",
        "ring DGC",
        "CaSync-Ring",
        "faster",
    ]
    title = "step in ms, simulated; published range of improvements: 17.2% to 69.5%"
    record.table(heads, cells, title)
    record["rows"] = rows
    record.save()
