"""The five questions as plain sequential programs: what the answers are.

Each takes the tuples that a question makes of the rows of a stream, in the order of the stream.
Times are seconds, and never go back from one tuple to the next. What is ranked is ranked by its
count, the largest first, and by itself among equals. A pair is two different items, the smaller
first.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain, combinations, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from tpcxbb.questions import Question

HOUR = 60 * 60
DAY = 24 * HOUR

Event = TypeVar("Event", bound=tuple[Any, ...])


class HourlyPair(NamedTuple):
    hour: int
    first: Any
    second: Any
    baskets: int


class Pair(NamedTuple):
    first: Any
    second: Any
    sessions: int


class Viewed(NamedTuple):
    bought: Any
    viewed: Any
    views: int


class Abandoned(NamedTuple):
    sessions: int
    pages: int
    average: float | None


class Trend(NamedTuple):
    group: Any
    slope: float


def answer(query: int, question: Question, rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return a query's answer on the rows of the stream that the question names."""
    taken = chain.from_iterable(map(question.fields, rows))
    return list(PROGRAMS[query](taken, **question.settings))


def sold_together(
    lines: Iterable[tuple[int, Hashable, Hashable, Any]],
    top: int = 100,
    largest: int | None = None,
) -> Iterator[HourlyPair]:
    """Query 1: yield, hour by hour, the `top` pairs of items that were in most baskets together.

    A line is (time, customer, basket, item). The lines of a basket come together and have one time
    and one customer; the hour is the number of whole hours since time 0. An item counts once in a
    basket, however many lines it has, and only the first `largest` different items do, if that is
    not None. An hour without a pair yields nothing.
    """
    for hour, of_hour in groupby(lines, lambda line: line[0] // HOUR):
        pairs: Counter[tuple[Any, Any]] = Counter()
        for _, basket in groupby(of_hour, itemgetter(2)):
            pairs.update(pairs_of((item for *_, item in basket), largest))
        for (first, second), baskets in most(pairs, top):
            yield HourlyPair(hour, first, second, baskets)


def viewed_together(
    views: Iterable[tuple[int, Hashable, Any]], top: int = 30, largest: int | None = None
) -> list[Pair]:
    """Query 2: return the `top` pairs of items that were viewed in most sessions together.

    A view is (time, user, item). An item counts once in a session, however often it is viewed, and
    only the first `largest` different items do, if that is not None.
    """
    pairs: Counter[tuple[Any, Any]] = Counter()
    for session in sessions(views):
        pairs.update(pairs_of((item for *_, item in session), largest))
    return [Pair(first, second, count) for (first, second), count in most(pairs, top)]


def viewed_before(
    events: Iterable[tuple[int, Hashable, Any, bool]],
    last: int = 5,
    within: int = 10 * DAY,
    top: int = 30,
) -> list[Viewed]:
    """Query 3: return, for each item bought, the `top` items viewed most before it was bought.

    An event is (time, user, item, whether the item is bought now); each is a view. At a purchase,
    the `last` views of that user before it count for the item that is bought: those of other items,
    and no longer ago than `within`. What is before is said by the order of the stream. A view
    counts at every purchase that it precedes so. The items bought stand in the order in which a
    view first counted for them.
    """
    recent: defaultdict[Hashable, deque[tuple[int, Any]]] = defaultdict(lambda: deque(maxlen=last))
    views: defaultdict[Any, Counter[Any]] = defaultdict(Counter)
    for time, user, item, bought in events:
        if bought:
            for seen, viewed in recent[user]:
                if viewed != item and seen >= time - within:
                    views[item][viewed] += 1
        recent[user].append((time, item))
    return [
        Viewed(item, viewed, count)
        for item, of_item in views.items()
        for viewed, count in most(of_item, top)
    ]


def abandoned(visits: Iterable[tuple[int, Hashable, bool, bool]]) -> list[Abandoned]:
    """Query 4: count the sessions that came to the cart but not to the checkout, and their pages.

    A visit is (time, user, whether the page is the cart, whether it is the checkout). Every visit
    of a session counts as a page. There is one row: sessions, pages, and pages per session, which
    is None if there was no such session.
    """
    count = pages = 0
    for session in sessions(visits):
        if any(cart for *_, cart, _ in session) and not any(checkout for *_, checkout in session):
            count += 1
            pages += len(session)
    return [Abandoned(count, pages, pages / count if count else None)]


def declining(
    amounts: Iterable[tuple[int, Any, int]], group_of: Callable[[Any], Hashable]
) -> list[Trend]:
    """Query 15: return the groups whose daily sums are flat or decline.

    An amount is (day, item, amount), and `group_of(item)` is the item's group. Through the sums of
    a group's days, those without an amount left out, goes the straight line with the least squares;
    the group is returned if the line's slope, in amount per day, is not above 0. A single day has
    no slope, so a group with one is left out. Groups stand in the order of their first amounts.
    """
    sums: defaultdict[Hashable, Counter[int]] = defaultdict(Counter)
    for day, item, amount in amounts:
        sums[group_of(item)][day] += amount
    trends = ((group, fit(of_group)) for group, of_group in sums.items())
    return [Trend(group, slope) for group, slope in trends if slope is not None and slope <= 0]


def sessions(events: Iterable[Event], gap: int = HOUR) -> Iterator[list[Event]]:
    """Cut each user's events, of which the first two fields are time and user, into sessions.

    A pause of more than `gap` between two events of a user ends the session before it. Sessions
    come in the order in which they are known to have ended: at the user's next event, or at the
    end of the stream, then in the order of the users' first events.
    """
    current: dict[Hashable, list[Event]] = {}
    for event in events:
        session = current.setdefault(event[1], [])
        if session and event[0] - session[-1][0] > gap:
            yield session
            session = current[event[1]] = []
        session.append(event)
    yield from current.values()


def pairs_of(items: Iterable[Any], largest: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of the first `largest` different items, or of all."""
    return combinations(sorted(islice(dict.fromkeys(items), largest)), 2)


def most(counts: Mapping[Any, int], top: int) -> list[tuple[Any, int]]:
    """Return the `top` entries, those with the largest counts first, equal ones by their keys."""
    return heapq.nsmallest(top, counts.items(), key=lambda entry: (-entry[1], entry[0]))


def fit(sums: dict[int, int]) -> float | None:
    """Return the slope of the least-squares line through (day, sum); None through a single day.

    In whole numbers up to the division, so that a slope of 0 is 0.
    """
    size = len(sums)
    x = sum(sums)
    y = sum(sums.values())
    xy = sum(day * amount for day, amount in sums.items())
    xx = sum(day * day for day in sums)
    spread = size * xx - x * x
    return (size * xy - x * y) / spread if spread else None


PROGRAMS: dict[int, Callable[..., Iterable[tuple[Any, ...]]]] = {
    1: sold_together,
    2: viewed_together,
    3: viewed_before,
    4: abandoned,
    15: declining,
}

COLUMNS = {
    1: HourlyPair._fields,
    2: Pair._fields,
    3: Viewed._fields,
    4: Abandoned._fields,
    15: Trend._fields,
}
"""What the rows of each query's answer hold."""
