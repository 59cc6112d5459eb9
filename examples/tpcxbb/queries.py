"""The five queries as graphs, in the shapes of Prasaad, Ramalingam and Rajan (2018), table 1.

    1   SS -> SL -> PS -> PS -> SF
    2   WC -> SL -> PS -> SL -> PS -> SF
    3   WC -> SL -> PS -> PS
    4   WC -> SL -> PS -> SL -> SF
    15  SS -> SL -> SL -> PS

SS are the shop's sales, WC the clicks; SL is a stateless operator, PS one with a state for each
key, SF one with a single state. The first SL takes the fields of a row that the question names.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from operator import itemgetter
from typing import Any

from callboard.streams import Graph, Stream, entry
from tpcxbb.operators import (
    Average,
    Baskets,
    HourlyCounts,
    HourlyTop,
    Line,
    Recent,
    Sessions,
    Top,
    Views,
)
from tpcxbb.questions import Question
from tpcxbb.sequential import DAY, Abandoned, HourlyPair, Pair, Trend, Viewed, pairs_of

PARTITIONS = 64
PAIR_GROUPS = 1024

user = itemgetter(1)
"""The key of all events; see `sequential.py` for what stands in them."""


def graph(query: int, question: Question, partitions: int = PARTITIONS) -> Graph[list[Any]]:
    """Return the graph that answers a query's question."""
    taken = entry(question.stream).flat_map(question.fields, name="fields")
    return SHAPES[query](taken, partitions, **question.settings).collect()


def sold_together(
    lines: Stream[Any], partitions: int, top: int = 100, largest: int | None = None
) -> Stream[HourlyPair]:
    return (
        lines.key_by(user, partitions=partitions)
        .stateful(Baskets, largest)
        .key_by(group_of_pairs, partitions=partitions)
        .stateful(HourlyCounts)
        .stateful(HourlyTop, top)
    )


def group_of_pairs(sold: tuple[int, tuple[Any, Any]]) -> int:
    """Return a key that many pairs share, so that the states of an hour's go with the hour."""
    return hash(sold[1]) % PAIR_GROUPS


def viewed_together(
    views: Stream[Any], partitions: int, top: int = 30, largest: int | None = None
) -> Stream[Pair]:
    def pairs(session: list[tuple[int, Hashable, Any]]) -> Iterable[tuple[Any, Any]]:
        return pairs_of((item for *_, item in session), largest)

    return (
        views.key_by(user, partitions=partitions)
        .stateful(Sessions)
        .flat_map(pairs)
        .key_by(tuple, partitions=partitions)
        .count()
        .stateful(Top, top)
    )


def viewed_before(
    events: Stream[Any], partitions: int, last: int = 5, within: int = 10 * DAY, top: int = 30
) -> Stream[Viewed]:
    return (
        events.key_by(user, partitions=partitions)
        .stateful(Recent, last, within)
        .key_by(itemgetter(0), partitions=partitions)
        .stateful(Views, top)
    )


def abandoned(visits: Stream[Any], partitions: int) -> Stream[Abandoned]:
    return (
        visits.key_by(user, partitions=partitions)
        .stateful(Sessions)
        .flat_map(pages_if_abandoned)
        .stateful(Average)
    )


def pages_if_abandoned(session: list[tuple[int, Hashable, bool, bool]]) -> Iterable[int]:
    cart = any(cart for *_, cart, _ in session)
    return (len(session),) if cart and not any(checkout for *_, checkout in session) else ()


def declining(
    amounts: Stream[Any], partitions: int, group_of: Callable[[Any], Hashable]
) -> Stream[Trend]:
    def of_group(amount: tuple[int, Any, int]) -> tuple[int, Hashable, int]:
        day, item, value = amount
        return day, group_of(item), value

    return amounts.map(of_group).key_by(itemgetter(1), partitions=partitions).stateful(Line)


SHAPES: dict[int, Callable[..., Stream[Any]]] = {
    1: sold_together,
    2: viewed_together,
    3: viewed_before,
    4: abandoned,
    15: declining,
}
