"""The default number of rows in a round: fewer where rows take long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem, ConfigError
from callboard.streams import Run, StreamError, entry
from callboard.streams.running.flow import RoundSizes
from callboard.testing import ManualSystem

WAIT = 60


class Measured:
    """A flow whose rows take as long as a test says."""

    def __init__(self) -> None:
        self.admitted = self.done = 0
        self.longest = 0

    def longest_ns(self) -> int:
        return self.longest


def test_the_first_rounds_are_small_until_one_has_left() -> None:
    flow = Measured()
    sizes = RoundSizes(flow, workers=2)
    sent = []
    for flow.admitted in range(20):
        sent.append(sizes.next())
    assert sent == [1] * 4 + [2] * 4 + [4] * 4 + [8] * 8


@pytest.mark.parametrize(
    ("longest", "rows"),
    [(0, 512), (1, 512), (4_000, 500), (100_000, 20), (2_000_000, 1), (10**12, 1)],
)
def test_a_round_takes_two_milliseconds_where_it_takes_longest(longest: int, rows: int) -> None:
    flow = Measured()
    sizes = RoundSizes(flow, workers=2)
    flow.admitted, flow.done, flow.longest = 5, 1, longest
    assert sizes.next() == rows


def test_rows_that_become_slower_get_smaller_rounds_and_quicker_ones_larger_rounds() -> None:
    flow = Measured()
    sizes = RoundSizes(flow, workers=2)
    got = []
    for flow.done, flow.longest in ((1, 1_000), (1_000, 1_000_000), (2_000, -1), (3_000, 20_000)):
        got.append(sizes.next())
    assert got == [512, 2, 2, 100]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-1, 10**10)), max_size=60))
def test_a_size_is_from_1_to_512_whatever_is_measured(steps: list[tuple[int, int]]) -> None:
    flow = Measured()
    sizes = RoundSizes(flow, workers=3)
    for more, flow.longest in steps:
        flow.admitted += more
        flow.done = min(flow.admitted, flow.done + more // 2)
        assert 1 <= sizes.next() <= 512


def test_workers_share_slow_rows_that_are_sent_together() -> None:
    """Two rows at a time: each waits until another worker has one, too."""
    both = threading.Barrier(2)
    sent = threading.Event()  # before any has left, so that each is a round of its own

    def meet(row: int) -> int:
        assert sent.wait(WAIT)
        both.wait(WAIT)
        return row

    with ActorSystem(workers=2) as system:
        run = system.run(entry("rows", int).map(meet, releases_gil=True).collect())
        run.send("rows", range(4))
        sent.set()
        assert run.finish(timeout=WAIT) == [0, 1, 2, 3]


def rounds_of(run: Run[Any]) -> int:
    return run._work.flow.admitted


def test_a_size_that_the_user_says_is_kept_to() -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(entry("rows", int).collect(), batch_size=100)
        run.send("rows", range(1_000))
        assert rounds_of(run) == 10
        assert run.finish(timeout=WAIT) == list(range(1_000))


def test_a_seed_decides_all_in_a_manual_system_and_no_clock_does() -> None:
    with ManualSystem(3) as system:
        run = system.run(entry("rows", int).collect())
        run.send("rows", range(1_024))
        assert rounds_of(run) == 2
        assert run.finish() == list(range(1_024))


def test_a_size_is_a_whole_number_of_1_or_more() -> None:
    with ActorSystem() as system:
        for size in (0, -1, 1.5, "many", True):
            with pytest.raises(ConfigError, match="batch_size must be a whole number"):
                system.run(entry("rows", int).collect(), batch_size=size)  # type: ignore[arg-type]


def test_results_send_each_row_once_though_sending_takes_many_tries() -> None:
    """The window is full while the operator waits, so sending times out in the middle of a list."""
    go_on = threading.Event()

    def wait(row: int) -> int:
        go_on.wait(WAIT)
        return row

    def sent() -> Iterator[int]:
        yield from range(300)

    with ActorSystem(workers=2) as system:
        run = system.run(entry("rows", int).map(wait, releases_gil=True).collect(), window=4)
        results = run.results(sent())
        releasing = threading.Timer(0.3, go_on.set)
        releasing.start()
        assert list(results) == list(range(300))
        releasing.join()


@pytest.mark.parametrize("size", [None, 512])
def test_an_error_of_results_says_which_of_its_rows_were_sent(size: int | None) -> None:
    """Rows are taken many at a time, and sent few at a time."""

    def fails_late(row: int) -> int:
        if row == 40:
            raise ValueError("row 40")
        return row

    rows = iter(range(3_000))
    with ActorSystem(workers=1) as system:
        graph = entry("rows", int).map(fails_late).collect()
        run = system.run(graph, batch_size=size, window=4)
        with pytest.raises(StreamError, match="at input 40") as raised:
            list(run.results(rows))
        error: Any = raised.value
        assert error.sent == run.position["rows"]
        assert [*range(error.sent), *getattr(error, "unsent", ()), *rows] == list(range(3_000))
