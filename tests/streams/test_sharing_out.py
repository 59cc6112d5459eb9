"""How an operator is shared among workers where a graph says it: partitions of keys, and limits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import Graph, GraphError, Run, StreamError, entry


def counted(partition: Any, *, releases_gil: bool = True) -> Graph[Any]:
    """Make a graph that counts rows by their value. Workers share it, also beside a GIL."""

    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def receive(self, row: int) -> list[tuple[int, int]]:
            self.count += 1
            return [(row, self.count)]

    keyed = entry("rows", of=int).key_by(lambda row: row, partition=partition)
    return Graph(keyed.stateful(Counter, name="count", releases_gil=releases_gil).collect())


def rows_of_partitions(run: Run[Any]) -> tuple[int, ...]:
    operators = run.statistics().operators
    return [each.partitions for each in operators if each.name == "count"][-1]


def test_ranges_of_keys_are_partitions() -> None:
    rows = [0, 9, 10, 19, 19, 20, 1000, -5]
    with ActorSystem(workers=2) as system:
        run = system.run(counted([10, 20]))
        run.send("rows", rows)
        got = run.finish()
        assert rows_of_partitions(run) == (3, 3, 2)
    assert got == counted(None).run_sequentially({"rows": rows})


@given(st.lists(st.integers(0, 30)), st.sampled_from([1, 2, 3]))
def test_outputs_do_not_depend_on_where_keys_are(rows: list[int], workers: int) -> None:
    want = counted(None).run_sequentially({"rows": rows})
    ways: list[Callable[[int], int] | Sequence[int]] = [lambda key: key % 5, [3, 4, 17]]
    for partition in ways:
        with ActorSystem(workers=workers) as system:
            run = system.run(counted(partition), batch_size=4)
            run.send("rows", rows)
            assert run.finish() == want
            assert sum(rows_of_partitions(run)) == (len(rows) if workers > 1 else 0)


@pytest.mark.parametrize("releases_gil", [True, False])
@pytest.mark.parametrize("answer", [64, -1, 1.5, None, True])
def test_a_partition_that_does_not_exist_is_an_error_of_the_row(
    answer: Any, releases_gil: bool
) -> None:
    def partition(key: int) -> Any:
        return answer if key == 3 else 0

    with ActorSystem(workers=2) as system:
        run = system.run(counted(partition, releases_gil=releases_gil))
        run.send("rows", [1, 2, 3, 4])
        with pytest.raises(StreamError, match="'count'") as raised:
            run.finish()
    assert "a key's partition is a whole number from 0 to 63" in str(raised.value.__cause__)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition": 5}, "a function or a list of bounds, not 5"),
        ({"partition": "abc"}, "a function or a list of bounds, not 'abc'"),
        ({"partition": []}, "1 to 4095 bounds, not 0"),
        ({"partition": [2, 1]}, r"bounds ascend, and these do not: \[2, 1\]"),
        ({"partition": [1, 1]}, "bounds ascend"),
        ({"partition": [float("nan")]}, "bounds ascend"),
        ({"partition": [1, "a"]}, "cannot be compared"),
        ({"partition": [1, 2], "partitions": 2}, "2 bounds make 3 partitions, not 2"),
        ({"partitions": 0}, "partitions is a whole number from 1 to 4096, not 0"),
    ],
)
def test_a_partitioning_that_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        entry("rows").key_by(lambda row: row, **options)


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

    graph = limited(entry("rows")).map(work, name="work", releases_gil=True).collect()
    with ActorSystem(workers=workers) as system:
        run = system.run(graph, batch_size=1)
        run.send("rows", range(40))
        assert run.finish() == list(range(40))
    return most


def test_an_operator_has_at_most_so_many_workers() -> None:
    assert most_at_once(lambda rows: rows, workers=3, wanted=3) == 3
    assert most_at_once(lambda rows: rows.most_workers(2), workers=3, wanted=2) == 2
    assert most_at_once(lambda rows: rows.most_workers(1), workers=3, wanted=1) == 1


def test_a_limit_is_one_operators() -> None:
    def before(rows: Any) -> Any:
        return rows.most_workers(1).map(lambda row: row)

    assert most_at_once(before, workers=3, wanted=3) == 3


def test_a_limit_holds_for_a_keyed_operator_and_across_other_marks() -> None:
    stream = entry("rows").most_workers(2).threading("dynamic").key_by(lambda row: row % 7)
    graph = stream.stateful(Sum, name="sum", releases_gil=True).collect()
    rows = list(range(200))
    with ActorSystem(workers=3) as system:
        run = system.run(graph, batch_size=8)
        run.send("rows", rows)
        assert run.finish() == graph.run_sequentially({"rows": rows})
    assert "64 partitions of keys, in each one worker at a time, 2 workers at most" in str(
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
    with pytest.raises(GraphError, match="most_workers is a whole number of 1 or more"):
        entry("rows").most_workers(most)
