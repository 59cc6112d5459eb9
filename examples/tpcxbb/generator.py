"""A shop's clicks and sales, made up from a seed, in time order and as large as you like.

Sizes and skew are those of the official generator, as its configuration states them; README.md
says what differs. Rows are made while they are read, so memory does not grow with the scale.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from datetime import date
from itertools import count
from random import Random

from tpcxbb.tables import CATEGORIES, SECONDS_A_DAY, Click, Item, Page, Sale

FIRST_DAY = (date(2001, 1, 1) - date(1900, 1, 1)).days

ORDERS = 90_000  # on the web, and in the shops as many; at scale 1, like all sizes here
SESSIONS_PER_ORDER = 5
ITEMS = 18_000
CUSTOMERS = 100_000
STORES = 12
PAGES = 60

PAGE_TYPES = ("general", "order", "welcome", "ad", "feedback", "protected", "dynamic", "review")
CATEGORY_WEIGHTS = (79006, 556814, 929263, 66370, 82067, 51004, 53600, 212836, 68293)

MOST_ITEMS_PER_ORDER = 14
BESTSELLERS = 4
KNOWN_VISITORS = 0.5
LONG_PAUSES = 0.02


class Skewed:
    """Draw numbers below `size`: a share of them crowded around few, the others evenly.

    The crowd is a normal distribution over a fixed shuffle, so the popular numbers are not
    neighbours. `sd` is how many of them lie within one standard deviation to one side.
    """

    def __init__(self, size: int, crowded: float, sd: float, seed: str) -> None:
        shuffle = Random(seed)
        self._order = sorted(range(size), key=lambda _: shuffle.random())
        self._crowded = crowded
        self._sd = sd

    def draw(self, random: Random) -> int:
        size = len(self._order)
        if random.random() < self._crowded:
            radius = self._sd * math.sqrt(-2 * math.log(1 - random.random()))  # Box and Muller
            angle = 2 * math.pi * random.random()
            return self._order[math.floor(size / 2 + radius * math.cos(angle)) % size]
        return below(size, random)


class Shop:
    """A made-up shop: its dimension tables, and its two streams, which start again at each call.

    A `scale` of 1 makes as many rows as the benchmark's scale factor 1: 6.8 million clicks and 675
    thousand sales. Rows grow with the scale, items and customers with its square root. They are
    spread over `days`. Equal seeds, scales and days give equal rows, on any machine.
    """

    def __init__(self, scale: float = 1.0, seed: int = 1, days: int = 28) -> None:
        if not scale > 0:
            raise ValueError(f"the scale is {scale}, which is not more than 0")
        if days < 1:
            raise ValueError(f"the days are {days}, which is fewer than 1")
        root = math.sqrt(scale)
        self._seed = f"{seed} {scale} {days}"
        self._span = days * SECONDS_A_DAY
        self._orders = max(1, round(ORDERS * scale))
        self._stores = max(1, round(STORES * root))
        self._customers = max(1, round(CUSTOMERS * root))
        self._buyer = Skewed(self._customers, 0.5, 400 * root, f"{self._seed} customers")
        items = max(BESTSELLERS, round(ITEMS * root))
        self._item = Skewed(items, 0.4, 60 * root, f"{self._seed} items")
        self.items = list(self._make_items(items))
        self.pages = [Page(sk, PAGE_TYPES[sk % len(PAGE_TYPES)]) for sk in range(PAGES)]
        self._checkouts = [page.wp_web_page_sk for page in self.pages if page.wp_type == "order"]
        self._others = [page.wp_web_page_sk for page in self.pages if page.wp_type != "order"]

    def clicks(self) -> Iterator[Click]:
        """Yield web_clickstreams in time order; clicks of one second in the order of visits."""
        random = Random(f"{self._seed} clicks")
        serial = count()
        to_come: list[tuple[int, int, Click]] = []
        sessions = self._orders * SESSIONS_PER_ORDER
        for number in range(sessions):
            start = self._moment(number, sessions, random)
            while to_come and to_come[0][0] < start:
                yield heapq.heappop(to_come)[2]
            if number % SESSIONS_PER_ORDER == 0:
                session = self._buyer_session(start, number // SESSIONS_PER_ORDER, random)
            else:
                session = self._visitor_session(start, random)
            for click in session:
                heapq.heappush(to_come, (click.seconds, next(serial), click))
        while to_come:
            yield heapq.heappop(to_come)[2]

    def sales(self) -> Iterator[Sale]:
        """Yield store_sales in time order; the lines of a receipt come together."""
        random = Random(f"{self._seed} sales")
        for ticket in range(self._orders):
            day, second = divmod(self._moment(ticket, self._orders, random), SECONDS_A_DAY)
            customer = self._buyer.draw(random)
            store = below(self._stores, random)
            for _ in range(1 + below(MOST_ITEMS_PER_ORDER, random)):
                quantity = 1 + below(100, random)
                price = self._price(random)
                coupon = random.random() if random.random() < 0.2 else 0.0
                paid = round(quantity * price * (1 - coupon))
                item = self._draw_item(random)
                yield Sale(day, second, item, customer, store, ticket, quantity, price, paid)

    def _make_items(self, size: int) -> Iterator[Item]:
        random = Random(f"{self._seed} categories")
        for sk in range(size):
            place = below(sum(CATEGORY_WEIGHTS), random)
            for category, weight in enumerate(CATEGORY_WEIGHTS):
                if place < weight:
                    yield Item(sk, category + 1, CATEGORIES[category])
                    break
                place -= weight

    def _moment(self, number: int, of: int, random: Random) -> int:
        """Return a random second of the number-th of equal parts of the shop's time."""
        return FIRST_DAY * SECONDS_A_DAY + int((number + random.random()) * self._span / of)

    def _draw_item(self, random: Random) -> int:
        if random.random() < 0.05:
            return below(BESTSELLERS, random)
        return self._item.draw(random)

    def _price(self, random: Random) -> int:
        """Return a price in cents, after a mark-up on what the shop paid, and a discount."""
        wholesale = 100 + below(9_901, random)
        return round(wholesale * (1 + random.random()) * (1 - random.random()))

    def _visitor_session(self, start: int, random: Random) -> Iterator[Click]:
        known = random.random() < KNOWN_VISITORS
        user = below(self._customers, random) if known else None
        yield from self._looks(start, 11 + below(11, random), user, random)

    def _buyer_session(self, start: int, order: int, random: Random) -> Iterator[Click]:
        """Yield some looks around, and the checkout: a click for each item, at one moment."""
        user = self._buyer.draw(random)
        last = start
        for click in self._looks(start, 3 + below(4, random), user, random):
            yield click
            last = click.seconds
        day, second = divmod(last + _pause(random), SECONDS_A_DAY)
        page = self._checkouts[below(len(self._checkouts), random)]
        for _ in range(1 + below(MOST_ITEMS_PER_ORDER, random)):
            yield Click(day, second, order, self._draw_item(random), page, user)

    def _looks(self, start: int, clicks: int, user: int | None, random: Random) -> Iterator[Click]:
        for _ in range(clicks):
            day, second = divmod(start, SECONDS_A_DAY)
            page = self._others[below(len(self._others), random)]
            yield Click(day, second, None, self._draw_item(random), page, user)
            start += _pause(random)


def below(size: int, random: Random) -> int:
    """Return a whole number from 0 to size - 1. Only random() stays the same in later Pythons."""
    return int(random.random() * size)


def _pause(random: Random) -> int:
    """Return the seconds from a click to the next: a minute or so, and now and then an absence."""
    absence = below(2 * 60 * 60, random) if random.random() < LONG_PAUSES else 0
    return 1 + int(-60 * math.log(1 - random.random())) + absence
