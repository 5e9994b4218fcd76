"""Philox4x32-7 in NumPy, and how elements draw from it.

Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011: seven rounds are the fewest
that pass BigCrush. Element i takes word
(i mod 64) / 16 of counter 16 * (i / 64) + i mod 16, so that sixteen lanes need no transpose.
"""

from __future__ import annotations

import numpy as np

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


ROUNDS = 7


def philox4x32(counter: np.ndarray, key: tuple[int, int], rounds: int = ROUNDS) -> np.ndarray:
    """Return the random words of counters.

    :param counter: uint32[..., 4]
    :param key: two 32-bit numbers
    :returns: uint32[..., 4]
    """
    c0, c1, c2, c3 = (counter[..., word].astype(np.uint64) for word in range(4))
    k0, k1 = key
    for _ in range(rounds):
        p0, p1 = c0 * _M0, c2 * _M1
        c0, c1, c2, c3 = (
            (p1 >> _HALF) ^ c1 ^ np.uint64(k0),
            p1 & _LOW,
            (p0 >> _HALF) ^ c3 ^ np.uint64(k1),
            p0 & _LOW,
        )
        k0, k1 = (k0 + _W0) & 0xFFFFFFFF, (k1 + _W1) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def words(n: int, site: int, seed: int, step: int, stream: int = 0) -> np.ndarray:
    """Return uint32[n]: the random word of each element.

    :param site: number of the random call in its function
    :param seed, step: the key; step counts the encodes of one state
    :param stream: distinguishes encoders of a job that share a seed
    """
    return _groups(-(-n // 64), 16, site, seed, step, stream).reshape(-1)[:n]


def halves(n: int, site: int, seed: int, step: int, stream: int = 0) -> np.ndarray:
    """Return int32[n]: the random 16 bits of each element; parameters as of words().

    Element i takes bits 8 * b to 8 * b + 15, round the end, of word
    2 * (i / 64 mod 2) + (i mod 16) / 8 of counter 8 * (i / 128) + i mod 8, where b is
    (i mod 64) / 16: one Philox block for 16 elements, each of which is uniform and shares its bytes
    with two other elements.
    """
    tiles = _groups(-(-n // 128), 8, site, seed, step, stream).reshape(-1, 1, 16)
    shift = np.arange(0, 32, 8, dtype=np.uint64).reshape(4, 1)
    twice = tiles.astype(np.uint64) * np.uint64(2**32 + 1)
    return (twice >> shift & np.uint64(0xFFFF)).reshape(-1)[:n].astype(np.int32)


def _groups(groups: int, counters: int, site: int, seed: int, step: int, stream: int) -> np.ndarray:
    """Return uint32[groups, 4, counters]: words of groups of counters."""
    index = np.arange(counters * groups, dtype=np.uint64)
    counter = np.zeros((counters * groups, 4), np.uint32)
    counter[:, 0] = (index & _LOW).astype(np.uint32)
    counter[:, 1] = (index >> _HALF).astype(np.uint32)
    counter[:, 2] = site
    counter[:, 3] = stream
    block = philox4x32(counter, (seed & 0xFFFFFFFF, step & 0xFFFFFFFF))
    return block.reshape(groups, counters, 4).transpose(0, 2, 1)
