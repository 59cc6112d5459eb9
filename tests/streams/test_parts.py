"""Rows that give many outputs: these leave in parts, and are the same as in a sequential run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import (
    Graph,
    SideOutput,
    Stream,
    StreamError,
    TumblingWindow,
    Watermark,
    entry,
)
from callboard.testing import ManualSystem
from tests.streams.all_ways import first, itself, second
from tests.tokenless import tokenless

MOST = 8192  # outputs of a row that are in memory at a time
TIMEOUT = 60.0


def numbers(count: int) -> Iterator[tuple[int, int]]:
    """Give pairs of the count and a number."""
    for number in range(count):
        yield count, number


def total(pair: tuple[int, int]) -> int:
    return sum(pair)


def is_odd(number: int) -> bool:
    return number % 2 == 1


class Sums:
    def __init__(self) -> None:
        self.sum = 0

    def receive(self, row: Any) -> list[int]:
        self.sum += row if isinstance(row, int) else sum(row)
        return [self.sum]


def branches_that_meet(rows: Stream[Any]) -> Stream[Any]:
    pairs = rows.flat_map(numbers)
    odd, even = pairs.map(total).branch(is_odd)
    return odd.union(even.map(itself))


def readers_of_one_port(rows: Stream[Any]) -> Stream[Any]:
    return rows.flat_map(numbers, name="one").map(total).union(rows.flat_map(numbers, name="two"))


GRAPHS: dict[str, Callable[[Stream[Any]], Stream[Any]]] = {
    "stateless": lambda rows: rows.flat_map(numbers).map(total).filter(is_odd),
    "two in a row": lambda rows: rows.flat_map(numbers).map(second).flat_map(range).filter(is_odd),
    "stateful": lambda rows: rows.flat_map(numbers).stateful(Sums).map(itself),
    "keyed": lambda rows: rows.flat_map(numbers).key_by(first).stateful(Sums).map(itself),
    "windows": lambda rows: rows.flat_map(numbers).window(TumblingWindow(1000, by=second), len),
    "union": branches_that_meet,
    "readers of one port": readers_of_one_port,
}
SIZES = [0, 1, 5, MOST - 1, MOST, MOST + 1, 2 * MOST, 2 * MOST + 7]


def outputs(system: ActorSystem, graph: Any, rows: list[Any], batch_size: int) -> Any:
    run = system.run(graph, batch_size=batch_size, window=4)
    run.send("rows", rows)
    return run.finish(TIMEOUT)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("threading", ["dynamic", "assigned", "dedicated", "manual"])
@pytest.mark.parametrize("make", [ActorSystem, tokenless])
def test_parts_as_in_sequence(make: Callable[..., ActorSystem], threading: Any, name: str) -> None:
    graph = GRAPHS[name](entry("rows")).collect()
    sizes = [3, 40, 0] if name == "two in a row" else SIZES
    expected = graph.run_sequentially({"rows": sizes})
    with make(workers=2) as system:
        run = system.run(graph, batch_size=3, window=4, threading=threading)
        run.send("rows", sizes)
        assert run.finish(TIMEOUT) == expected


@given(
    sizes=st.lists(st.sampled_from(SIZES), max_size=6),
    batch_size=st.integers(1, 3),
    name=st.sampled_from(["stateless", "stateful", "keyed", "readers of one port"]),
    seed=st.integers(0, 9),
)
@settings(max_examples=20)
def test_parts_under_every_seed(sizes: list[int], batch_size: int, name: str, seed: int) -> None:
    graph = GRAPHS[name](entry("rows")).collect()
    expected = graph.run_sequentially({"rows": sizes})
    with ManualSystem(seed) as system:
        assert outputs(system, graph, sizes, batch_size) == expected


@pytest.mark.parametrize("make", [ActorSystem, tokenless])
def test_one_part_is_in_memory_at_a_time(make: Callable[..., ActorSystem]) -> None:
    made = taken = most = 0

    def lines(count: int) -> Iterator[int]:
        nonlocal made
        for number in range(count):
            made += 1
            yield number

    def note(_: int) -> None:
        nonlocal taken, most
        taken += 1
        most = max(most, made - taken)

    graph = entry("rows").flat_map(lines).map(itself).filter(lambda _: True).to(note)
    with make(workers=2) as system:
        run = system.run(graph)
        run.send("rows", [10 * MOST])
        run.finish(TIMEOUT)
    assert taken == made == 10 * MOST
    assert most <= MOST


class Restarting:
    """An iterator that begins anew whenever it is asked for one."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Restarting:
        self.given = 0
        return self

    def __next__(self) -> int:
        if self.given == self.count:
            raise StopIteration
        self.given += 1
        return self.given


def test_an_iterator_is_begun_once_and_goes_on_in_one_thread() -> None:
    threads: set[int] = set()

    def counted(count: int) -> Iterator[int]:
        for number in Restarting(count):
            threads.add(threading.get_ident())
            yield number

    rows = entry("rows")
    for graph in (rows.flat_map(Restarting).collect(), rows.flat_map(counted).collect()):
        with ActorSystem(workers=2) as system:
            assert outputs(system, graph, [3 * MOST], 1) == list(range(1, 3 * MOST + 1))
    assert len(threads) == 1


def test_a_watermark_behind_a_row_comes_behind_all_parts_of_it() -> None:
    graph = entry("rows").flat_map(numbers).window(TumblingWindow(10, by=second), len).collect()
    rows = [MOST + 1, Watermark(MOST), 2, Watermark(2 * MOST)]
    expected = graph.run_sequentially({"rows": rows})
    with ActorSystem() as system:
        assert outputs(system, graph, rows, 4) == expected


def test_side_outputs_go_on_in_parts_as_well() -> None:
    odd: list[int] = []
    even: list[int] = []

    def sorted_out(count: int) -> Iterator[Any]:
        for number in range(count):
            yield SideOutput("odd", number) if is_odd(number) else number

    rows = entry("rows").flat_map(sorted_out, sides=["odd"])
    graph = Graph(rows.to(even.append), rows.side("odd").to(odd.append))
    with ActorSystem() as system:
        run = system.run(graph)
        run.send("rows", [3 * MOST])
        run.finish(TIMEOUT)
    assert even == list(range(0, 3 * MOST, 2))
    assert odd == list(range(1, 3 * MOST, 2))


def test_parts_of_a_row_that_fails_later_have_gone_on() -> None:
    got: list[int] = []

    def fails(count: int) -> Iterator[int]:
        yield from range(count)
        raise LookupError(count)

    with ActorSystem() as system:
        run = system.run(entry("rows").flat_map(fails, name="fails").to(got.append), batch_size=2)
        run.send("rows", [7 + 2 * MOST, 1])
        with pytest.raises(StreamError, match="fails") as caught:
            run.finish(TIMEOUT)
    assert isinstance(caught.value.__cause__, LookupError)
    assert got == list(range(2 * MOST))


def test_a_row_that_fails_gives_nothing_if_failures_are_skipped() -> None:
    got: list[int] = []

    def fails(count: int) -> Iterator[int]:
        yield from range(count)
        if count > 1:
            raise LookupError(count)

    with ActorSystem() as system:
        run = system.run(entry("rows").flat_map(fails, errors="skip").to(got.append))
        run.send("rows", [7 + 2 * MOST, 1])
        run.finish(TIMEOUT)
    assert got == [0]


def test_an_unknown_side_output_behind_the_first_part_ends_the_run() -> None:
    got: list[int] = []

    def lost(count: int) -> Iterator[Any]:
        yield from range(count)
        yield SideOutput("lost", 0)
        yield from range(count)

    rows = entry("rows").flat_map(lost, sides=["odd"], name="lost")
    graph = Graph(rows.to(got.append), rows.side("odd").to(got.append))
    with ActorSystem() as system:
        run = system.run(graph)
        run.send("rows", [MOST])
        with pytest.raises(StreamError, match="lost"):
            run.finish(TIMEOUT)
    assert got == list(range(MOST))


def test_an_operator_that_fails_ends_the_generator_before_it() -> None:
    got: list[int] = []
    made: list[int] = []
    ended: list[str] = []

    def lines(count: int) -> Iterator[int]:
        try:
            for number in range(count):
                made.append(number)
                yield number
        finally:
            ended.append("ended")

    def check(number: int) -> int:
        if number == MOST + 100:
            raise LookupError(number)
        return number

    graph = entry("rows").flat_map(lines).map(check, name="check").to(got.append)
    with ActorSystem() as system:
        run = system.run(graph, batch_size=2)
        run.send("rows", [100 * MOST, 5])
        with pytest.raises(StreamError, match="check") as caught:
            run.finish(TIMEOUT)
    assert caught.value.serial == MOST + 100
    assert got == list(range(MOST + 100))
    assert len(made) == 2 * MOST
    assert ended == ["ended"]
