"""The events of Nexmark: persons, auctions and bids, 1 to 3 to 46, the same for a seed every time.

They are written anew from the description of the benchmark (Tucker, Tufte, Papadimos and Maier,
"NEXMark: a benchmark for queries over data streams", 2008) and of Apache Beam's generator. Of each
50 events the first is a person, the next three are auctions, and the others are bids. Half of all
bids are for the latest hot auction, three of four auctions are of the latest hot seller, and three
of four bids of the latest hot bidder. The others are drawn from the last 100 auctions and the last
1,000 persons, and a few that are yet to come.

Times are milliseconds. Events come in order of time, 10,000 in a second of it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

IN_EPOCH, PERSONS, AUCTIONS = 50, 1, 3
FIRST_PERSON = FIRST_AUCTION = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
BEGIN = 1_436_918_400_000  # milliseconds since 1970: the midnight with which Beam begins
PER_SECOND = 10_000
ACTIVE_PERSONS, OPEN_AUCTIONS, LEAD, HOT = 1_000, 100, 10, 100
TO_COME = OPEN_AUCTIONS * IN_EPOCH // AUCTIONS  # events, until so many auctions have come
LONGEST = 2 * TO_COME * 1_000 // PER_SECOND + 1  # milliseconds from an auction to its end
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond",
          "Seattle", "Kent", "Cheyenne")  # fmt: skip
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter",
               "Walter")  # fmt: skip
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones",
              "Noris")  # fmt: skip
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
Numbers = np.ndarray[Any, Any]
STREAMS = ("person", "auction", "bid")
PLACES = {  # of a stream's events in an epoch
    "person": (0, PERSONS),
    "auction": (PERSONS, PERSONS + AUCTIONS),
    "bid": (PERSONS + AUCTIONS, IN_EPOCH),
}


@dataclass(frozen=True)
class Events:
    """The three streams, each a table of Arrow in order of time."""

    n: int
    seed: int = 0

    @cached_property
    def person(self) -> pa.Table:
        at, epoch, _ = self._places("person")
        draw, n = Draw(self.seed, 1), len(at)
        names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
        return pa.table(
            {
                "id": FIRST_PERSON + epoch,
                "name": draw.of(names, n),
                "email": draw.texts(n, 15),
                "card": draw.texts(n, 19),
                "city": draw.of(CITIES, n),
                "state": draw.of(STATES, n),
                "time": times(at),
                "extra": draw.texts(n, 120),
            }
        )

    @cached_property
    def auction(self) -> pa.Table:
        at, epoch, offset = self._places("auction")
        draw, n = Draw(self.seed, 2), len(at)
        first, time = draw.prices(n), times(at)
        horizon = times(at + TO_COME) - time
        return pa.table(
            {
                "id": FIRST_AUCTION + epoch * AUCTIONS + offset - PERSONS,
                "item": draw.texts(n, 20),
                "description": draw.texts(n, 100),
                "initial_bid": first,
                "reserve": first + draw.prices(n),
                "time": time,
                "expires": time + 1 + draw.below(np.maximum(2 * horizon, 1)),
                "seller": draw.hot(4, epoch // HOT * HOT, draw.person(epoch)) + FIRST_PERSON,
                "category": FIRST_CATEGORY + draw.below(np.full(n, CATEGORIES)),
                "extra": draw.texts(n, 300),
            }
        )

    @cached_property
    def bid(self) -> pa.Table:
        at, epoch, _ = self._places("bid")
        draw, n = Draw(self.seed, 3), len(at)
        last = epoch * AUCTIONS + AUCTIONS - 1
        auction = draw.hot(2, last // HOT * HOT, draw.auction(last))
        bidder = draw.hot(4, epoch // HOT * HOT + 1, draw.person(epoch))
        return pa.table(
            {
                "auction": auction + FIRST_AUCTION,
                "bidder": bidder + FIRST_PERSON,
                "price": draw.prices(n),
                "channel": draw.of(CHANNELS, n),
                "time": times(at),
                "extra": draw.texts(n, 60),
            }
        )

    def _places(self, name: str) -> tuple[Numbers, Numbers, Numbers]:
        """Return the numbers of a stream's events, their epochs, and their places in these."""
        begin, end = PLACES[name]
        at = np.arange(self.n)
        at = at[(at % IN_EPOCH >= begin) & (at % IN_EPOCH < end)]
        return at, at // IN_EPOCH, at % IN_EPOCH


def times(at: Numbers) -> Numbers:
    return BEGIN + at * 1_000 // PER_SECOND


class Draw:
    """What is drawn at random: a stream draws from a generator of its own."""

    def __init__(self, *seed: int) -> None:
        self.random = np.random.Generator(np.random.PCG64(seed))

    def below(self, bounds: Numbers) -> Numbers:
        drawn: Numbers = self.random.integers(0, bounds)
        return drawn

    def prices(self, n: int) -> Numbers:
        """Draw cents, from 1 to a million dollars, whose logarithms are evenly spread."""
        cents: Numbers = np.round(10 ** (self.random.random(n) * 6) * 100).astype(np.int64)
        return cents

    def hot(self, ratio: int, hot: Numbers, cold: Numbers) -> Numbers:
        """Take the hot one, but for one in `ratio`."""
        taken: Numbers = np.where(self.random.integers(0, ratio, len(hot)) > 0, hot, cold)
        return taken

    def person(self, last: Numbers) -> Numbers:
        active = np.minimum(last + 1, ACTIVE_PERSONS)
        drawn: Numbers = last + 1 - active + self.below(active + LEAD)
        return drawn

    def auction(self, last: Numbers) -> Numbers:
        first = np.maximum(last - OPEN_AUCTIONS, 0)
        drawn: Numbers = first + self.below(last - first + 1 + LEAD)
        return drawn

    def of(self, words: "list[str] | tuple[str, ...]", n: int) -> pa.Array:
        places = self.random.integers(0, len(words), n, np.int32)
        return pa.DictionaryArray.from_arrays(places, list(words)).cast(pa.string())

    def texts(self, n: int, length: int) -> pa.Array:
        """Draw from a thousand texts that are `length` letters long in the mean."""
        letters = self.random.integers(97, 123, (1_000, length * 6 // 5), np.uint8)
        ends = self.random.integers(length * 4 // 5, length * 6 // 5 + 1, 1_000)
        words = [row[:end].tobytes().decode() for row, end in zip(letters, ends, strict=True)]
        return self.of(words, n)
