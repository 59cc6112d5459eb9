"""The time of a graph's run, from its first rows to its end."""

from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any

from callboard import ActorSystem


def timed(
    graph: Any,
    arriving: Iterable[tuple[str, Any]],
    workers: int | None = 1,
    processes: int = 0,
    **options: Any,
) -> tuple[float, Any]:
    """Send rows to the entries of a graph; return the seconds and the output.

    Worker processes have had the first rows before.
    """
    with ActorSystem(workers=workers, processes=processes) as system:
        if processes:
            arriving = [*arriving]
            run = system.run(graph, **options)
            for name, rows in arriving[: len(graph.entries)]:
                run.send(name, rows)
            run.finish()
        run = system.run(graph, **options)
        begin = perf_counter()
        for name, rows in arriving:
            run.send(name, rows)
        found = run.finish()
        return perf_counter() - begin, found


def in_turns(size: int, /, **streams: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Cut streams of one length into pieces, and take these by turns."""
    for at in range(0, len(next(iter(streams.values()))), size):
        for name, rows in streams.items():
            yield name, rows[at : at + size]
