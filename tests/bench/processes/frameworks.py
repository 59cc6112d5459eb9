"""Frameworks that play work in processes: Bytewax, Ray Data, Spark and Grain.

bytewax   a cluster: one process has the rows and gets the outputs, and works as the others do
ray_data  `map`, or `map_groups` by key; rows are dicts, as it wants them
spark     `map` of an RDD in `local[n]`; rows with keys are divided into lists, as for pools
grain     `map` of a dataset of chunks; no keys. Its processes begin with the iterator, and have
          done a few chunks when the clock starts
"""

import multiprocessing
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from processes.work import Row, Work, divided, key_of, merged, summed
from with_ray import ray_with

PlayAll = Callable[[list[Any]], Iterable[Any]]

BATCH = 1_000  # rows that Bytewax reads at a time
SLICES = 8  # of an RDD, for each process


# --- Bytewax --------------------------------------------------------------------------------------


class Rows:
    """The rows and the outputs of a cluster, in the process that has them."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows
        self.outputs: list[Any] = [None] * len(rows)
        self.missing = len(rows)
        self.is_ready, self.may_begin, self.has_all = Event(), Event(), Event()

    def batches(self) -> Iterator[list[tuple[int, Any]]]:
        """Return rows with their places; none before the clock starts."""
        self.is_ready.set()
        while not self.may_begin.is_set():
            yield []
        for first in range(0, len(self.rows), BATCH):
            yield [*enumerate(self.rows[first : first + BATCH], first)]

    def put(self, outputs: list[tuple[int, Any]]) -> None:
        for place, output in outputs:
            self.outputs[place] = output
        self.missing -= len(outputs)
        if not self.missing:
            self.has_all.set()


def flow_of(work: Work, rows: Rows | None) -> Any:
    """Make the flow of a process. The source and the sink are where the rows are."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
    from bytewax.outputs import FixedPartitionedSink, StatefulSinkPartition

    class SourcePart(StatefulSourcePartition[Any, None]):
        def __init__(self, rows: Rows) -> None:
            self.batches = rows.batches()

        def next_batch(self) -> list[Any]:
            return next(self.batches)

        def snapshot(self) -> None:
            return None

    class SinkPart(StatefulSinkPartition[Any, None]):
        def __init__(self, rows: Rows) -> None:
            self.rows = rows

        def write_batch(self, items: list[Any]) -> None:
            self.rows.put(items)

        def snapshot(self) -> None:
            return None

    class Source(FixedPartitionedSource[Any, None]):
        def list_parts(self) -> list[str]:
            return [] if rows is None else ["rows"]

        def build_part(self, *_: Any) -> Any:
            assert rows is not None
            return SourcePart(rows)

    class Sink(FixedPartitionedSink[Any, None]):
        list_parts = Source.list_parts

        def build_part(self, *_: Any) -> Any:
            assert rows is not None
            return SinkPart(rows)

    function = work.function

    def placed_total(total: int | None, item: tuple[int, Row]) -> tuple[int, Any]:
        place, row = item
        total = function(total or 0, row)
        return total, (place, (key_of(row), total))

    flow = Dataflow("work")
    stream = op.input("source", flow, Source())
    outputs: Any
    if work.keyed:
        keyed = op.key_on("key", stream, lambda item: str(key_of(item[1])))
        outputs = op.stateful_map("total", keyed, placed_total)
        outputs = op.map("to_sink", outputs, lambda item: ("", item[1]))
    else:
        spread = op.redistribute("spread", stream)
        outputs = op.map("work", spread, lambda item: ("", (item[0], function(item[1]))))
    op.output("sink", outputs, Sink())
    return flow


@contextmanager
def by_bytewax(work: Work, processes: int) -> Iterator[PlayAll]:
    from bytewax.testing import cluster_main

    addresses = free_addresses(processes)
    rows = Rows(work.rows)
    here = Thread(target=cluster_main, args=(flow_of(work, rows), addresses, 0), daemon=True)
    start = multiprocessing.get_context("fork").Process
    parts: list[Any] = [
        start(target=cluster_main, args=(flow_of(work, None), addresses, number), daemon=True)
        for number in range(1, processes)
    ]
    parts.append(here)  # last: a process with threads is not forked
    for part in parts:
        part.start()

    def play_all(_: list[Any]) -> Iterable[Any]:
        rows.may_begin.set()
        if not rows.has_all.wait(300):
            raise RuntimeError(f"{rows.missing} outputs are missing after 300 s")
        return rows.outputs

    if not rows.is_ready.wait(60):
        raise RuntimeError("the cluster has not started within 60 s")
    yield play_all
    for part in parts:
        part.join()


def free_addresses(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


# --- Ray Data -------------------------------------------------------------------------------------


@contextmanager
def by_ray_data(work: Work, processes: int) -> Iterator[PlayAll]:
    with ray_with(processes):
        import ray.data

        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False

        def play_all(rows: list[Row]) -> Iterable[Any]:
            items = ray.data.from_items([
                {"place": place, "key": key, "number": number}
                for place, (key, number) in enumerate(rows)
            ])  # fmt: skip
            if not work.keyed:
                mapped = items.map(partial(output_of, work.function))
                return [row["output"] for row in mapped.iter_rows()]
            groups = items.groupby("key").map_groups(
                partial(outputs_of_group, work.function), batch_format="numpy"
            )
            outputs: list[Any] = [None] * len(rows)
            for row in groups.iter_rows():
                outputs[row["place"]] = (row["key"], row["output"])
            return outputs

        list(play_all(work.rows[:16]))
        yield play_all


def output_of(function: Callable[[Row], Any], row: dict[str, Any]) -> dict[str, Any]:
    return {"output": function((row["key"], row["number"]))}


def outputs_of_group(function: Callable[[int, Row], int], group: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    order = np.argsort(group["place"])
    rows = zip(group["key"][order].tolist(), group["number"][order].tolist(), strict=True)
    outputs = [total for _, total in summed(function, rows)]
    return {"place": group["place"][order], "key": group["key"], "output": np.array(outputs)}


# --- Spark ----------------------------------------------------------------------------------------


@contextmanager
def by_spark(work: Work, processes: int) -> Iterator[PlayAll]:
    from callboard.spark import session

    bench = str(Path(__file__).parents[1])  # where Spark's processes find this package
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (bench, os.getenv("PYTHONPATH"))))
    context = session(f"local[{processes}]").sparkContext

    def play_all(rows: list[Any]) -> Iterable[Any]:
        if not work.keyed:
            return context.parallelize(rows, SLICES * processes).map(work.function).collect()
        lists = context.parallelize(divided(rows, processes), processes)
        return merged(rows, lists.map(partial(summed, work.function)).collect())

    list(play_all(work.rows[: 8 * processes]))
    yield play_all


# --- Grain ----------------------------------------------------------------------------------------


@contextmanager
def by_grain(work: Work, processes: int) -> Iterator[PlayAll]:
    import grain

    rows = work.rows
    first = [rows[:8] for _ in range(processes)]
    chunks = [rows[at : at + work.chunk] for at in range(0, len(rows), work.chunk)]
    dataset = grain.MapDataset.source([*first, *chunks]).map(partial(outputs_of, work.function))
    one_by_one = dataset.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0))
    options = grain.MultiprocessingOptions(num_workers=processes)
    outputs = iter(one_by_one.mp_prefetch(options))
    for _ in first:
        next(outputs)
    yield lambda _: (output for chunk in outputs for output in chunk)


def outputs_of(function: Callable[[Row], Any], rows: list[Row]) -> list[Any]:
    return [function(row) for row in rows]
