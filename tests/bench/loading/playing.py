"""Plays a data loader: pictures are decoded and changed on `workers` threads, and put in batches.

    callboard   a graph, with its defaults
    one_by_one  a graph that hands workers one picture at a time
    spdl        SPDL's pipeline, in the order of its input
    futures     `ThreadPoolExecutor.map`
    processes   `multiprocessing.Pool.imap`, in chunks of 8
    loop        a loop on one thread

Batches have to be those of the loop, in its order. Threads and processes are there before the clock
starts.
"""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from time import perf_counter
from typing import Any

from callboard import ActorSystem
from callboard.streams import Graph, entry
from loading.images import TOGETHER, Array, Sample, collate, digest, load, samples
from savina.result import Result

Batches = Iterator[Array]


def run(n: int, *, by: str, workers: int = 1) -> Result:
    some = samples(n)
    with by_loop(some, 1) as batches:
        want = [digest(batch) for batch in batches]
    begin = perf_counter()
    with BY[by](some, workers) as batches:
        begin = perf_counter()
        got = [digest(batch) for batch in batches]
        seconds = perf_counter() - begin
    return Result(n, seconds, got=got, want=want)


def together(loaded: Iterable[Array]) -> Batches:
    loaded = iter(loaded)
    while batch := list(islice(loaded, TOGETHER)):
        yield collate(batch)


@contextmanager
def by_loop(some: list[Sample], _: int) -> Iterator[Batches]:
    yield together(map(load, some))


def graph() -> Graph[Any]:
    loaded = entry("samples", Sample).map(load, releases_gil=True)
    return loaded.batch(TOGETHER).map(collate).collect()


def by_graph(**options: Any) -> Callable[[list[Sample], int], AbstractContextManager[Batches]]:
    @contextmanager
    def play(some: list[Sample], workers: int) -> Iterator[Batches]:
        with ActorSystem(workers=workers) as system:
            yield system.run(graph(), **options).results(some)

    return play


@contextmanager
def by_spdl(some: list[Sample], workers: int) -> Iterator[Batches]:
    from spdl.pipeline import PipelineBuilder

    pipeline = (
        PipelineBuilder()
        .add_source(some)
        .pipe(load, concurrency=workers, output_order="input")
        .aggregate(TOGETHER)
        .pipe(collate)
        .add_sink(3)
        .build(num_threads=workers)
    )
    with pipeline.auto_stop():
        yield pipeline.get_iterator()


@contextmanager
def by_futures(some: list[Sample], workers: int) -> Iterator[Batches]:
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(load, some[:workers]))
        yield together(pool.map(load, some))


@contextmanager
def by_processes(some: list[Sample], workers: int) -> Iterator[Batches]:
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        pool.map(load, some[:workers])
        yield together(pool.imap(load, some, chunksize=8))


BY: dict[str, Callable[[list[Sample], int], AbstractContextManager[Batches]]] = {
    "callboard": by_graph(),
    "one_by_one": by_graph(batch_size=1),
    "spdl": by_spdl,
    "futures": by_futures,
    "processes": by_processes,
    "loop": by_loop,
}
