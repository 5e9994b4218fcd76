"""Prints a digest of payloads, residuals and results of each built-in codec."""

import hashlib

import numpy as np

import hipress
from compll_helpers import SIZES, SPECS, gradient

for name in SPECS:
    digest = hashlib.sha256()
    for n in SIZES:
        codec = hipress.Compressor(name)
        special = np.array([0, -0.0, 1e-45, -1e-40, 3e38, -3e38, 0.5, -0.5, np.nan], np.float32)
        payloads = []
        for x in (gradient(n, 1), gradient(n, 2), np.resize(special, n)):
            payload = codec.encode(x)
            digest.update(payload + codec.decode(payload, n).tobytes())
            digest.update(codec.decode_sum([payload] * 3, n).tobytes())
            digest.update(codec.residual.tobytes())
            payloads.append(payload)
        digest.update(codec.decode_sum(payloads, n).tobytes())
    for params in [{"bits": b} for b in range(1, 9)] if name == "maxmin" else []:
        codec = hipress.Compressor(name, **params)
        payload = codec.encode(gradient(5000))
        digest.update(payload + codec.decode(payload, 5000).tobytes())
    for bits in range(2, 9) if name == "maxminef" else []:
        codec = hipress.Compressor(name, bits=bits)
        for x in (gradient(5000), gradient(5000, 1)):
            payload = codec.encode(x)
            digest.update(payload + codec.decode(payload, 5000).tobytes())
    print(name, digest.hexdigest())
