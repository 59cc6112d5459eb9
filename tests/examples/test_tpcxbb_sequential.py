"""The five programs on cases that are counted by hand, each of which lies on a border."""

import pytest

from tpcxbb.sequential import (
    DAY,
    HOUR,
    Abandoned,
    HourlyPair,
    Pair,
    Trend,
    Viewed,
    abandoned,
    declining,
    fit,
    sessions,
    sold_together,
    viewed_before,
    viewed_together,
)

USER = "user"


def basket(time: int, number: int, items: str) -> list[tuple[int, str, int, str]]:
    return [(time, USER, number, item) for item in items]


def test_a_pair_counts_once_for_each_basket_that_holds_both() -> None:
    lines = basket(0, 1, "ab") + basket(1, 2, "bac") + basket(2, 3, "a") + basket(3, 4, "b")
    assert list(sold_together(lines)) == [
        HourlyPair(0, "a", "b", 2),
        HourlyPair(0, "a", "c", 1),
        HourlyPair(0, "b", "c", 1),
    ]


def test_an_item_twice_in_a_basket_counts_once_and_makes_no_pair_with_itself() -> None:
    assert list(sold_together(basket(0, 1, "aba"))) == [HourlyPair(0, "a", "b", 1)]
    assert list(sold_together(basket(0, 1, "aa"))) == []


def test_an_hour_ends_before_its_last_seconds_successor() -> None:
    lines = basket(HOUR - 1, 1, "ab") + basket(HOUR, 2, "ab") + basket(3 * HOUR, 3, "ab")
    assert [(hour, count) for hour, *_, count in sold_together(lines)] == [(0, 1), (1, 1), (3, 1)]


def test_each_hour_has_its_own_top_and_equals_stand_by_their_items() -> None:
    lines = basket(0, 1, "abc") + basket(1, 2, "bc") + basket(HOUR, 3, "xyz")
    assert list(sold_together(lines, top=2)) == [
        HourlyPair(0, "b", "c", 2),
        HourlyPair(0, "a", "b", 1),
        HourlyPair(1, "x", "y", 1),
        HourlyPair(1, "x", "z", 1),
    ]


def test_only_the_first_different_items_of_a_large_basket_count() -> None:
    assert list(sold_together(basket(0, 1, "ccbbaa"), largest=2)) == [HourlyPair(0, "b", "c", 1)]


def test_a_pause_of_exactly_an_hour_does_not_end_a_session() -> None:
    assert [len(session) for session in sessions([(0, USER), (HOUR, USER)])] == [2]


def test_a_pause_of_a_second_more_ends_it() -> None:
    assert [len(session) for session in sessions([(0, USER), (HOUR + 1, USER)])] == [1, 1]


def test_the_pause_is_counted_from_the_last_event_and_not_from_the_first() -> None:
    events = [(time, USER) for time in range(0, 5 * HOUR, HOUR)]
    assert list(sessions(events)) == [events]


def test_sessions_that_are_open_at_the_end_come_in_the_order_of_the_users_first_events() -> None:
    events = [(0, "b"), (1, "a"), (2 * HOUR, "b"), (2 * HOUR, "c")]
    assert list(sessions(events)) == [[(0, "b")], [(2 * HOUR, "b")], [(1, "a")], [(2 * HOUR, "c")]]


def test_a_pair_counts_once_for_each_session_that_saw_both() -> None:
    views = [
        (0, "u", "b"),
        (1, "v", "a"),
        (2, "u", "a"),
        (3, "v", "b"),
        (4, "u", "b"),
        (5, "v", "c"),
    ]
    assert viewed_together(views) == [Pair("a", "b", 2), Pair("a", "c", 1), Pair("b", "c", 1)]


def test_views_of_two_sessions_are_not_together() -> None:
    assert viewed_together([(0, USER, "a"), (HOUR + 1, USER, "b")]) == []


def test_only_the_first_different_items_of_a_long_session_count() -> None:
    views = [(time, USER, item) for time, item in enumerate("ccbba")]
    assert viewed_together(views, largest=2) == [Pair("b", "c", 1)]


def test_only_the_last_five_views_before_a_purchase_count() -> None:
    views = [(time, USER, item, False) for time, item in enumerate("abcdef")]
    assert [row.viewed for row in viewed_before([*views, (9, USER, "x", True)])] == list("bcdef")


def test_a_view_of_ten_days_ago_counts_and_one_of_a_second_more_does_not() -> None:
    events = [(0, USER, "a", False), (1, USER, "b", False), (10 * DAY + 1, USER, "x", True)]
    assert viewed_before(events) == [Viewed("x", "b", 1)]


def test_the_item_itself_and_other_users_views_do_not_count() -> None:
    events = [(0, USER, "x", False), (1, "other", "a", False), (2, USER, "x", True)]
    assert viewed_before(events) == []


def test_a_purchase_is_a_view_for_the_purchases_after_it() -> None:
    events = [(0, USER, "a", False), (1, USER, "x", True), (1, USER, "y", True)]
    assert viewed_before(events) == [Viewed("x", "a", 1), Viewed("y", "a", 1), Viewed("y", "x", 1)]


def test_a_view_counts_each_time_and_the_most_viewed_stands_first() -> None:
    views = [(time, USER, item, False) for time, item in enumerate("baab")]
    events = [*views, (5, USER, "x", True), (6, "other", "c", False), (7, "other", "x", True)]
    expected = [Viewed("x", "a", 2), Viewed("x", "b", 2), Viewed("x", "c", 1)]
    assert viewed_before(events) == expected
    assert viewed_before(events, top=2) == expected[:2]


def test_items_stand_in_the_order_in_which_a_view_first_counted_for_them() -> None:
    events = [(0, USER, "z", True), (1, USER, "y", True), (2, USER, "z", True)]
    assert [row.bought for row in viewed_before(events)] == ["y", "z"]


VISIT, CART, CHECKOUT = (False, False), (True, False), (False, True)


@pytest.mark.parametrize(
    ("pages", "answer"),
    [
        ([VISIT, CART, VISIT], Abandoned(1, 3, 3.0)),
        ([VISIT, VISIT], Abandoned(0, 0, None)),
        ([CART, CHECKOUT], Abandoned(0, 0, None)),
        ([CHECKOUT, CART], Abandoned(0, 0, None)),
        ([(True, True)], Abandoned(0, 0, None)),
        ([], Abandoned(0, 0, None)),
    ],
)
def test_a_cart_is_left_behind_when_the_session_has_no_checkout(
    pages: list[tuple[bool, bool]], answer: Abandoned
) -> None:
    assert abandoned((time, USER, *page) for time, page in enumerate(pages)) == [answer]


def test_the_average_is_over_sessions_of_all_users() -> None:
    visits = [(0, "u", *CART), (0, "v", *CART), (1, "v", *VISIT), (HOUR + 1, "u", *CHECKOUT)]
    assert abandoned(visits) == [Abandoned(2, 3, 1.5)]


def test_flat_and_falling_groups_are_returned_and_growing_ones_are_not() -> None:
    amounts = [(0, "falls", 9), (0, "grows", 1), (0, "flat", 3), (0, "flat", 2), (1, "flat", 5)]
    amounts += [(1, "grows", 2), (1, "falls", 4), (1, "falls", 4), (3, "falls", 6)]
    assert declining(amounts, str) == [Trend("falls", -1.0), Trend("flat", 0.0)]


def test_a_day_without_amounts_is_left_out_of_the_line() -> None:
    assert declining([(0, "g", 4), (10, "g", 4)], str) == [Trend("g", 0.0)]


def test_a_group_of_one_day_has_no_trend() -> None:
    assert declining([(7, "g", 4), (7, "g", 1)], str) == []


def test_items_of_one_group_are_summed() -> None:
    amounts = [(0, "a1", 3), (1, "b1", 1), (1, "a2", 2), (2, "b2", 2)]
    assert declining(amounts, lambda item: item[0]) == [Trend("a", -1.0)]


def test_the_line_has_the_least_squares() -> None:
    assert fit({0: 1, 1: 3, 2: 2, 3: 5}) == pytest.approx(1.1)


def test_a_slope_just_above_zero_is_not_lost_to_rounding() -> None:
    far = 10**15  # where floating-point sums would lose the 1
    assert declining([(0, "g", far), (1, "g", far + 1)], str) == []
