"""Rank, size, and helpers for errors and digests."""

import hashlib

import numpy as np

import hipress.tensorflow as hvd

rank, size = hvd.rank(), hvd.size()


def refused(sentence, call, errors=ValueError):
    try:
        call()
    except errors as error:
        assert sentence in str(error), f"{sentence!r} is not in {error}"
    else:
        raise AssertionError(f"not refused: {sentence}")


def print_bits(variables):
    print("bits", hashlib.sha256(b"".join(np.asarray(v).tobytes() for v in variables)).hexdigest())
