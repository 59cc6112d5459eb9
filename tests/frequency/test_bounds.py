"""The bounds that Space Saving promises: Metwally et al. 2006, lemmas 3 to 7."""

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.frequency import Counted, SpaceSaving
from callboard.frequency.space_saving import DESIGNS

EPSILONS = st.sampled_from([0.9, 0.5, 0.3, 0.1, 0.05, 0.01])
INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20)
TEXTS = st.text(max_size=3) | st.sampled_from(["a", "b", "ä", "漢", "a" * 40])
NATIVE = st.recursive(
    INTEGERS | TEXTS | st.binary(max_size=3), lambda parts: st.tuples(parts, parts), max_leaves=4
)
ANYTHING = (
    NATIVE
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False)
    | st.fractions()
    | st.integers()
    | st.frozensets(INTEGERS, max_size=2)
)
OPTIONS: list[dict[str, Any]] = [{}, *({"streams": 3, "design": design} for design in DESIGNS)]
ANY_OPTIONS = st.sampled_from(OPTIONS)
KEYS = st.one_of(*(st.lists(keys, max_size=60) for keys in (INTEGERS, TEXTS, NATIVE, ANYTHING)))


def hold(summary: SpaceSaving, exact: Counter[Any], adds_up: bool = True) -> None:
    """Hold a summary to its promises about these counts."""
    total = sum(exact.values())
    bound = Fraction(total) * Fraction(summary.epsilon)
    counted = {each.key: each for each in summary}
    assert summary.total == total
    assert len(summary) == len(counted) <= summary.capacity
    summed = sum(each.count for each in counted.values())
    assert summed == total if adds_up else summed <= total
    for key, each in counted.items():
        assert each.count - each.error <= exact[key] <= each.count <= exact[key] + bound
    assert summary.unseen <= bound
    for key, times in exact.items():
        assert key in counted or times <= summary.unseen
        estimate = summary.estimate(key)
        assert estimate.count - estimate.error <= times <= estimate.count


@given(EPSILONS, ANY_OPTIONS, st.lists(KEYS, max_size=4))
def test_counts_are_within_their_bounds(
    epsilon: float, options: dict[str, Any], batches: list[list[Hashable]]
) -> None:
    summary = SpaceSaving(epsilon, **options)
    exact: Counter[Any] = Counter()
    for batch in batches:
        summary.update(batch)
        exact.update(batch)
        hold(summary, exact)


@given(EPSILONS, ANY_OPTIONS, st.lists(st.tuples(ANYTHING, st.integers(0, 2**40)), max_size=40))
def test_weighted_ones_are_too(
    epsilon: float, options: dict[str, Any], rows: list[tuple[Hashable, int]]
) -> None:
    summary = SpaceSaving(epsilon, **options)
    exact: Counter[Any] = Counter()
    for key, weight in rows:
        summary.add(key, weight)
        exact[key] += weight
    hold(summary, +exact)
    together = SpaceSaving(epsilon, **options)
    together.update([key for key, _ in rows], [weight for _, weight in rows])
    hold(together, +exact)
    if not options:
        assert list(together) == list(summary)


@given(EPSILONS, ANY_OPTIONS, KEYS, KEYS, KEYS)
def test_merged_ones_are_too(
    epsilon: float,
    options: dict[str, Any],
    left: list[Hashable],
    right: list[Hashable],
    later: list[Hashable],
) -> None:
    summary, other = SpaceSaving(epsilon, **options), SpaceSaving(epsilon)
    summary.update(left)
    other.update(right)
    before = list(other)
    summary.merge(other)
    hold(summary, Counter(left) + Counter(right), adds_up=False)
    assert list(other) == before
    summary.update(later)
    hold(summary, Counter(left) + Counter(right) + Counter(later), adds_up=False)


@given(st.sampled_from([0.2, 0.05, 0.01]), ANY_OPTIONS, KEYS, st.floats(0.2, 0.9))
def test_frequent_keys_are_all_found(
    epsilon: float, options: dict[str, Any], keys: list[Hashable], support: float
) -> None:
    summary = SpaceSaving(epsilon, **options)
    summary.update(keys)
    frequent = summary.frequent(support)
    bar = Fraction(support) * len(keys)
    exact = Counter(keys)
    assert {key for key, times in exact.items() if times > bar} <= {
        each.key for each in [*frequent.guaranteed, *frequent.possible]
    }
    assert all(exact[each.key] > bar for each in frequent.guaranteed)
    assert all(each.count > bar >= each.count - each.error for each in frequent.possible)


@given(EPSILONS, ANY_OPTIONS, KEYS, st.integers(0, 70))
def test_the_top_are_those_with_the_greatest_counts(
    epsilon: float, options: dict[str, Any], keys: list[Hashable], k: int
) -> None:
    summary = SpaceSaving(epsilon, **options)
    summary.update(keys)
    top = summary.top(k)
    counts = sorted((each.count for each in summary), reverse=True)
    assert [each.count for each in top] == counts[:k]
    assert set(top) <= set(summary)


def test_with_room_for_all_counts_are_exact() -> None:
    summary = SpaceSaving(0.01)
    summary.update(["b", "a", "b", "c", "b", "a"])
    assert summary.top(2) == [Counted("b", 3, 0), Counted("a", 2, 0)]
    assert summary.estimate("c") == Counted("c", 1, 0)
    assert summary.estimate("d") == Counted("d", 0, 0)


def test_the_least_counter_is_taken_over() -> None:
    summary = SpaceSaving(0.5)
    summary.update(["a", "a", "b", "c"])
    assert set(summary) == {Counted("a", 2, 0), Counted("c", 2, 1)}
    assert summary.estimate("b") == Counted("b", 1, 1)  # as many as it had when it lost its counter
    assert summary.unseen == 1


@pytest.mark.parametrize("design", ["cooperative", "", None, 1])
def test_an_unknown_design_is_refused(design: Any) -> None:
    with pytest.raises(ValueError, match="expected one of auto, sequential, partitioned, got "):
        SpaceSaving(0.01, design=design)


@pytest.mark.parametrize(
    ("epsilon", "capacity"),
    [(0.5, 2), (0.3, 4), (1e-4, 10_000), (1e-5, 100_000), (0.003, 334), (0.999, 2)],
)
def test_there_is_a_counter_for_each_epsilon(epsilon: float, capacity: int) -> None:
    assert SpaceSaving(epsilon).capacity == capacity


def test_a_long_stream_of_new_keys_takes_bounded_memory_and_keeps_the_frequent_ones() -> None:
    summary = SpaceSaving(0.01)
    for begin in range(0, 100_000, 1_000):
        summary.update([*range(begin, begin + 1_000), *[-1] * 100])
    assert len(summary) == 100
    assert summary.total == 110_000
    [(key, count, error)] = summary.top(1)
    assert key == -1
    assert count - error <= 10_000 <= count <= 10_000 + 1_100


def weights_of(summary: SpaceSaving) -> Sequence[int]:
    return sorted(each.count for each in summary)


def test_weights_of_all_sizes_leave_the_least_the_least() -> None:
    summary = SpaceSaving(0.25)
    for number in range(200):
        least = min(weights_of(summary), default=0) if len(summary) == 4 else 0
        summary.add(number, 1 + (number * 7919) ** 5 % 10**12)
        if number >= 4:
            assert summary.estimate(number).error == least
