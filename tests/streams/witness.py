"""Operators that record their threads, and rows for them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from callboard.streams import Graph, Run, Stream, entry

ROWS = list(range(300))


class Witness:
    """Notes which threads ran what."""

    def __init__(self) -> None:
        self.threads: defaultdict[str, set[threading.Thread]] = defaultdict(set)

    def at(self, name: str) -> Callable[[int], int]:
        def saw(row: int) -> int:
            self.threads[name].add(threading.current_thread())
            return row + 1

        return saw

    def only(self, name: str) -> threading.Thread:
        (thread,) = self.threads[name]
        return thread


def pipeline(witness: Witness, *names: str) -> Graph[list[int]]:
    stream: Stream[int] = entry("x", int)
    for name in names:
        stream = stream.map(witness.at(name), name=name)
    return stream.collect()


def feed(run: Run[Any], rows: Any = ROWS) -> Any:
    run.send("x", rows)
    return run.finish(timeout=60)
