"""Streams of keys by Zipf's law, of an alphabet of five million: Das et al. 2009, section 5."""

import numpy as np
from numpy.typing import NDArray

ALPHABET = 5_000_000
SEED = 20_090_824


def zipf(n: int, alpha: float) -> NDArray[np.int64]:
    """Draw `n` keys; the i-th most frequent one is drawn in proportion to i to the -`alpha`."""
    sums = np.cumsum(np.arange(1, ALPHABET + 1, dtype=np.float64) ** -alpha)
    draws = np.random.default_rng(SEED).random(n) * sums[-1]
    ranks = np.searchsorted(sums, draws).astype(np.uint64)
    with np.errstate(over="ignore"):  # no key is near its neighbour in rank
        keys: NDArray[np.int64] = (ranks * np.uint64(0x9E3779B97F4A7C15)).astype(np.int64)
    return keys
