"""Any thread may use a summary."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from callboard.frequency import SpaceSaving
from tests.frequency.test_bounds import OPTIONS, hold


def in_threads(*work: Callable[[], object]) -> None:
    """Run all at once; what one of them raises is raised here."""
    errors = []
    start = threading.Barrier(len(work))

    def run(one: Callable[[], object]) -> None:
        start.wait()
        try:
            one()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: each.get("design", "default"))
@pytest.mark.parametrize("epsilon", [0.01, 0.001])
@pytest.mark.parametrize("sort", ["integers", "arrays", "texts", "objects"])
def test_counts_of_several_threads_add_up(
    sort: str, epsilon: float, options: dict[str, Any]
) -> None:
    makers: dict[str, Callable[[list[int]], Any]] = {
        "integers": list,
        "arrays": np.array,
        "texts": lambda numbers: [f"key {number}" for number in numbers],
        "objects": lambda numbers: [number + 0.5 for number in numbers],
    }
    summary = SpaceSaving(epsilon, **options)
    batches = [[(i * i * seed) % 4001 for i in range(3000)] for seed in (1, 3, 7, 11)]
    keys = [makers[sort](batch) for batch in batches]

    def count(mine: Any) -> None:
        for _ in range(5):
            summary.update(mine)
            assert summary.total >= len(summary)
            assert len(summary.top(3)) <= 3  # one that gives its counter up meanwhile is left out

    in_threads(*(lambda mine=mine: count(mine) for mine in keys))
    assert len(summary.top(3)) == 3
    exact: Counter[Any] = Counter()
    for mine in keys:
        for _ in range(5):
            exact.update(mine.tolist() if sort == "arrays" else mine)
    hold(summary, exact, adds_up=epsilon == 0.01)  # partitions leave some out


def test_a_caller_during_a_comparison_waits_for_its_end() -> None:
    summary = SpaceSaving(0.1)
    compares, asks, counted = threading.Event(), threading.Event(), threading.Event()

    class Slow:
        def __hash__(self) -> int:
            return 5

        def __eq__(self, other: object) -> bool:
            compares.set()
            assert asks.wait(60)
            assert not counted.is_set()
            return self is other

    summary.add(Slow())

    def other() -> None:
        assert compares.wait(60)
        asks.set()
        summary.add("later")
        counted.set()

    in_threads(lambda: summary.add(Slow()), other)
    assert summary.total == len(summary) == 3


def test_summaries_that_are_merged_crosswise_do_not_wait_for_each_other() -> None:
    left, right = SpaceSaving(0.1), SpaceSaving(0.1)
    left.update([1, 2])
    right.update([2, 3])

    def merge(one: SpaceSaving, other: SpaceSaving) -> None:
        for _ in range(30):
            one.merge(other.copy())

    in_threads(lambda: merge(left, right), lambda: merge(right, left))
    assert left.total >= 62
    assert right.total >= 62


def test_an_array_that_another_thread_writes_is_counted_in_some_order_of_both() -> None:
    array = np.zeros(200_000, dtype=np.int64)
    others = [np.random.default_rng(seed).integers(0, 50, len(array)) for seed in (1, 2)]
    summary = SpaceSaving(0.001)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for other in others:
                array[:] = other

    def count() -> None:
        try:
            for _ in range(10):
                summary.update(array)
        finally:
            done.set()

    in_threads(write, count)
    assert summary.total == sum(each.count for each in summary) == 10 * len(array)
    assert len({each.key for each in summary}) == len(summary)


def test_a_summary_can_be_copied_and_sent_while_others_count() -> None:
    summary = SpaceSaving(0.001, streams=3)
    done = threading.Event()

    def count() -> None:
        try:
            for _ in range(100):
                summary.update(list(range(500)))
        finally:
            done.set()

    def send() -> None:
        while not done.is_set():
            for other in (SpaceSaving.from_bytes(summary.to_bytes()), summary.copy()):
                assert other.total == sum(each.count for each in other)

    in_threads(count, send)


def test_a_key_that_is_looked_up_may_count_a_long_array() -> None:
    summary = SpaceSaving(0.1)

    class Counting:
        def __hash__(self) -> int:
            summary.update(np.arange(300_000))
            return 1

    key = Counting()
    assert summary.estimate(key) == (key, 0, 0)
    assert summary.total == 300_000


def test_keys_of_one_weight_and_then_lighter_ones_have_no_more_counters_than_there_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("callboard.frequency.space_saving.usable_cores", lambda: 2)
    for _ in range(4):  # keys fall into two partitions by a hash that differs in each process
        summary = SpaceSaving(1 / 1024, streams=2)
        exact: Counter[Any] = Counter(dict.fromkeys(range(2000), 100))
        summary.update(exact)
        for begin in range(10**6, 10**6 + 6000, 100):
            summary.update(list(range(begin, begin + 100)))
            exact.update(range(begin, begin + 100))
            assert len(summary) == summary.capacity
            assert len(summary.top(10**6)) == summary.capacity
        assert len(summary.copy()) == 1024
        hold(SpaceSaving.from_bytes(summary.to_bytes()), exact, adds_up=False)
        summary.add(1.5)  # keeps objects from here on
        exact[1.5] += 1
        hold(summary, exact, adds_up=False)
