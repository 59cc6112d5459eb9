"""Plays work that needs the interpreter's lock, in `processes` processes.

    callboard        a graph, with the defaults of a system with so many processes
    loop             a loop on one thread
    copies           two copies of each array in memory
    multiprocessing  `Pool.imap`
    futures          `ProcessPoolExecutor.map`
    joblib           `Parallel` with loky
    mpire            `WorkerPool.imap`
    bytewax, ray_data, spark, grain: see `frameworks`

Pools get rows in chunks. They have no keys: rows with keys are divided by them into a list for each
process, which has its outputs in one piece, and these are merged in the order of the rows. All of
that is in their time. Outputs have to be those of the loop, in its order. Processes are there, and
have had a few rows, before the clock starts.
"""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from callboard import ActorSystem
from callboard.streams import Graph, entry
from processes.frameworks import by_bytewax, by_grain, by_ray_data, by_spark
from processes.work import (
    VALUES,
    Work,
    calculation,
    divided,
    expected,
    key_of,
    loop,
    merged,
    summed,
)
from savina.result import Result
from usage import Watch
from with_ray import cpu_of_children

PlayAll = Callable[[list[Any]], Iterable[Any]]
Player = Callable[[Work, int], AbstractContextManager[PlayAll]]
# Calls a function with each item, in chunks.
MapAll = Callable[[Callable[[Any], Any], list[Any], int], Iterable[Any]]

FIRST = 8  # rows that each process gets before the clock starts


def run(
    n: int,
    *,
    by: str,
    processes: int = 1,
    microseconds: int = 1,
    keyed: bool = False,
    value: str = "",
) -> Result:
    work = VALUES[value](n) if value else calculation(n, microseconds, keyed)
    want = expected(work)
    with BY[by](work, processes) as play_all:
        elsewhere = cpu_of_children()
        watch = Watch()
        outputs = play_all(work.rows)
        got = [*(map(work.digest, outputs) if work.digest else outputs)]
        spent = watch.stop()
        spent["cpu"] += cpu_of_children() - elsewhere
    wrong = [pair for pair in zip(got, want, strict=False) if pair[0] != pair[1]][:1]
    return Result(n, got=[len(got), *wrong], want=[len(want)], **spent)


def graph_of(work: Work) -> Graph[Any]:
    rows = entry("rows")
    if work.keyed:
        return rows.key_by(key_of).scan(0, work.function).collect()
    return rows.map(work.function).collect()


@contextmanager
def by_callboard(work: Work, processes: int) -> Iterator[PlayAll]:
    def play_all(rows: list[Any]) -> Iterable[Any]:
        run = system.run(graph_of(work))
        if work.digest:  # outputs are taken as they come
            return run.results(rows)
        run.send("rows", rows)
        outputs: list[Any] = run.finish()
        return outputs

    with ActorSystem(processes=processes) as system:
        list(play_all(work.rows[: FIRST * max(1, processes)]))
        yield play_all


@contextmanager
def by_loop(work: Work, _: int) -> Iterator[PlayAll]:
    yield partial(loop, work)


@contextmanager
def by_copies(work: Work, _: int) -> Iterator[PlayAll]:
    """Copy each array to memory that is there, and back."""
    import numpy as np

    there, back = work.rows[0].copy(), work.rows[0].copy()

    def copied(row: Any) -> Any:
        np.copyto(there, row)
        np.copyto(back, there)
        return back

    yield lambda rows: map(copied, rows)


def by_pool(opened: Callable[[int], AbstractContextManager[MapAll]]) -> Player:
    """Make a player of a pool that calls a function with each item."""

    @contextmanager
    def play(work: Work, processes: int) -> Iterator[PlayAll]:
        with opened(processes) as map_all:

            def play_all(rows: list[Any]) -> Iterable[Any]:
                if not work.keyed:
                    return map_all(work.function, rows, min(work.chunk, -(-len(rows) // processes)))
                lists = divided(rows, processes)
                return merged(rows, map_all(partial(summed, work.function), lists, 1))

            list(play_all(work.rows[: FIRST * processes]))
            yield play_all

    return play


@contextmanager
def multiprocessing_of(processes: int) -> Iterator[MapAll]:
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        yield pool.imap


@contextmanager
def futures_of(processes: int) -> Iterator[MapAll]:
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        yield lambda function, items, chunk: pool.map(function, items, chunksize=chunk)


@contextmanager
def joblib_of(processes: int) -> Iterator[MapAll]:
    from joblib import Parallel, delayed

    def map_all(function: Callable[[Any], Any], items: list[Any], chunk: int) -> Iterable[Any]:
        parallel = Parallel(processes, return_as="generator", batch_size=chunk)
        outputs: Iterable[Any] = parallel(delayed(function)(item) for item in items)
        return outputs

    yield map_all


@contextmanager
def mpire_of(processes: int) -> Iterator[MapAll]:
    from mpire.pool import WorkerPool

    with WorkerPool(processes, start_method="fork", keep_alive=True) as pool:
        yield lambda function, items, chunk: pool.imap(
            function, ((item,) for item in items), iterable_len=len(items), chunk_size=chunk
        )


BY: dict[str, Player] = {
    "callboard": by_callboard,
    "loop": by_loop,
    "copies": by_copies,
    "multiprocessing": by_pool(multiprocessing_of),
    "futures": by_pool(futures_of),
    "joblib": by_pool(joblib_of),
    "mpire": by_pool(mpire_of),
    "bytewax": by_bytewax,
    "ray_data": by_ray_data,
    "spark": by_spark,
    "grain": by_grain,
}
