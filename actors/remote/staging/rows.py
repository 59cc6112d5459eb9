"""Rows of a frame: how many, which, and their keys."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import accumulate, count
from operator import length_hint
from typing import Any

from callboard.remote.protocol.staged_rows import Layout
from callboard.remote.staging.persistent import KeyedRow, RowKey
from callboard.remote.wire.arrow_ipc import ArrowReader, read_batches
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Buffer
from callboard.remote.wire.packed_rows import count_plain_rows


def read_rows(codec: Codec, layout: Layout, payload: Buffer) -> list[Any]:
    """Return the rows of a frame that was counted before; those of Arrow as record batches.

    Raises CodecError.
    """
    if layout is Layout.ARROW:
        return read_batches(payload)
    return codec.decode_rows(payload, is_trusted=True)


def counting_rows(codec: Codec, layout: Layout, payload: Buffer) -> Generator[None, None, int]:
    """Count the rows of a frame, in slices: a generator that yields after each.

    Raises CodecError if they cannot be read.
    """
    if layout is Layout.ARROW:
        batches = yield from ArrowReader().reading(payload)
        return sum(batch.num_rows for batch in batches)
    count = count_plain_rows(payload, codec.most_values)
    return count if count >= 0 else len((yield from codec.decoding_rows(payload)))


def key_in_work(rows: list[Any], left: Iterator[Any], layout: Layout, first: RowKey) -> RowKey:
    """Return the key of the row that `left`, an iterator of these rows, has given last."""
    at = len(rows) - length_hint(left) - 1
    before = sum(batch.num_rows for batch in rows[:at]) if layout is Layout.ARROW else at
    return first._replace(row=first.row + before)


def numbers_of(rows: list[Any], layout: Layout, first: int) -> Iterator[int]:
    """Return the numbers of rows, and of the first row of each record batch."""
    if layout is Layout.ARROW:
        return accumulate((row.num_rows for row in rows), initial=first)
    return count(first)


def keyed_rows(rows: list[Any], layout: Layout, first: RowKey) -> list[KeyedRow]:
    """Return the rows with their keys; `first` is that of the first."""
    numbers = numbers_of(rows, layout, first.row)
    return [KeyedRow(first._replace(row=at), row) for at, row in zip(numbers, rows, strict=False)]
