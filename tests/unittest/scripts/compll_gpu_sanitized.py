"""Encodes and decodes on a GPU; arguments: a codec, and further folders to import from."""

import sys

sys.path[:0] = sys.argv[2:]
from test_compll_gpu import coder, gradient  # noqa: E402

name = sys.argv[1]
for shape in ("grid", "block"):
    two = coder(name, shape)
    for n in (1, 1000, 65537):
        states = {}
        for step in range(2):
            payload = two.encode(gradient(n, step), states, step)
        two.decode_sum([payload, payload], n)
        for bad in (payload[:-1], b"", bytes(len(payload)), b"\xff" * len(payload)):
            try:
                two.decode(bad, n)
            except ValueError:
                pass
