"""Map, filter and a count for each key on Arrow batches: a function call for each 65,536 rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from callboard.streams import Graph, entry
from savina.result import Result
from streams.timing import timed

BATCH = 65_536
KEYS = 100


def scale(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"value": pc.add(pc.multiply(batch.column(0), 3), 1)})


def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pc.not_equal(pc.bit_wise_and(batch.column(0), 3), 0))


class Counts:
    """Counts rows by key, and gives all counts at the end."""

    def __init__(self) -> None:
        self.counts = np.zeros(KEYS, np.int64)

    def receive(self, batch: pa.RecordBatch) -> None:
        keys = batch.column(0).to_numpy() % KEYS
        self.counts += np.bincount(keys, minlength=KEYS)

    def on_final(self) -> list[list[int]]:
        return [self.counts.tolist()]


def run(n: int, *, workers: int = 1, **options: Any) -> Result:
    n = max(n // BATCH, 1) * BATCH
    values = np.arange(n)
    batches = [
        pa.record_batch({"value": values[begin : begin + BATCH]}) for begin in range(0, n, BATCH)
    ]
    kept = entry("batches").map_batches(scale).map_batches(keep)
    graph: Graph[Any] = kept.stateful(Counts).collect()
    seconds, [got] = timed(graph, [("batches", batches)], workers, batch_size=1, **options)
    scaled = values * 3 + 1
    want = np.bincount(scaled[scaled % 4 != 0] % KEYS, minlength=KEYS).tolist()
    return Result(n, seconds, got=got, want=want)
