"""Plays a data loader: pictures are decoded and changed on `workers` threads, and put in batches.

    callboard   a graph, with its defaults
    one_by_one  a graph that hands workers one picture at a time
    spdl        SPDL's pipeline, in the order of its input
    futures     `ThreadPoolExecutor.map`
    processes   `multiprocessing.Pool.imap`, in chunks of 8
    torch       PyTorch's DataLoader, with `workers` processes, each of which makes a batch
    ray_data    Ray Data, in the order of its input
    ray_actors  an actor of Ray for each of `workers`, in `ActorPool.map`, in chunks of 8
    loop        a loop on one thread

Batches have to be those of the loop, in its order. Threads and processes are there before the clock
starts, but for PyTorch's, which start with the first batch.
"""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, islice
from typing import Any

from callboard import ActorSystem
from callboard.streams import Graph, entry
from loading.images import NUMBERS, TOGETHER, Array, Sample, collate, digest, load, samples
from savina.result import Result
from usage import Watch
from with_ray import cpu_of_children, ray_with

Batches = Iterator[Array]
CHUNK = 8  # pictures that another process gets at once


def run(n: int, *, by: str, workers: int = 1) -> Result:
    some = samples(n)
    want = expected(some)
    with BY[by](some, workers) as batches:
        elsewhere = cpu_of_children()
        watch = Watch()
        got = [digest(batch) for batch in batches]
        spent = watch.stop()
        spent["cpu"] += cpu_of_children() - elsewhere
    return Result(n, got=got, want=want, **spent)


def expected(some: list[Sample]) -> list[int]:
    """Return the digests of all batches; batches come again when the numbers do."""
    with by_loop(some, 1) as batches:
        differ = [digest(batch) for batch in islice(batches, NUMBERS // TOGETHER)]
    whole, rest = divmod(len(some), TOGETHER)
    want = [differ[place % len(differ)] for place in range(whole)]
    with by_loop(some[len(some) - rest :], 1) as batches:
        return want + [digest(batch) for batch in batches]


def together(loaded: Iterable[Array]) -> Batches:
    loaded = iter(loaded)
    while batch := list(islice(loaded, TOGETHER)):
        yield collate(batch)


def later(make: Callable[[], Iterable[Array]]) -> Batches:
    """Begin with the first batch that is asked for: a pool would begin before the clock."""
    yield from make()


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
        yield later(lambda: together(pool.map(load, some)))


@contextmanager
def by_processes(some: list[Sample], workers: int) -> Iterator[Batches]:
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        pool.map(load, some[:workers])
        yield later(lambda: together(pool.imap(load, some, chunksize=CHUNK)))


@contextmanager
def by_torch(some: list[Sample], workers: int) -> Iterator[Batches]:
    from torch.utils.data import DataLoader  # type: ignore[import-not-found]

    class Pictures:
        def __len__(self) -> int:
            return len(some)

        def __getitem__(self, place: int) -> Array:
            return load(some[place])

    loader = DataLoader(Pictures(), TOGETHER, num_workers=workers, collate_fn=collate)
    yield later(lambda: loader)


@contextmanager
def by_ray_data(some: list[Sample], workers: int) -> Iterator[Batches]:
    with ray_with(workers):
        import ray.data

        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False

        def play(some: list[Sample]) -> Batches:
            rows = ray.data.from_items([sample._asdict() for sample in some])
            loaded = rows.map(lambda row: {"picture": load(Sample(**row))})
            for batch in loaded.iter_batches(batch_size=TOGETHER):
                yield batch["picture"]  # type: ignore[misc]

        list(play(some[:workers]))
        yield play(some)


class Loader:
    """An actor of Ray."""

    def load(self, some: list[Sample]) -> list[Array]:
        return [load(each) for each in some]


@contextmanager
def by_ray_actors(some: list[Sample], workers: int) -> Iterator[Batches]:
    with ray_with(workers) as ray:
        from ray.util import ActorPool

        pool = ActorPool([ray.remote(Loader).remote() for _ in range(workers)])

        def play(some: list[Sample]) -> Batches:
            chunks = [some[first : first + CHUNK] for first in range(0, len(some), CHUNK)]
            loaded = pool.map(lambda actor, chunk: actor.load.remote(chunk), chunks)
            return together(chain.from_iterable(loaded))

        list(play(some[: CHUNK * workers]))
        yield play(some)


BY: dict[str, Callable[[list[Sample], int], AbstractContextManager[Batches]]] = {
    "callboard": by_graph(),
    "one_by_one": by_graph(batch_size=1),
    "spdl": by_spdl,
    "futures": by_futures,
    "processes": by_processes,
    "torch": by_torch,
    "ray_data": by_ray_data,
    "ray_actors": by_ray_actors,
    "loop": by_loop,
}
