"""Pieces of Arrow batches: joining, gathering rows, cutting into batches of one size."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np

from callboard.streams.programs.columns.layouts import handed_out

# Neighbours in a window that together have no more rows than this become one.
SMALL = 65_536


def joined(batches: list[Any]) -> Any:
    """Join batches with the same columns into one. ArrowInvalid: it is too long."""
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    columns = [
        pa.concat_arrays([batch.column(at) for batch in batches]) for at in range(len(schema))
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def nulls_in(schema: Any, rows: int) -> Any:
    """Make a batch of rows that have only nulls."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays([pa.nulls(rows, each.type) for each in schema], schema=schema)


def side_by_side(left: Any, right: Any, suffix: str, lacking: tuple[bool, bool]) -> Any:
    """Return the schema of the columns of two, which may be null if rows lack them.

    ValueError: two would have one name.
    """
    import pyarrow as pa

    taken = set(left.names)
    fields = [each.with_name(each.name + suffix) if each.name in taken else each for each in right]
    names = left.names + [each.name for each in fields]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"two columns would be {name!r}, of {left.names} and of {right.names} with the "
                f"suffix {suffix!r} behind those that both have"
            )
    return pa.schema(
        [
            each.with_nullable(each.nullable or may_lack)
            for half, may_lack in zip((left, fields), lacking, strict=True)
            for each in half
        ]
    )


def beside(halves: list[Any], schema: Any) -> Any:
    """Make one batch with the columns of two."""
    import pyarrow as pa

    left, right = halves
    return pa.RecordBatch.from_arrays([*left.columns, *right.columns], schema=schema)


class Rebatched:
    """Cuts rows into batches of `size` rows."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows = 0
        self.pieces: deque[tuple[Any, Any]] = deque()  # and the earliest time of each

    def add(self, piece: Any, earliest: Any) -> None:
        """Add rows, of which none is before a time."""
        self.pieces.append((piece, earliest))
        self.rows += len(piece)

    def full(self) -> list[Any]:
        """Take the batches that are full."""
        return [self._take(self.size) for _ in range(self.rows // self.size)]

    def remaining(self) -> list[Any]:
        """Take all that is left."""
        full = self.full()
        return [*full, self._take(self.rows)] if self.rows else full

    def earliest(self) -> Any:
        """Return a lower bound for the times of the waiting rows; None: no row waits."""
        return min((earliest for _, earliest in self.pieces), default=None)

    def _take(self, size: int) -> Any:
        self.rows -= size
        taken = []
        while size:
            piece, earliest = self.pieces.popleft()
            if len(piece) > size:
                self.pieces.appendleft((piece.slice(size), earliest))
                piece = piece.slice(0, size)
            taken.append(piece)
            size -= len(piece)
        return joined(taken)


class BatchWindow:
    """The rows of one stream that may still be in an output. They are numbered as they came."""

    def __init__(self) -> None:
        self.batches: list[Any] = []
        self.begins: list[int] = []
        self.columns: list[list[Any]] = []
        self.end = 0
        self._shown: tuple[Any, Any] = (None, None)  # the only batch, and what is shown of it

    def add(self, batch: Any, columns: list[Any]) -> None:
        """Add rows, and columns of numbers that go with them."""
        self.batches.append(batch)
        self.columns.append(columns)
        self.begins.append(self.end)
        self.end += len(batch)
        while len(self.batches) > 1 and len(self.batches[-2]) <= 2 * len(self.batches[-1]):
            if self.end - self.begins[-2] > SMALL:
                return
            self._join_last(2)

    @property
    def begin(self) -> int:
        """The number of the oldest row."""
        return self.begins[0] if self.begins else self.end

    def drop(self, begin: int) -> None:
        """Drop the rows before one. Memory is freed with whole batches, or when they are joined."""
        gone = 0
        while gone < len(self.batches) and self.begins[gone] + len(self.batches[gone]) <= begin:
            gone += 1
        for kept in (self.batches, self.begins, self.columns):
            del kept[:gone]
        self._shown = (None, None)
        if self.batches and self.begins[0] < begin:
            rows = begin - self.begins[0]
            self.batches[0] = self.batches[0].slice(rows)
            self.columns[0] = [column[rows:] for column in self.columns[0]]
            self.begins[0] = begin

    def part(self, begin: int, end: int) -> Any:
        """Return rows as one batch; all that there are become one."""
        if len(self.batches) > 1:
            self._join_last(len(self.batches))
        return self.batches[0].slice(begin - self.begins[0], end - begin)

    def shown(self, begin: int, end: int, schema: Any) -> Any:
        """Return rows as they came; or as they are inside, if one batch has no room for all."""
        self.part(begin, end)
        if self._shown[0] is not self.batches[0]:
            found = [*handed_out(self.batches[0], schema)]
            self._shown = self.batches[0], found[0] if len(found) == 1 else self.batches[0]
        return self._shown[1].slice(begin - self.begins[0], end - begin)

    def remove(self, number: int) -> None:
        """Take out a row; those behind it are renumbered."""
        before, after = self.part(self.begins[0], number), self.part(number + 1, self.end)
        self.batches[0] = joined([before, after])
        self.columns[0] = [np.delete(each, number - self.begins[0]) for each in self.columns[0]]
        self.end -= 1

    def gather(self, numbers: Any, schema: Any) -> Any:
        """Make a batch of rows by their numbers; -1 is a row of nulls."""
        import pyarrow as pa

        nobody = numbers < 0
        if not nobody.any():
            return self._taken(numbers)
        wanted = numbers[~nobody]
        if not len(wanted):
            return nulls_in(schema, len(numbers))
        places = np.zeros(len(numbers), np.int64)
        places[~nobody] = np.arange(len(wanted))
        return self._taken(wanted).take(pa.array(places, mask=nobody))

    def _taken(self, numbers: Any) -> Any:
        """Make a batch of rows by their numbers, which are in any order, and may come again."""
        at = bisect_right(self.begins, numbers.min()) - 1
        if numbers.max() < self.begins[at] + len(self.batches[at]):
            return self.batches[at].take(numbers - self.begins[at])
        of = np.searchsorted(self.begins, numbers, "right") - 1
        order = None
        if (np.diff(of) < 0).any():
            order = np.argsort(of.astype(np.int16), kind="stable")  # 16 bits: in linear time
            numbers, of = numbers[order], of[order]
        bounds = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(of)]
        found = [
            self.batches[of[begin]].take(numbers[begin:end] - self.begins[of[begin]])
            for begin, end in pairwise(bounds)
        ]
        if order is None:
            return joined(found)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return joined(found).take(places)

    def _join_last(self, count: int) -> None:
        self.batches[-count:] = [joined(self.batches[-count:])]
        self.columns[-count:] = [
            [np.concatenate(parts) for parts in zip(*self.columns[-count:], strict=True)]
        ]
        del self.begins[1 - count :]
