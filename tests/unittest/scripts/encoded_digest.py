"""Prints a digest of two payloads of codec onebit."""

import hashlib

import numpy as np

import hipress

g = np.random.default_rng(1).normal(0, 1, 9999).astype(np.float32)
c = hipress.Compressor("onebit")
print(hashlib.sha256(c.encode(g) + c.encode(g)).hexdigest())
