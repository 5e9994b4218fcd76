"""Entropy stage behind each codec, on gradients of the examples' networks: bits and speed.

The benchmark trains the GPT of the text examples on text (AdamW), and the small CNN on noisy
pictures (SGD), in one process. In each step it encodes all gradients of 1024 elements or more, with
the residuals of previous steps, and counts those of some steps. GB/s are of payload: the time of
the stage alone, the fastest of many runs on 256 Ki elements of the largest gradient. "decode" is
one pass of the decoder; a job makes two of each payload, because it checks it before decoding.
Times of payloads below 48 KiB are mostly chance, and left out.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

import hipress
from benchmarks.codecs.lossless import PARTITION, looked_at, trained
from benchmarks.common.options import Output, Quick
from benchmarks.common.results import Record, verdict
from benchmarks.common.timing import best_seconds

CODECS = (
    "maxmin:bits=1 maxmin:bits=2 maxmin:bits=4 maxmin:bits=8 maxminef:bits=4 terngrad:bitwidth=2 "
    "terngrad:bitwidth=8 2bit:threshold=0.001 tbq:threshold=0.001 1bit onebit ternary natural fp16 "
    "bf16 topk:ratio=0.01 randomk graddrop dgc sparseloco stc lossless"
)
WANTED_ENCODE, WANTED_DECODE = 0.5, 1.0
"""GB/s of payload."""
LEAST_TIMED = 48 << 10


def main(
    models: str = "gpt cnn",
    codecs: str = CODECS,
    steps: int = 30,
    looks: Annotated[int, typer.Option(help="Steps of which payloads are counted.")] = 3,
    seconds: Annotated[float, typer.Option(help="For each time that is measured.")] = 0.3,
    seed: int = 0,
    output: Output = "codecs-entropy",
    quick: Quick = False,
) -> None:
    if quick:
        models, steps, looks, seconds = "cnn", 2, 1, 0.02
    record = Record(output, locals())
    counted = looked_at(steps, looks)
    gradients = {
        model: list(trained(model, "float32", steps, steps, seed)) for model in models.split()
    }
    rows = []
    for codec in codecs.split():
        row = [f"`{codec.replace(':', '`, `')}`"]
        for steps_of_model in gradients.values():
            before, after = bits(codec, steps_of_model, counted)
            row += [f"{before:.3g}", f"{after:.3g}", f"{max(0, 100 * (1 - after / before)):.0f}%"]
        encode, decode = speed(codec, max(gradients[models.split()[0]][-1], key=len), seconds)
        rows.append([*row, *(f"{rate:.2f}" if rate else "" for rate in (encode, decode))])
        if encode and codec.startswith("maxmin:"):
            verdict(encode >= WANTED_ENCODE, f"{codec}: encodes {WANTED_ENCODE} GB/s of payload")
            verdict(decode >= WANTED_DECODE, f"{codec}: decodes {WANTED_DECODE} GB/s of payload")
    of_model = (": bits an element", ", with entropy", ", fewer")
    heads = ["", *(model + what for model in gradients for what in of_model)]
    heads += ["encode GB/s", "decode GB/s"]
    record.table(heads, rows, f"payloads of {looks} of {steps} steps; the stage on one thread")
    record.save()


def compressor(codec: str, **more: object) -> hipress.Compressor:
    name, _, params = codec.partition(":")
    pairs = dict(pair.split("=") for pair in params.split(",") if pair)
    return hipress.Compressor(name, **pairs, **more)


def bits(codec: str, steps: list[list[np.ndarray]], counted: set[int]) -> tuple[float, float]:
    """Return the bits per element without the stage, and with it."""
    found = []
    for entropy in (0, 1):
        each = [compressor(codec, entropy=entropy) for _ in steps[0]]
        sent = elements = 0
        for number, gradients in enumerate(steps):
            for one, x in zip(each, gradients):
                payload = one.encode(x)
                if number in counted:
                    sent, elements = sent + len(payload), elements + x.size
        found.append(8 * sent / elements)
    return found[0], found[1]


def speed(codec: str, gradient: np.ndarray, seconds: float) -> tuple[float, float]:
    """Return the stage's GB/s of payload, to encode and to decode once.

    They are 0 if the payload is not coded, or short.
    """
    x = gradient[:PARTITION]
    back, taken, size, coded = np.zeros_like(x), [], 0, False
    for entropy in (0, 1):
        one = compressor(codec, entropy=entropy)
        payload = one.encode(x)
        room = np.zeros(one.max_bytes(x.size), np.uint8)
        encode = best_seconds(lambda: one.encode(x, out=room), seconds)  # noqa: B023
        taken.append((encode, best_seconds(lambda: one.decode(payload, out=back), seconds)))  # noqa: B023
        size, coded = (size, payload[0] == 1) if entropy else (len(payload), False)
    if not coded or size < LEAST_TIMED:
        return 0.0, 0.0
    (encode, decode), (more_encode, more_decode) = taken
    return (
        size / max(more_encode - encode, 1e-9) / 1e9,
        2 * size / max(more_decode - decode, 1e-9) / 1e9,
    )
