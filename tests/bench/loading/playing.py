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
from resource import RUSAGE_CHILDREN
from typing import Any

from callboard import ActorSystem
from callboard.streams import Graph, entry
from loading.images import TOGETHER, Array, Sample, collate, digest, load, samples
from savina.result import Result
from usage import Watch

Batches = Iterator[Array]


def run(n: int, *, by: str, workers: int = 1) -> Result:
    some = samples(n)
    with by_loop(some, 1) as batches:
        want = [digest(batch) for batch in batches]
    children = Watch(RUSAGE_CHILDREN)
    with BY[by](some, workers) as batches:
        watch = Watch()
        got = [digest(batch) for batch in batches]
        spent = watch.stop()
    spent["cpu"] += children.stop()["cpu"]  # of processes, which have ended
    return Result(n, got=got, want=want, **spent)


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

    builder: Any = PipelineBuilder()
    pipeline = (
        builder.add_source(some)
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
        pool.close()
        pool.join()


BY: dict[str, Callable[[list[Sample], int], AbstractContextManager[Batches]]] = {
    "callboard": by_graph(),
    "one_by_one": by_graph(batch_size=1),
    "spdl": by_spdl,
    "futures": by_futures,
    "processes": by_processes,
    "loop": by_loop,
}
