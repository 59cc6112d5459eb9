"""Messages about staged rows: the bodies of BEGIN, DATA, END, STAGED, COMMIT and ABORT.

Without input and output. Numbers are in network order, a batch's has a sign, text is UTF-8. A
upload has a number that the client chooses, which is its own as long as the upload is open. COMMIT
holds a value, as `codec` encodes it: the job, and a list of winners. The order of a DATA's rows is
that of its sequence number, from 0 on; `checksum` is the CRC-32 of all payloads of an upload.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from struct import Struct
from typing import Any, NamedTuple

from callboard.core import checks
from callboard.core.text import safe_repr, safe_str
from callboard.remote.errors import CodecError
from callboard.remote.protocol.kinds import ENTRY, SEQUENCE, MessageKind, Rejected, unpack
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Buffer

_BEGIN = Struct(
    "!IIQq"
)  # behind the entry's place: upload, partition, attempt, batch; then the job
_DATA = Struct("!IIBI")  # upload, sequence, layout, rows; then the rows
_END = Struct("!IQI")  # upload, rows, checksum
_STAGED = Struct("!Q")  # behind the sequence number of END: rows
_BATCH = Struct("!q")  # of a COMMIT, then a value; of an ABORT, then the job

LONGEST_JOB = 1_000  # bytes


class Layout(IntEnum):
    """How the rows of a DATA are laid out."""

    ROWS = 0
    """As in a TELL_MANY."""
    ARROW = 1
    """As in a BATCH: a stream of record batches."""


class StagedAttempt(NamedTuple):
    """An attempt at a partition that is staged, with how many rows: what a commit names."""

    partition: int
    attempt: int
    rows: int


class BatchName(NamedTuple):
    """A batch: the job's name, which must be no other job's ever, and the batch's number in it."""

    job: str
    batch: int

    def __str__(self) -> str:
        return f"batch {self.batch} of the job {self.job!r}"


class Begin(NamedTuple):
    """Begin with an upload: one attempt at a partition of a batch, for an entry point."""

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
    """The end of an upload, with what all of it must come to."""

    upload: int
    rows: int
    checksum: int


class Commit(NamedTuple):
    """These attempts, and no others, are the batch."""

    name: BatchName
    winners: Sequence[StagedAttempt]


class PackedCommit(NamedTuple):
    """A commit as it came: to read it takes long if it names many winners."""

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


StagingContent = Begin | UploadRows | UploadEnd | PackedCommit | Abort


def checksum(payload: Buffer, before: int = 0) -> int:
    """Return the checksum of payloads, from that of those before this one."""
    return zlib.crc32(payload, before)


# --- to bytes -------------------------------------------------------------------------------------


def checked_name(job: str, batch: int) -> BatchName:
    """Check what a user gives. Raises ValueError, TypeError."""
    if not isinstance(job, str):
        raise TypeError(f"a job is a text, not a {type(job).__name__}")
    try:
        size = len(job.encode())
    except UnicodeEncodeError:
        raise ValueError(f"a job's name is a text that UTF-8 can encode, not {job!r}") from None
    if not 0 < size <= LONGEST_JOB:
        raise ValueError(f"a job's name has 1 to {LONGEST_JOB} bytes, not {len(job)} characters")
    return BatchName(job, checks.whole("batch", batch, -(2**63), 2**63 - 1))


def checked_winners(winners: Any) -> list[StagedAttempt]:
    """Check what a user gives: one winner at most for each partition. Raises ValueError, TypeError.

    A None among them stands for an upload that is still open.
    """
    if not isinstance(winners, Iterable):
        raise TypeError(f"winners are what uploads have as `staged`, not {safe_repr(winners)}")
    checked = []
    for each in winners:
        if not isinstance(each, Sequence) or len(each) != len(StagedAttempt._fields):
            raise TypeError(f"a winner is what an upload has as `staged`, not {safe_repr(each)}")
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


def begin_body(upload: int, name: BatchName, partition: int, attempt: int) -> bytes:
    """Return the body of a BEGIN, without the entry's place before it."""
    return _BEGIN.pack(upload, partition, attempt, name.batch) + name.job.encode()


def data_head(upload: int, sequence: int, layout: Layout, rows: int) -> bytes:
    """Return what comes before the rows in the body of a DATA."""
    return _DATA.pack(upload, sequence, layout, rows)


def end_body(upload: int, rows: int, check: int) -> bytes:
    """Return the body of an END."""
    return _END.pack(upload, rows, check)


def commit_body(codec: Codec, name: BatchName, winners: Sequence[StagedAttempt]) -> bytes:
    """Return the body of a COMMIT."""
    return _BATCH.pack(name.batch) + codec.encode([name.job, [list(each) for each in winners]])


def abort_body(name: BatchName) -> bytes:
    """Return the body of an ABORT."""
    return _BATCH.pack(name.batch) + name.job.encode()


def staged_body(sequence: int, rows: int) -> bytes:
    """Return the body of a STAGED."""
    return SEQUENCE.pack(sequence) + _STAGED.pack(rows)


# --- from bytes -----------------------------------------------------------------------------------


def content(kind: MessageKind, body: Buffer, codec: Codec) -> StagingContent:
    """Read the body of a request. Raises Rejected."""
    try:
        return _READERS[kind](body, codec)
    except Rejected:
        raise
    except (CodecError, LookupError, TypeError, ValueError) as error:
        raise Rejected(f"a {kind.name} cannot be read: {error}") from error


def staged_rows(body: Buffer) -> tuple[int, int]:
    """Read a STAGED: the sequence number of END, and the rows. Raises Rejected."""
    (sequence,), rest = unpack(SEQUENCE, body, MessageKind.STAGED)
    (rows,), _ = unpack(_STAGED, rest, MessageKind.STAGED)
    return sequence, rows


def _read_begin(body: Buffer, codec: Codec) -> Begin:
    (entry,), rest = unpack(ENTRY, body, MessageKind.BEGIN)
    (upload, partition, attempt, batch), job = unpack(_BEGIN, rest, MessageKind.BEGIN)
    return Begin(upload, entry, checked_name(bytes(job).decode(), batch), partition, attempt)


def _read_data(body: Buffer, codec: Codec) -> UploadRows:
    (upload, sequence, layout, rows), payload = unpack(_DATA, body, MessageKind.DATA)
    return UploadRows(upload, sequence, Layout(layout), rows, payload)


def _read_end(body: Buffer, codec: Codec) -> UploadEnd:
    (upload, rows, check), _ = unpack(_END, body, MessageKind.END)
    return UploadEnd(upload, rows, check)


def _read_commit(body: Buffer, codec: Codec) -> PackedCommit:
    (batch,), rest = unpack(_BATCH, body, MessageKind.COMMIT)
    return PackedCommit(codec, batch, rest)


def _read_abort(body: Buffer, codec: Codec) -> Abort:
    (batch,), job = unpack(_BATCH, body, MessageKind.ABORT)
    return Abort(checked_name(bytes(job).decode(), batch))


_READERS: dict[MessageKind, Callable[[Buffer, Codec], StagingContent]] = {
    MessageKind.BEGIN: _read_begin,
    MessageKind.DATA: _read_data,
    MessageKind.END: _read_end,
    MessageKind.COMMIT: _read_commit,
    MessageKind.ABORT: _read_abort,
}
