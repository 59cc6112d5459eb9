"""Keys of several streams are counted at once, a thread for each."""

from collections import Counter
from threading import Barrier, Thread
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from callboard.frequency import SpaceSaving
from frequency.counting_keys import EPSILON, TOP
from frequency.zipf import zipf
from savina.result import Result


def run(n: int, *, design: str, alpha: float = 1.5, streams: int = 2) -> Result:
    """Count `n` keys in all. The most frequent ones are held to their bounds."""
    keys = zipf(n, alpha)
    exact = Counter(keys.tolist())
    summary = SpaceSaving(EPSILON, streams=streams, design=design)
    start = Barrier(streams + 1)

    def count(part: NDArray[np.int64]) -> None:
        start.wait()
        summary.update(part)

    parts = np.array_split(keys, streams)
    threads = [Thread(target=count, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    start.wait()
    begin = perf_counter()
    for thread in threads:
        thread.join()
    seconds = perf_counter() - begin
    held = 0
    for key, times in exact.most_common(TOP):
        estimate = summary.estimate(key)
        low = estimate.count - estimate.error
        held += low <= times <= estimate.count <= times + EPSILON * n
    return Result(n, seconds, got=held, want=min(TOP, len(exact)))
