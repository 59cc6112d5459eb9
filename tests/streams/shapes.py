"""Graphs as data, from which a graph and its model are made.

A shape is a chain of links. A link is an operator, or a fork: branches that are joined again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from callboard.streams import FailedRow, Stream
from tests.streams.functions import number
from tests.streams.kinds import Op


@dataclass(frozen=True)
class Fork:
    """Branches, each of which has all rows, or (`split`) those that come to it, joined again."""

    branches: tuple[Chain, ...]
    join: str = "union"
    split: bool = False

    def add_to(self, stream: Stream[Any]) -> Stream[Any]:
        """Add the branches and their join to a stream."""
        sources: tuple[Stream[Any], ...] = (stream,) * len(self.branches)
        if self.split:
            count = len(self.branches)
            tests = [goes_to(place, count) for place in range(count - 1)]
            sources = stream.branch(*tests)
        ends = [chain.add_to(source) for chain, source in zip(self.branches, sources, strict=True)]
        joined: Stream[Any] = getattr(ends[0], self.join)(*ends[1:])
        return joined


def goes_to(place: int, count: int) -> Any:
    """Make the test of a branch: rows by their number, those left to the last."""
    return lambda row: number(row) % count == place


@dataclass(frozen=True)
class Mark:
    """A threading model for what comes after it, or a threaded port; it changes no row."""

    model: str

    def add_to(self, stream: Stream[Any]) -> Stream[Any]:
        """Mark a stream."""
        if self.model == "threaded":
            return stream.new_thread()
        return stream.run_on(cast("Any", self.model))


@dataclass(frozen=True)
class Chain:
    """Links, one after the other."""

    links: tuple[Op | Fork | Mark, ...]

    def add_to(self, stream: Stream[Any]) -> Stream[Any]:
        """Add the links to a stream."""
        for link in self.links:
            stream = link.add_to(stream)
        return stream


def plain(row: Any) -> Any:
    """Make rows comparable: failures without their operators' names and serial numbers."""
    if isinstance(row, FailedRow):
        return "failure", plain(row.row), row.error
    if isinstance(row, tuple | list):
        return type(row)(map(plain, row)) if type(row) in {tuple, list} else [*map(plain, row)]
    return row
