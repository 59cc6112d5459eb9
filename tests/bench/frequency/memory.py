"""Memory: the MB that a summary of keys takes, compared with tables of all keys."""

import ctypes
import gc
from resource import getpagesize
from typing import Any

from frequency.counting_keys import BY, held, text_of
from frequency.zipf import zipf
from runtime.memory import resident
from savina.result import Quantity


def run(n: int, *, by: str = "callboard", keys: str = "integers", alpha: float = 1.0) -> Quantity:
    """Count `n` keys that nobody else keeps."""
    numbers = zipf(n, alpha)
    key_of: Any = text_of if keys == "texts" else int
    # What is loaded at the first use is no part of it.
    BY[by](map(key_of, numbers[:1000]), 0, False)
    before = settled()
    _, bounds = BY[by](map(key_of, numbers), 0, False)
    held_mb = max(settled() - before, getpagesize()) / 1e6
    got, want = held(bounds, numbers, key_of, by)
    return Quantity(held_mb, got, want)


def settled() -> int:
    """Return the bytes that are resident once what is free was given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return resident()
