"""Errors: by how much a summary's worst count exceeds the true one, while two threads count."""

from collections import Counter
from threading import Thread

import numpy as np

from callboard.frequency import SpaceSaving
from frequency.counting_keys import EPSILON
from frequency.zipf import zipf
from savina.result import Quantity


def run(n: int, *, design: str, alpha: float = 1.0, streams: int = 2) -> Quantity:
    """Count `n` keys in all, and hold every row to its bounds."""
    keys = zipf(n, alpha)
    exact = Counter(keys.tolist())
    summary = SpaceSaving(EPSILON, streams=streams, design=design)
    threads = [
        Thread(target=summary.update, args=(part,)) for part in np.array_split(keys, streams)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = list(summary)
    good = sum(
        exact[key] <= count <= exact[key] + min(error, EPSILON * n) for key, count, error in rows
    )
    worst = max(count - exact[key] for key, count, _ in rows)
    return Quantity(max(worst, 1), got=good, want=len(rows))
