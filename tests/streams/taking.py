"""A graph, and threads whose outcome is kept, for tests of results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from callboard.streams import Graph, Results, Run, entry

ROWS = list(range(3000))


def graph() -> Graph[list[int]]:
    """Give rows, their sums by key, and at the end what is still held."""
    numbers = entry("x", int).filter(lambda n: n % 3 != 0)
    sums = numbers.key_by(lambda n: n % 5, partitions=4).fold(0, lambda total, n: total + n)
    return numbers.union(sums.map(lambda found: found[1])).collect()


EXPECTED = graph().run_sequentially({"x": ROWS})


class Thread(threading.Thread):
    """Calls a function, and keeps what it returned or raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.call, self.result = call, None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.call()
        except BaseException as error:
            self.error = error

    def ends(self) -> Any:
        self.join(60)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def feed(run: Run[Any], rows: Any = ROWS) -> Any:
    for at in range(0, len(rows), 100):
        run.send("x", rows[at : at + 100], timeout=60)
    return run.finish(timeout=60)


async def taken_from(results: Results[Any]) -> list[Any]:
    return [row async for row in results]


def until_it_raises(results: Results[Any]) -> tuple[list[Any], Exception]:
    got: list[Any] = []
    try:
        got.extend(results)
    except Exception as error:
        return got, error
    pytest.fail("nothing was raised")
