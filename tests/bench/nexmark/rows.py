"""Nexmark's queries as graphs of callboard's operators on Python rows, with few lines each."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from callboard.streams import Equal, Graph, SlidingWindow, Stream, TumblingWindow, Window, entry
from nexmark.events import LONGEST, STREAMS, Events
from nexmark.oracle import CATEGORY, DIVISOR, FACTOR, STATES, STEP, WINDOW


class Person(NamedTuple):
    id: int
    name: str
    email: str
    card: str
    city: str
    state: str
    time: int
    extra: str

    @property
    def start(self) -> int:
        return self.time // WINDOW * WINDOW


class Auction(NamedTuple):
    id: int
    item: str
    description: str
    initial_bid: int
    reserve: int
    time: int
    expires: int
    seller: int
    category: int
    extra: str

    @property
    def start(self) -> int:
        return self.time // WINDOW * WINDOW


class Bid(NamedTuple):
    auction: int
    bidder: int
    price: int
    channel: str
    time: int
    extra: str


Row = tuple[Any, ...]
CLASSES = {"person": Person, "auction": Auction, "bid": Bid}
FOREVER = 1 << 40  # milliseconds: q3's rows wait for partners without end


def rows_of(events: Events, name: str) -> list[Any]:
    columns = [column.to_pylist() for column in getattr(events, name).columns]
    return list(map(CLASSES[name], *columns))


def time_of(row: Person | Auction | Bid) -> int:
    return row.time


def passed(bid: Bid) -> Row:
    return bid.auction, bid.bidder, bid.price, bid.time, bid.extra


def in_euros(bid: Bid) -> Row:
    return bid.auction, bid.bidder, FACTOR * bid.price, bid.time, bid.extra


def is_wanted(bid: Bid) -> bool:
    return bid.auction % DIVISOR == 0


def offered(bid: Bid) -> Row:
    return bid.auction, bid.price


def lives_near(person: Person) -> bool:
    return person.state in STATES


def is_of_category(auction: Auction) -> bool:
    return auction.category == CATEGORY


def suggested(person: Person, auction: Auction) -> Row:
    return person.name, person.city, person.state, auction.id


def is_open(pair: tuple[Auction, Bid]) -> bool:
    auction, bid = pair
    return auction.time <= bid.time <= auction.expires


def counted(bids: Iterable[Bid]) -> Counter[int]:
    return Counter([bid.auction for bid in bids])


def start_of(window: Window[Any]) -> int:
    start: int = window.start
    return start


def hottest(panes: Iterable[Window[Counter[int]]]) -> list[tuple[int, int]]:
    counts: Counter[int] = Counter()
    for pane in panes:
        counts.update(pane.value)
    most = max(counts.values())
    return [(auction, count) for auction, count in counts.items() if count == most]


def highest(bids: list[Bid]) -> list[Row]:
    most = max([bid.price for bid in bids])
    return [(bid.auction, bid.bidder, bid.price, bid.time) for bid in bids if bid.price == most]


def with_start(window: Window[list[Row]]) -> list[Row]:
    return [(window.start, *row) for row in window.value]


# --- the graphs -----------------------------------------------------------------------------------


def entries() -> tuple[Stream[Person], Stream[Auction], Stream[Bid]]:
    return entry("person", Person), entry("auction", Auction), entry("bid", Bid)


def q0() -> Graph[Any]:
    return entry("bid", Bid).map(passed).collect()


def q1() -> Graph[Any]:
    return entry("bid", Bid).map(in_euros).collect()


def q2() -> Graph[Any]:
    return entry("bid", Bid).filter(is_wanted).map(offered).collect()


def q3() -> Graph[Any]:
    persons, auctions, _ = entries()
    near, some = persons.filter(lives_near), auctions.filter(is_of_category)
    where = Equal("id", "seller")
    return near.join(some, by="time", within=FOREVER, where=where, combine=suggested).collect()


def q4() -> Graph[Any]:
    _, auctions, bids = entries()
    pairs = auctions.join(bids, by="time", within=(0, LONGEST), where=Equal("id", "auction"))
    of_auction = pairs.filter(is_open).key_by(lambda pair: (pair[0].id, pair[0].category))
    closed = of_auction.fold(0, lambda most, pair: max(most, pair[1].price))
    of_category = closed.key_by(lambda row: row[0][1])
    sums = of_category.fold((0, 0), lambda total, row: (total[0] + row[1], total[1] + 1))
    return sums.map(lambda row: (row[0], row[1][0] / row[1][1])).collect()


def q5() -> Graph[Any]:
    panes = entry("bid", Bid).window(TumblingWindow(STEP, by=time_of, ordered=True), counted)
    windows = panes.window(SlidingWindow(WINDOW, STEP, by=start_of, ordered=True), hottest)
    return windows.flat_map(with_start).collect()


def q7() -> Graph[Any]:
    windows = entry("bid", Bid).window(TumblingWindow(WINDOW, by=time_of, ordered=True), highest)
    return windows.flat_map(with_start).collect()


def q8() -> Graph[Any]:
    persons, auctions, _ = entries()
    where = Equal("id", "seller") & Equal("start")
    new = persons.join(auctions, by="time", within=WINDOW, where=where, how="semi")
    return new.map(lambda person: (person.id, person.name, person.start)).collect()


GRAPHS: dict[str, Callable[[], Graph[Any]]] = {
    "q0": q0, "q1": q1, "q2": q2, "q3": q3, "q4": q4, "q5": q5, "q7": q7, "q8": q8,
}  # fmt: skip
assert tuple(CLASSES) == STREAMS
