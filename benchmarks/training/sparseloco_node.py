"""One rank of sparseloco.py, which trains and reports its sent bytes and the codes of positions."""

from __future__ import annotations

import math
import os
import sys

import numpy as np
import torch
import torch.distributed as dist

import hipress.torch
from benchmarks.common.timing import best_seconds, options, report
from harness import ROOT
from hipress.compression import compiler
from hipress.compression.compiler.backends.numpy.gaps import pack_gaps
from hipress.compression.compiler.backends.numpy.packing import ascending_bytes

sys.path.insert(0, str(ROOT / "examples" / "torch"))

import text


class Mirror:
    """Encoder that encodes all synchronized values of this rank a second time.

    Attributes:
        payloads: Bytes of each synchronization's payloads.
        bits: Bits of all positions so far, by code.
    """

    def __init__(
        self, model: torch.nn.Module, outer: dict[str, torch.Tensor], sync_every: int
    ) -> None:
        self.model, self.outer, self.sync_every, self.step = model, outer, sync_every, 0
        self.codecs = {n: hipress.Compressor("sparseloco") for n, _ in model.named_parameters()}
        self.payloads: list[int] = []
        self.bits = {"fixed": 0.0, "coded": 0.0, "entropy": 0.0}
        self.sent = 0

    def after_step(self) -> None:
        self.step += 1
        if self.step % self.sync_every == 0:
            self.encode()

    def encode(self) -> None:
        total = 0
        for name, parameter in self.model.named_parameters():
            gradient = (self.outer[name] - parameter).detach().flatten().numpy()
            codec, n = self.codecs[name], gradient.size
            payload = codec.encode(gradient)
            total += len(payload)
            index = np.flatnonzero(codec.decode(payload, n)).astype(np.int32)
            k = index.size
            self.sent += k
            self.bits["fixed"] += 8 * ascending_bytes(k, n)
            self.bits["coded"] += 8 * (4 + len(pack_gaps(index, n)))
            combinations = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            self.bits["entropy"] += combinations / math.log(2)
        self.payloads.append(total)


def main() -> None:
    args = options()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = text.Text()
    model = text.make("gpt", len(data.characters), args.width, args.layers)
    inner = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    diloco = hipress.torch.DiLoCo.sparseloco(
        model, inner, sync_every=args.sync_every, topology="star"
    )
    fragment, stats = diloco._outer.fragments[0], diloco.compression.engine.member.stats
    mirror = Mirror(model, fragment.outer, args.sync_every) if dist.get_rank() == 1 else None
    if mirror:
        inner.register_step_post_hook(lambda *_: mirror.after_step())  # before DiLoCo's hook
    generator = torch.Generator().manual_seed(dist.get_rank())
    sent = []
    with diloco:
        for step in range(1, args.synchronizations * args.sync_every + 1):
            inner.zero_grad()
            text.loss_of(model, data.batch(args.batch_size, generator)).backward()
            if step % args.sync_every:
                inner.step()
                continue
            dist.barrier()
            before = stats()["data_bytes_sent"]
            inner.step()
            dist.barrier()
            sent.append(stats()["data_bytes_sent"] - before)
    about = {}
    if mirror:
        largest = max(model.named_parameters(), key=lambda pair: pair[1].numel())[0]
        gradient = (fragment.outer[largest] - model.get_parameter(largest)).detach().flatten()
        gradient += torch.from_numpy(np.asarray(mirror.codecs[largest].residual))
        about = {
            "weights": sum(p.numel() for p in model.parameters()),
            "parameters": len(mirror.codecs),
            "payloads": mirror.payloads,
            "bits": {name: bits / mirror.sent for name, bits in mirror.bits.items()},
            "speed": speeds(gradient.numpy(), args.seconds),
            "largest": gradient.numel(),
        }
    report(rank=dist.get_rank(), sent=sent, **about)
    dist.barrier()
    os._exit(0)  # Gloo's threads may outlive the group; the results are printed


def speeds(gradient: np.ndarray, seconds: float) -> dict[str, tuple[float, float]]:
    """Return GB/s of gradient, encoded and decoded with each code of positions."""
    source = (compiler.SPECS / "sparseloco.cll").read_text()
    found = {}
    for name, form in (("fixed", "pack_ascending"), ("coded", "pack_gaps")):
        program = compiler.optimize(compiler.read_program(source.replace("pack_gaps", form)))
        codec, states = compiler.Compiled(program), {}
        payload = codec.encode(gradient, states)
        encode = best_seconds(lambda c=codec, s=states: c.encode(gradient, s), seconds)
        decode = best_seconds(lambda c=codec, p=payload: c.decode(p, gradient.size), seconds)
        found[name] = gradient.nbytes / encode / 1e9, gradient.nbytes / decode / 1e9
    return found


if __name__ == "__main__":
    main()
