"""The functions and classes of a user that the operators of random graphs have.

They take any row whatever, so that every operator may follow every other.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from callboard.streams import FailedRow, Watermark


def number(row: Any) -> int:
    """Make a small integer of any row, the same in every process."""
    if row is None:  # of a failure at the end
        return 0
    if isinstance(row, Watermark):
        return int(row.time)
    if isinstance(row, FailedRow):
        return number(row.row) + 1
    if isinstance(row, tuple | list):
        return sum((i + 1) * number(each) for i, each in enumerate(row)) % 1009
    if isinstance(row, str):
        return zlib.crc32(row.encode()) % 1009
    return int(row) % 1009


def is_above(left: Any, right: Any) -> bool:
    """Compare the numbers of two rows."""
    return number(left) % 11 > number(right) % 13


class Refused(Exception):
    """What the functions here raise."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused) and self.args == other.args

    def __hash__(self) -> int:
        return hash(self.args)


@dataclass(frozen=True)
class Functions:
    """The functions of an operator: `n` varies them; those of rows divisible by `fails` raise."""

    n: int = 1
    fails: int = 0

    def check(self, row: Any) -> int:
        value = number(row)
        if self.fails and value % self.fails == 0:
            raise Refused(value)
        return value

    def map(self, row: Any) -> Any:
        return (self.check(row) * 3 + self.n) % 1009

    async def map_awaited(self, row: Any) -> Any:
        await asyncio.sleep(0)
        return self.map(row)

    def filter(self, row: Any) -> bool:
        return self.check(row) % (self.n + 1) != 0

    def flat_map(self, row: Any) -> list[Any]:
        value = self.check(row)
        return [value + i for i in range(value % (self.n + 1))]

    def generate(self, row: Any) -> Iterator[Any]:
        value = number(row)
        for i in range(value % (self.n + 1)):
            yield value + i
        self.check(row)  # after its outputs

    def add(self, total: int, row: Any) -> int:
        return (total + self.check(row)) % 1009

    def key(self, row: Any) -> int:
        return self.check(row) % (self.n + 1)

    def time(self, row: Any) -> int:
        return self.check(row) % 100

    def total(self, rows: list[Any]) -> tuple[int, int]:
        return len(rows), sum(map(number, rows))

    def checked_total(self, rows: list[Any]) -> tuple[int, int]:
        self.check(sum(map(number, rows)))
        return self.total(rows)


class Running:
    """A user's class: the total of a number of rows, what is left at the end, and watermarks."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.sum = self.count = 0

    def receive(self, row: Any) -> list[Any] | None:
        self.sum += self.functions.check(row)
        self.count += 1
        return [self.sum, "many"] if self.count % (self.functions.n + 1) == 0 else None

    def on_watermark(self, time: Any) -> list[Any]:
        self.functions.check(self.sum + time)
        return [("at", time, self.sum)]

    def on_final(self) -> list[Any]:
        self.functions.check(self.sum + self.count)
        return [("final", self.sum)]

    def snapshot(self) -> list[int]:
        return [self.sum, self.count]

    def restore(self, state: list[int]) -> None:
        self.sum, self.count = state


class Many:
    """A user's class without a state that takes rows one by one and in chunks."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions

    def receive(self, row: Any) -> list[Any]:
        return self.functions.flat_map(row)

    def receive_many(self, rows: list[Any]) -> list[Any]:
        return [out for row in rows for out in self.receive(row)]
