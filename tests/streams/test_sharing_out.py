"""The number of workers of an operator, where a graph specifies it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import GraphError, KeyedStream, entry


def most_at_once(limited: Callable[[Any], Any], workers: int, wanted: int) -> int:
    """Return how many workers were at an operator at once; a row waits for `wanted` of them."""
    lock = threading.Condition()
    here = most = 0

    def work(row: int) -> int:
        nonlocal here, most
        with lock:
            here += 1
            most = max(most, here)
            lock.notify_all()
            lock.wait_for(lambda: most >= wanted, timeout=30.0)
        with lock:
            here -= 1
        return row

    class Working:
        def receive(self, row: int) -> list[int]:
            return [work(row)]

    stream = limited(entry("rows"))
    if isinstance(stream, KeyedStream):
        stream = stream.stateful(Working, name="work", releases_gil=True)
    else:
        stream = stream.map(work, name="work", releases_gil=True)
    graph = stream.collect()
    with ActorSystem(workers=workers) as system:
        run = system.run(graph, batch_size=1)
        run.send("rows", range(40))
        assert run.finish() == list(range(40))
    return most


def test_an_operators_number_of_workers_is_limited() -> None:
    assert most_at_once(lambda rows: rows, workers=3, wanted=3) == 3
    assert most_at_once(lambda rows: rows.max_workers(2), workers=3, wanted=2) == 2
    assert most_at_once(lambda rows: rows.max_workers(1), workers=3, wanted=1) == 1


def test_a_keyed_operators_number_of_workers_is_limited() -> None:
    def keyed(rows: Any) -> Any:
        return rows.key_by(lambda row: row, partition=lambda key: key)

    assert most_at_once(keyed, workers=3, wanted=3) == 3
    assert most_at_once(lambda rows: keyed(rows.max_workers(2)), workers=3, wanted=2) == 2
    assert most_at_once(lambda rows: keyed(rows.max_workers(1)), workers=3, wanted=1) == 1


def test_a_limit_is_one_operators() -> None:
    def before(rows: Any) -> Any:
        return rows.max_workers(1).map(lambda row: row)

    assert most_at_once(before, workers=3, wanted=3) == 3


def test_a_limit_holds_for_a_keyed_operator_and_across_other_marks() -> None:
    stream = entry("rows").max_workers(2).run_on("dynamic").key_by(lambda row: row % 7)
    graph = stream.stateful(Sum, name="sum", releases_gil=True).collect()
    rows = list(range(200))
    with ActorSystem(workers=3) as system:
        run = system.run(graph, batch_size=8)
        run.send("rows", rows)
        assert run.finish() == graph.run_sequentially({"rows": rows})
    assert "partitions of keys, in each one worker at a time, 2 workers at most" in str(
        graph.describe()
    )


class Sum:
    def __init__(self) -> None:
        self.sum = 0

    def receive(self, row: int) -> list[int]:
        self.sum += row
        return [self.sum]


@pytest.mark.parametrize("most", [0, -1, 1.5, "two", True])
def test_a_limit_is_a_whole_number(most: Any) -> None:
    with pytest.raises(GraphError, match="max_workers must be a whole number of at least 1"):
        entry("rows").max_workers(most)
