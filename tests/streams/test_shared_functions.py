"""A function called by several lanes acts as one function, though lanes may call copies."""

import gc
import threading
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.core.threads.interpreter import has_gil
from callboard.streams import StreamError, entry
from callboard.streams.programs.program import Batch, Program
from callboard.streams.programs.rows.keyed import Scan
from callboard.streams.programs.rows.stateless import Branch, Filter, FlatMap, Map
from callboard.streams.programs.shared_function import SharedFunction, shared

ROWS = range(20_000)
copied = pytest.mark.skipif(has_gil(), reason="with an interpreter lock there are no copies")


def of_module(row: int) -> int:
    return row


def adding(number: int) -> Callable[[int], int]:
    return lambda row: row + number


def through(function: Callable[[Any], Any], rows: Any = ROWS) -> list[Any]:
    with ActorSystem(workers=2) as system:
        run = system.run(entry("rows").map(function).collect(), batch_size=16)
        run.send("rows", rows)
        collected: list[Any] = run.finish(30)
        return collected


def process(program: Program, *rows: Any) -> list[Any]:
    into = [Batch([]) for _ in program.ports]
    program.process(Batch(list(rows)), into)
    return [batch.rows for batch in into]


def in_another_thread(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def copies_of(program: Program) -> list[FunctionType]:
    """Find the copies that a program has of its function, by what its parts refer to."""
    (function,) = (each for each in gc.get_referents(program) if isinstance(each, SharedFunction))
    (copies,) = (each for each in gc.get_referents(function) if isinstance(each, list))
    return [copy for copy in copies if copy is not None]


def copy_of(function: Callable[[Any], Any]) -> FunctionType:
    program = Map("it", function)
    process(program, 1)
    (copy,) = copies_of(program)
    return copy


def cells_of(function: Any) -> tuple[Any, ...]:
    cells: tuple[Any, ...] = function.__closure__
    return cells


def test_lanes_share_a_variable_that_the_function_assigns_to() -> None:
    count, lock = 0, threading.Lock()

    def counting(row: int) -> int:
        nonlocal count
        with lock:
            count += 1
        return row

    assert through(counting) == list(ROWS)
    assert count == len(ROWS)


def test_a_variable_that_another_function_assigns_to_is_seen_at_once() -> None:
    def both() -> tuple[Callable[[int], int], Callable[[], int]]:
        latest = 0

        def set_latest(row: int) -> None:
            nonlocal latest
            latest = row

        def latest_after(row: int) -> int:
            set_latest(row)
            return latest

        return latest_after, lambda: latest

    function, latest = both()
    with ActorSystem(workers=2) as system:
        run = system.run(entry("rows").scan(0, lambda _, row: function(row)).collect())
        run.send("rows", ROWS)
        assert run.finish(30) == list(ROWS)
    assert latest() == ROWS[-1]


def test_a_variable_that_its_maker_assigns_to_is_seen() -> None:
    factor = 1
    seen = threading.Event()

    def multiply(row: int) -> int:
        seen.set()
        return row * factor

    with ActorSystem(workers=2) as system:
        run = system.run(entry("rows").map(multiply).collect(), batch_size=1)
        run.send("rows", [0])
        assert seen.wait(30)
        factor = 10
        run.send("rows", [3])
        assert run.finish(30) == [0, 30]


@pytest.mark.parametrize("name", ["__code__", "__defaults__", "__kwdefaults__"])
def test_a_global_replaced_in_a_function_is_replaced_in_a_run(name: str) -> None:
    def doing(by: int) -> Callable[[int], int]:
        def add(row: int, number: int = 1, *, other: int = 1) -> int:
            return row + number + other

        def multiply(row: int, number: int = 2, *, other: int = 2) -> int:
            return row * number * other

        return add if by == 1 else multiply

    function = doing(1)
    program = Map("it", function)
    process(program, 5)
    setattr(function, name, getattr(doing(2), name))
    assert process(program, 5) == [[function(5)]]


def test_an_error_of_a_call_names_the_function() -> None:
    def of_two(row: int, other: int) -> int:
        return row + other

    with pytest.raises(StreamError) as caught:
        through(of_two)  # type: ignore[arg-type]
    assert "test_an_error_of_a_call_names_the_function.<locals>.of_two()" in repr(
        caught.value.__cause__
    )


def test_a_functions_closure_is_let_go_with_the_run() -> None:
    class Held:
        pass

    def holding() -> tuple[Callable[[int], object], "weakref.ref[Held]"]:
        held = Held()
        return lambda row: (row, held) and row, weakref.ref(held)

    function, held = holding()
    assert through(function) == list(ROWS)
    del function
    gc.collect()
    assert held() is None


class Sums:
    """Has methods, whose `self` lanes share."""

    def __init__(self) -> None:
        self.number = 1

    def add(self, row: int) -> int:
        return row + self.number

    def key(self, row: int) -> int:
        return row % 10


@pytest.mark.parametrize("workers", [2, 4])
def test_stages_try_how_many_lanes_pay_and_no_row_is_lost_or_reordered(workers: int) -> None:
    sums = Sums()
    keyed = entry("rows", int).map(sums.add).key_by(sums.key, partitions=8)
    graph = keyed.scan(0, lambda total, row: total + row).map(lambda pair: pair[1]).collect()
    rows = range(100_000)
    with ActorSystem(workers=workers) as system:
        run = system.run(graph, batch_size=32, time_slice=0.00001)  # so that trials are short
        run.send("rows", rows, timeout=60)
        assert run.finish(60) == graph.run_sequentially({"rows": rows})


@copied
@pytest.mark.parametrize("make", [Map, Filter, FlatMap])
def test_each_thread_has_one_copy(make: Any) -> None:
    program = make("it", lambda row: [row])
    process(program, 1)
    process(program, 2)
    assert len(copies_of(program)) == 1
    in_another_thread(lambda: process(program, 3))
    assert len(copies_of(program)) == 2


@copied
def test_keys_accumulators_and_branches_are_copied() -> None:
    def keyed(row: int) -> int:
        return row % 2

    scan = Scan("it", 0, lambda total, row: total + row, key=keyed, partitions=2)
    assert process(scan, 1, 2, 3) == [[(1, 1), (0, 2), (1, 4)]]
    functions = [each for each in gc.get_referents(scan) if isinstance(each, SharedFunction)]
    assert len(functions) == 2
    for function in functions:
        assert any(isinstance(each, list) and each[0] for each in gc.get_referents(function))
    branch = Branch("it", [keyed], ports=("odd", "even"))
    assert process(branch, 1, 2, 3) == [[1, 3], [2]]


@copied
def test_more_threads_than_copies_call_the_function_itself() -> None:
    program = Map("it", adding(1))
    got: list[Any] = []
    for _ in range(70):
        in_another_thread(lambda: got.append(process(program, 1)))
    assert got == [[[2]]] * 70
    assert len(copies_of(program)) == 64


@copied
def test_a_variable_that_nobody_can_assign_to_is_copied() -> None:
    function = adding(1)
    copy = copy_of(function)
    assert copy(1) == 2
    assert cells_of(copy)[0] is not cells_of(function)[0]


@copied
def test_a_variable_of_two_functions_is_shared() -> None:
    def two() -> list[Callable[[int], int]]:
        number = 1
        return [lambda row: row + number, lambda row: row - number]

    function, other = two()
    assert cells_of(copy_of(function))[0] is cells_of(function)[0]
    assert other(1) == 0


@copied
def test_a_variable_whose_maker_runs_is_shared() -> None:
    number = 1

    def function(row: int) -> int:
        return row + number

    assert cells_of(copy_of(function))[0] is cells_of(function)[0]
    number = 2


@copied
@pytest.mark.parametrize("deep", [False, True])
def test_a_variable_that_the_function_assigns_to_is_shared(deep: bool) -> None:
    def counting() -> Callable[[int], Any]:
        count = 0

        def count_rows(row: int) -> int:
            nonlocal count
            count += row
            return count

        return count_rows

    def counting_deep() -> Callable[[int], Any]:
        count = 0

        def count_rows(row: int) -> int:
            def add() -> None:
                nonlocal count
                count += row

            add()
            return count

        return count_rows

    function = counting_deep() if deep else counting()
    copy = copy_of(function)
    assert cells_of(copy)[0] is cells_of(function)[0]
    assert function(1) == 2


@copied
def test_a_variable_without_a_value_stays_without_one() -> None:
    def unset() -> Callable[[int], int]:
        if has_gil():
            number = 1
        return lambda row: row + number

    with pytest.raises(StreamError) as caught:
        through(unset())
    assert isinstance(caught.value.__cause__, NameError)


def test_other_callables_are_called_as_they_are() -> None:
    class Called:
        def __call__(self, row: int) -> int:
            return row

    for function in (of_module, len, Called(), Called().__call__, None):
        assert shared(function) is function


@pytest.mark.skipif(not has_gil(), reason="without an interpreter lock there are copies")
def test_with_an_interpreter_lock_a_nested_function_is_called_as_it_is() -> None:
    function = adding(1)
    assert shared(function) is function
