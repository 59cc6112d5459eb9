"""The graphs of Schneider and Wu 2017, section 5: 1,000 operators of a known number of operations.

    pipeline   all in a row
    wide       side by side, each with an entry of its own, into one sink that counts
    mixed      ten rows of a hundred, likewise

An operator multiplies so many times for each row (`natives/operator.hpp`). Beside these:

    asleep     ten operators side by side, which sleep for so many nanoseconds for each row
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from callboard.streams import Graph, Stream, entry
from natives import load
from streams.playing import LOW_BITS

OPERATORS = load("streams")
WIDTHS = {"pipeline": 1, "wide": 1_000, "mixed": 10, "asleep": 10}
FLOPS_OF_A_ROUND = {
    "pipeline": 5_000_000,
    "wide": 10_000_000,
    "mixed": 2_000_000,
    "asleep": 14_000_000,
}
MOST_ROWS = {"pipeline": 512, "wide": 1_000, "mixed": 1_000, "asleep": 1_000}


@dataclass(frozen=True)
class Shape:
    """A graph's shape, and the cost of a row at an operator."""

    name: str
    flops: int
    operators: int = 1_000

    @property
    def width(self) -> int:
        return min(self.operators, WIDTHS[self.name])

    @property
    def depth(self) -> int:
        return self.operators // self.width

    @property
    def rows(self) -> int:
        """How many rows are a round: many, but a round takes a few milliseconds."""
        few = FLOPS_OF_A_ROUND[self.name] // (self.flops * self.depth)
        return max(1, min(MOST_ROWS[self.name], few))

    def graph(self) -> Graph[list[int]]:
        """Make the graph, which gives how many rows came, half their sum, and whether in order."""
        branches = [self._branch(number) for number in range(self.width)]
        first, *others = branches
        merged = first.union(*others) if others else first
        return merged.native(OPERATORS.InOrder).collect()

    def _branch(self, number: int) -> Stream[Any]:
        stream = entry(f"{number}")
        works = OPERATORS.Asleep if self.name == "asleep" else OPERATORS.FloatingPoint
        for _ in range(self.depth):
            stream = stream.native(works, self.flops)
        return stream

    def rounds(self) -> Iterator[tuple[str, list[int]]]:
        """Give rounds without end, each for the next of the entries."""
        serial = 0
        while True:
            for number in range(self.width):
                yield f"{number}", [i << LOW_BITS for i in range(serial, serial + self.rows)]
                serial += self.rows


def outcome(rows: int) -> list[int]:
    """Return what a graph must give for so many rows."""
    of_all = (rows * (rows - 1) // 2 << LOW_BITS) % 2**64
    return [rows, of_all >> 1, 1]
