"""Nexmark's queries as graphs of callboard's operators on Arrow batches."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from callboard.streams import Equal, Graph, entry
from nexmark.events import LONGEST
from nexmark.oracle import CATEGORY, DIVISOR, FACTOR, PANES, STATES, STEP, WINDOW
from nexmark.rows import FOREVER

Batch = Any  # a pyarrow.RecordBatch
Numbers = np.ndarray[Any, Any]


def passed(bids: Batch) -> Batch:
    return bids.select(["auction", "bidder", "price", "time", "extra"])


def in_euros(bids: Batch) -> Batch:
    bids = passed(bids)
    return bids.set_column(2, "price", pc.multiply(bids["price"], FACTOR))


def wanted(bids: Batch) -> Batch:
    auctions = bids["auction"].to_numpy()
    return bids.select(["auction", "price"]).filter(pa.array(auctions % DIVISOR == 0))


def near(persons: Batch) -> Batch:
    some = persons.select(["id", "name", "city", "state", "time"])
    return some.filter(pc.is_in(persons["state"], pa.array(STATES)))


def of_category(auctions: Batch) -> Batch:
    some = auctions.select(["id", "seller", "time"]).rename_columns(["auction", "seller", "time"])
    return some.filter(pc.equal(auctions["category"], CATEGORY))


def of_open(pairs: Batch) -> Batch:
    chosen = pairs.select(["auction", "category", "price"])
    return chosen.filter(pc.less_equal(pairs["time_right"], pairs["expires"]))


def with_start(*names: str) -> Callable[[Batch], Batch]:
    """Choose columns, and add the start of a row's window."""

    def choose(batch: Batch) -> Batch:
        start = batch["time"].to_numpy() // WINDOW * WINDOW
        return batch.select([*names, "time"]).append_column("start", pa.array(start))

    return choose


def only(*names: str) -> Callable[[Batch], Batch]:
    return lambda batch: batch.select(list(names))


class Averages:
    """The mean of the highest prices of each category's auctions, at the end."""

    def __init__(self) -> None:
        self.highest = np.zeros(0, np.int64)  # by auction
        self.category = np.zeros(0, np.int64)

    def receive(self, bids: Batch) -> None:
        auctions = bids["auction"].to_numpy()
        if not len(auctions):
            return
        if (more := int(auctions.max()) + 1 - len(self.highest)) > 0:
            more = max(more, len(self.highest))
            self.highest = np.pad(self.highest, (0, more))
            self.category = np.pad(self.category, (0, more))
        np.maximum.at(self.highest, auctions, bids["price"].to_numpy())
        self.category[auctions] = bids["category"].to_numpy()

    def on_final(self) -> list[Batch]:
        sold = self.highest > 0
        categories, places = np.unique(self.category[sold], return_inverse=True)
        sums = np.zeros(len(categories), np.int64)
        np.add.at(sums, places, self.highest[sold])
        means = sums / np.bincount(places, minlength=len(categories))
        return [pa.record_batch({"category": categories, "price": means})]


class Hottest:
    """The auctions with most bids in sliding windows, by panes of one step each."""

    def __init__(self) -> None:
        self.pane = 0
        self.parts: list[Numbers] = []  # auctions of the pane's bids
        self.panes: dict[int, tuple[Numbers, Numbers]] = {}

    def receive(self, bids: Batch) -> list[Batch]:
        auctions = bids["auction"].to_numpy()
        found = []
        for pane, begin, end in runs(bids["time"].to_numpy() // STEP):
            if self.parts and pane != self.pane:
                found += self.close(min(pane, self.pane + PANES))
            self.pane = pane
            self.parts.append(auctions[begin:end])
        return found

    def on_final(self) -> list[Batch]:
        return self.close(self.pane + PANES) if self.parts else []

    def close(self, until: int) -> list[Batch]:
        """Give the windows that end with the panes up to `until`."""
        self.panes[self.pane] = np.unique(np.concatenate(self.parts), return_counts=True)
        self.parts = []
        found = []
        for last in range(self.pane, until):
            first = last + 1 - PANES
            self.panes = {pane: each for pane, each in self.panes.items() if pane >= first}
            auctions, places = np.unique(
                np.concatenate([each[0] for each in self.panes.values()]), return_inverse=True
            )
            counts = np.zeros(len(auctions), np.int64)
            np.add.at(counts, places, np.concatenate([each[1] for each in self.panes.values()]))
            most = counts == counts.max()
            start = np.full(int(most.sum()), first * STEP)
            columns = {"start": start, "auction": auctions[most], "bids": counts[most]}
            found.append(pa.record_batch(columns))
        return found


class Highest:
    """The bids of the highest price in each tumbling window."""

    def __init__(self) -> None:
        self.window = 0
        self.price = 0
        self.rows: list[Batch] = []

    def receive(self, bids: Batch) -> list[Batch]:
        prices = bids["price"].to_numpy()
        found = []
        for window, begin, end in runs(bids["time"].to_numpy() // WINDOW):
            if window != self.window:
                found += self.on_final()
                self.window, self.price, self.rows = window, 0, []
            part = prices[begin:end]
            price = int(part.max())
            if price > self.price:
                self.price, self.rows = price, []
            if price == self.price:
                self.rows.append(bids.take(begin + np.flatnonzero(part == price)))
        return found

    def on_final(self) -> list[Batch]:
        start = self.window * WINDOW
        return [
            rows.select(["auction", "bidder", "price", "time"]).append_column(
                "start", pa.array(np.full(len(rows), start))
            )
            for rows in self.rows
        ]


def runs(values: Numbers) -> list[tuple[int, int, int]]:
    """Return each value that rows in order have, with the first row and that behind the last."""
    bounds = np.flatnonzero(np.diff(values)) + 1
    begins = [0, *bounds.tolist()] if len(values) else []
    return [
        (int(values[begin]), begin, end)
        for begin, end in zip(begins, [*begins[1:], len(values)], strict=True)
    ]


# --- the graphs -----------------------------------------------------------------------------------


def q0() -> Graph[Any]:
    return entry("bid").map_batches(passed).collect()


def q1() -> Graph[Any]:
    return entry("bid").map_batches(in_euros).collect()


def q2() -> Graph[Any]:
    return entry("bid").map_batches(wanted).collect()


def q3() -> Graph[Any]:
    persons, auctions = entry("person").map_batches(near), entry("auction").map_batches(of_category)
    where = Equal("id", "seller")
    return persons.join_batches(auctions, by="time", within=FOREVER, where=where).collect()


def q4() -> Graph[Any]:
    auctions = entry("auction").map_batches(only("id", "category", "time", "expires"))
    bids = entry("bid").map_batches(only("auction", "price", "time"))
    where = Equal("id", "auction")
    pairs = auctions.join_batches(bids, by="time", within=(0, LONGEST), where=where)
    return pairs.map_batches(of_open).stateful(Averages).collect()


def q5() -> Graph[Any]:
    return entry("bid").stateful(Hottest).collect()


def q7() -> Graph[Any]:
    return entry("bid").stateful(Highest).collect()


def q8() -> Graph[Any]:
    persons = entry("person").map_batches(with_start("id", "name"))
    auctions = entry("auction").map_batches(with_start("seller"))
    where = Equal("id", "seller") & Equal("start")
    new = persons.join_batches(auctions, by="time", within=WINDOW, where=where, how="semi")
    return new.map_batches(
        lambda batch: batch.rename_columns(["person", "name", "time", "start"])
    ).collect()


GRAPHS: dict[str, Callable[[], Graph[Any]]] = {
    "q0": q0, "q1": q1, "q2": q2, "q3": q3, "q4": q4, "q5": q5, "q7": q7, "q8": q8,
}  # fmt: skip
