"""Each operator against plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callboard.frequency import Counted, Frequent
from callboard.streams import SideOutput, Stream, Watermark, entry

integers = st.lists(st.integers(-50, 50), max_size=60)
sizes = st.integers(1, 7)


def outputs(
    graph: Callable[[Stream[Any]], Stream[Any]], rows: Iterable[Any], batch_size: int = 4
) -> list[Any]:
    """Run what `graph` makes of a stream, on the calling thread."""
    collected: list[Any] = (
        graph(entry("rows")).collect().run_sequentially({"rows": rows}, batch_size=batch_size)
    )
    return collected


# --- row by row --------------------------------------------------------------------------------


def test_a_function_may_yield_or_return_none() -> None:
    def twice_if_odd(n: int) -> Iterable[int]:
        if n % 2:
            yield n
            yield n

    assert outputs(lambda s: s.flat_map(twice_if_odd), [1, 2, 3]) == [1, 1, 3, 3]
    assert outputs(lambda s: s.stateless(lambda n: (n,) if n > 1 else None), [1, 2, 3]) == [2, 3]


class Scale:
    def __init__(self, by: int = 2) -> None:
        self.by = by

    def receive(self, n: int) -> Iterable[int]:
        return (n * self.by,)


class ScaleMany(Scale):
    def __init__(self, by: int = 2) -> None:
        super().__init__(by)
        self.chunks: list[int] = []

    def receive_many(self, rows: list[int]) -> Iterable[int]:
        self.chunks.append(len(rows))
        return [n * self.by for n in rows]


def test_a_stateless_operator_may_be_a_class_or_an_object() -> None:
    assert outputs(lambda s: s.stateless(Scale, by=3), [1, 2]) == [3, 6]
    assert outputs(lambda s: s.stateless(Scale(5)), [1, 2]) == [5, 10]


def test_receive_many_is_handed_the_rows_between_two_watermarks_of_a_batch() -> None:
    many = ScaleMany()
    rows = [1, 2, Watermark(0), 3, 4, 5]
    assert outputs(lambda s: s.stateless(many), rows, 5) == [2, 4, 6, 8, 10]
    assert many.chunks == [2, 2, 1]


def test_receive_many_gets_single_rows_where_branches_meet() -> None:
    many = ScaleMany()
    assert outputs(lambda s: s.union(s.stateless(many)), [1, 2]) == [1, 2, 2, 4]
    assert many.chunks == []


def test_an_output_goes_to_the_side_output_that_it_names() -> None:
    stream = entry("rows").flat_map(lambda n: [n, SideOutput("halves", n / 2)], sides=["halves"])
    graph = stream.map(lambda n: ("whole", n)).union(stream.side("halves")).collect()
    assert graph.run_sequentially({"rows": [1, 2]}) == [("whole", 1), 0.5, ("whole", 2), 1.0]


def test_a_fraction_is_a_part_of_the_rows_and_the_same_part_for_the_same_seed() -> None:
    rows = range(10_000)
    some = outputs(lambda s: s.sample(fraction=0.3), rows)
    assert 2_800 < len(some) < 3_200
    assert some == outputs(lambda s: s.sample(fraction=0.3), rows, 256)
    assert some != outputs(lambda s: s.sample(fraction=0.3, seed=1), rows)
    assert outputs(lambda s: s.sample(fraction=1), rows) == list(rows)
    assert outputs(lambda s: s.sample(fraction=0), rows) == []


@given(integers)
def test_each_row_is_in_the_branch_whose_function_is_the_first_to_be_true(rows: list[int]) -> None:
    big, even, rest = entry("rows").branch(lambda n: n > 9, lambda n: n % 2 == 0)
    for stream, expected in (
        (big, [n for n in rows if n > 9]),
        (even, [n for n in rows if n <= 9 and n % 2 == 0]),
        (rest, [n for n in rows if n <= 9 and n % 2]),
    ):
        assert stream.collect().run_sequentially({"rows": rows}) == expected


def test_throttle_passes_all_rows_on() -> None:
    assert outputs(lambda s: s.throttle(1_000), range(9)) == list(range(9))


# --- with a state ------------------------------------------------------------------------------


def test_an_initial_value_that_changes_is_not_shared_by_keys_or_runs() -> None:
    def append(rows: list[int], row: int) -> list[int]:
        rows.append(row)
        return rows

    none: list[int] = []
    graph = entry("rows").key_by(lambda n: n % 2).fold(none, append).collect()
    for _ in range(2):
        assert graph.run_sequentially({"rows": [1, 2, 3]}) == [(1, [1, 3]), (0, [2])]


@given(integers, sizes)
def test_top_k_gives_the_largest_rows_the_earlier_first(rows: list[int], k: int) -> None:
    best = sorted(rows, key=lambda n: -(n // 5))[:k]
    assert outputs(lambda s: s.top_k(k, lambda n: n // 5), rows) == [best]


@given(integers, sizes)
def test_frequent_gives_the_keys_that_are_more_than_a_share(rows: list[int], every: int) -> None:
    def expected(rows: list[int]) -> Frequent:
        counts = sorted(Counter(n // 5 for n in rows).items(), key=lambda item: -item[1])
        return Frequent([Counted(n, count, 0) for n, count in counts if count * 4 > len(rows)], [])

    def same(left: Frequent, right: Frequent) -> bool:
        counts = [[each.count for each in answer.guaranteed] for answer in (left, right)]
        return set(left.guaranteed) == set(right.guaranteed) and counts[0] == counts[1]

    def by(n: int) -> int:
        return n // 5

    def frequent(**options: Any) -> list[Any]:
        return outputs(lambda s: s.frequent(by, epsilon=1e-3, support=0.25, **options), rows)

    [last] = frequent()
    assert same(last, expected(rows))
    ends = range(every, len(rows) + 1, every)
    parts = [rows[:end] for end in ends]
    if len(rows) % every:
        parts.append(rows)
    answers = frequent(every=every)
    assert len(answers) == len(parts)
    assert all(same(answer, expected(part)) for answer, part in zip(answers, parts, strict=True))


def test_frequent_counts_many_rows_in_bounded_memory() -> None:
    rows = [n if n % 3 else -1 for n in range(3000)]
    [answer] = outputs(lambda s: s.frequent(epsilon=0.1), rows)
    assert [each.key for each in answer.guaranteed] == [-1]
    assert len(answer.possible) < 10
    [(_, even), (_, odd)] = outputs(
        lambda s: s.key_by(lambda n: n % 2).frequent(lambda n: n % 6, epsilon=0.3), list(range(60))
    )
    assert {each.key for each in even.guaranteed} == {0, 2, 4}
    assert {each.key for each in odd.guaranteed} == {1, 3, 5}


class Pairs:
    """A user's class: pairs of rows, and a row that is left at the end."""

    def __init__(self, label: str = "pair") -> None:
        self.label = label
        self.last: Any = None

    def receive(self, row: Any) -> Iterable[Any] | None:
        self.last, last = row if self.last is None else None, self.last
        return None if last is None else [(self.label, last, row)]

    def on_final(self) -> Iterable[Any]:
        return [] if self.last is None else [(self.label, self.last)]


def test_a_stateful_object_sees_all_rows_and_the_end() -> None:
    assert outputs(lambda s: s.stateful(Pairs), [1, 2, 3]) == [("pair", 1, 2), ("pair", 3)]
    assert outputs(lambda s: s.stateful(Pairs, label="two"), [1, 2]) == [("two", 1, 2)]


class Totals:
    def __init__(self) -> None:
        self.total = 0

    def receive_many(self, rows: list[int]) -> Iterable[int]:
        for row in rows:
            self.total += row
            yield self.total

    def on_watermark(self, time: int) -> Iterable[str]:
        return [f"{self.total} at {time}"]

    def on_final(self) -> Iterable[str]:
        return ["end"]


def test_a_stateful_class_may_take_many_rows_at_once() -> None:
    rows = [1, 2, Watermark(5), 3]
    assert outputs(lambda s: s.stateful(Totals), rows) == [1, 3, "3 at 5", 6, "end"]


# --- with keys ---------------------------------------------------------------------------------


class Visits:
    """Counts visits until a watermark, and is idle after it."""

    made = 0

    def __init__(self) -> None:
        Visits.made += 1
        self.count = 0

    def receive(self, row: Any) -> None:
        self.count += 1

    def on_watermark(self, time: Any) -> Iterable[int]:
        count, self.count = self.count, 0
        return [count]

    def is_idle(self) -> bool:
        return self.count == 0


def test_an_idle_object_is_forgotten_and_made_anew_when_its_key_comes_again() -> None:
    Visits.made = 0
    rows = ["a", "a", "b", Watermark(1), "b", Watermark(2), "a", Watermark(3)]
    visits = outputs(lambda s: s.key_by(lambda row: row).stateful(Visits), rows)
    assert visits == [2, 1, 1, 1]
    assert Visits.made == 4
