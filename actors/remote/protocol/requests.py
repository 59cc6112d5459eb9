"""Requests about staged and published rows: what they hold, and how a server reads them.

Without I/O. A batch's number has a sign, text is UTF-8. An upload has a number that
the client chooses, unique among its open uploads. The order of a DATA's rows is that of its
sequence number, from 0 on; an END has the CRC-32 of all payloads of the upload.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any, NamedTuple

from callboard.core import checks
from callboard.core.text import safe_repr, safe_str
from callboard.remote.errors import CodecError
from callboard.remote.protocol.kinds import MessageKind, Rejected
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Buffer

LONGEST_JOB = 1_000  # bytes


class Layout(IntEnum):
    """How the rows of a DATA are laid out."""

    ROWS = 0
    """As in a TELL_MANY."""
    ARROW = 1
    """As in a BATCH: a stream of record batches."""


class StagedAttempt(NamedTuple):
    """A staged attempt at a partition, with its number of rows, for a commit."""

    partition: int
    attempt: int
    rows: int


class BatchName(NamedTuple):
    """A batch: the job's name, which is unique for ever, and the batch's number in it."""

    job: str
    batch: int

    def __str__(self) -> str:
        return f"batch {self.batch} of the job {self.job!r}"


class Begin(NamedTuple):
    """The beginning of an upload: one attempt at a partition of a batch, for an entry point."""

    upload: int
    entry: int
    name: BatchName
    partition: int
    attempt: int


class UploadRows(NamedTuple):
    """More rows of an upload."""

    upload: int
    sequence: int
    layout: Layout
    rows: int
    payload: Buffer


class UploadEnd(NamedTuple):
    """The end of an upload, with its number of rows and their checksum."""

    upload: int
    rows: int
    checksum: int


class Commit(NamedTuple):
    """These attempts, and no others, are the batch."""

    name: BatchName
    winners: Sequence[StagedAttempt]


class PackedCommit(NamedTuple):
    """A commit that is not decoded yet, which takes long if it names many winners."""

    codec: Codec
    batch: int
    body: Buffer

    def reading(self) -> Generator[None, None, Commit]:
        """Read it, in slices. Raises Rejected."""
        try:
            job, winners = yield from self.codec.decoding(self.body)
            return Commit(checked_name(job, self.batch), checked_winners(winners))
        except (CodecError, LookupError, TypeError, ValueError) as error:
            raise Rejected(f"a COMMIT cannot be read: {safe_str(error)}") from error


class Abort(NamedTuple):
    """A request to drop the staged rows of the batch."""

    name: BatchName


class PublishedQuery(NamedTuple):
    """A question which rows there are, answered with the fields of a PublishedRange."""

    entry: int


class ReadRows(NamedTuple):
    """A request for the piece with this row, answered with the fields of a PublishedPiece."""

    entry: int
    row: int


class Release(NamedTuple):
    """A request to release the rows before this one, answered with None."""

    entry: int
    row: int


RequestContent = (
    Begin | UploadRows | UploadEnd | PackedCommit | Abort | PublishedQuery | ReadRows | Release
)


class PublishedRange(NamedTuple):
    """The rows of an entry that can be read: from `first` on, before `end`."""

    first: int
    end: int
    schema: bytes
    """A serialized Arrow schema; empty before the first row is published."""


class PublishedPiece(NamedTuple):
    """Rows from `first` on, in a stream of Arrow's IPC format."""

    first: int
    rows: int
    payload: bytes


def payload_checksum(payload: Buffer, before: int = 0) -> int:
    """Return the checksum of payloads, given that of those before this one."""
    return zlib.crc32(payload, before)


def checked_name(job: str, batch: int) -> BatchName:
    """Return the name of a user's batch. Raises ValueError, TypeError."""
    if not isinstance(job, str):
        raise TypeError(f"expected a job's name as a string, got a {type(job).__name__}")
    try:
        size = len(job.encode())
    except UnicodeEncodeError:
        raise ValueError(f"a job's name must be encodable as UTF-8, got {job!r}") from None
    if not 0 < size <= LONGEST_JOB:
        raise ValueError(
            f"a job's name must have 1 to {LONGEST_JOB} bytes in UTF-8, got {size} bytes"
        )
    return BatchName(job, checks.whole("batch", batch, -(2**63), 2**63 - 1))


def checked_winners(winners: Any) -> list[StagedAttempt]:
    """Return a user's winners in order, at most one for each partition.

    Raises ValueError, TypeError. A None among them is an upload that is still open.
    """
    if not isinstance(winners, Iterable):
        raise TypeError(f"expected the `staged` of uploads as winners, got {safe_repr(winners)}")
    checked = []
    for each in winners:
        if not isinstance(each, Sequence) or len(each) != len(StagedAttempt._fields):
            raise TypeError(
                f"expected the `staged` of an upload as a winner, got {safe_repr(each)}"
            )
        partition, attempt, rows = each
        checks.whole("partition", partition, 0, 2**32 - 1)
        checks.whole("attempt", attempt, 0, 2**64 - 1)
        checks.whole("rows", rows, 0)
        checked.append(StagedAttempt(partition, attempt, rows))
    checked.sort()
    for one, other in pairwise(checked):
        if one.partition == other.partition:
            raise ValueError(f"partition {one.partition} has two winners: {one}, {other}")
    return checked


def read_request(kind: MessageKind, body: Buffer, codec: Codec) -> RequestContent:
    """Read the body of a request. Raises Rejected."""
    numbers, rest = kind.unpack(body)
    try:
        return _READERS[kind](codec, rest, *numbers)
    except (CodecError, LookupError, TypeError, ValueError) as error:
        raise Rejected(f"a {kind.name} cannot be read: {error}") from error


def _read_begin(
    codec: Codec, job: Buffer, entry: int, upload: int, partition: int, attempt: int, batch: int
) -> Begin:
    return Begin(upload, entry, checked_name(bytes(job).decode(), batch), partition, attempt)


def _read_data(
    codec: Codec, payload: Buffer, upload: int, sequence: int, layout: int, rows: int
) -> UploadRows:
    return UploadRows(upload, sequence, Layout(layout), rows, payload)


# Each is called with the codec, the rest of the body, and the numbers before it.
_READERS: dict[MessageKind, Callable[..., RequestContent]] = {
    MessageKind.BEGIN: _read_begin,
    MessageKind.DATA: _read_data,
    MessageKind.END: lambda codec, rest, *numbers: UploadEnd(*numbers),
    MessageKind.COMMIT: lambda codec, rest, batch: PackedCommit(codec, batch, rest),
    MessageKind.ABORT: lambda codec, job, batch: Abort(checked_name(bytes(job).decode(), batch)),
    MessageKind.PUBLISHED: lambda codec, rest, entry: PublishedQuery(entry),
    MessageKind.READ: lambda codec, rest, *numbers: ReadRows(*numbers),
    MessageKind.RELEASE: lambda codec, rest, *numbers: Release(*numbers),
}
