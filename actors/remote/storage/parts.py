"""The staged rows of one attempt at a partition: in memory, and beyond a limit in a file.

Nothing here is durable: after a crash the client uploads it again, as another attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from callboard.core.log import log
from callboard.remote.errors import RemoteError, UploadRefused
from callboard.remote.protocol.requests import (
    Begin,
    Layout,
    StagedAttempt,
    UploadEnd,
    UploadRows,
    payload_checksum,
)


class StagedFrame(NamedTuple):
    """Encoded rows, in memory or in the part's file, where they follow those before them."""

    layout: Layout
    rows: int
    size: int
    payload: bytes | None
    check: int
    """The checksum of the part up to here."""


class StagedPart:
    """The frames of one attempt. Used by one thread."""

    def __init__(self, begun: Begin, entry: str, file: Path, now: float) -> None:
        self.name = begun.name
        self.partition = begun.partition
        self.attempt = begun.attempt
        self.entry = entry
        self.rows = 0
        self.memory = 0
        """Bytes of rows in memory."""
        self.disk = 0
        """Bytes of rows in the file."""
        self.touched = now
        """The time of the last request for it, by the store's clock."""
        self.is_complete = False
        self.trouble: RemoteError | None = None
        """Why it was dropped."""
        self._file = file
        self._has_file = False  # or may have one
        self._frames: list[StagedFrame] = []
        self._checksum = 0

    @property
    def winner(self) -> StagedAttempt:
        """The name of this part in a commit."""
        return StagedAttempt(self.partition, self.attempt, self.rows)

    def add(self, data: UploadRows, to_file: bool) -> None:
        """Keep rows. Raises UploadRefused if earlier rows are missing, or the disk is full."""
        if self.is_complete or data.sequence != len(self._frames):
            state = "ended" if self.is_complete else f"has {len(self._frames)} frames"
            raise UploadRefused(f"{self} {state}, but the frame {data.sequence} came")
        size = len(data.payload)
        payload = None if to_file else bytes(data.payload)
        if to_file:
            self._has_file = True
            try:
                with self._file.open("ab") as file:
                    file.write(data.payload)
            except OSError as error:
                raise UploadRefused(f"{self} cannot be kept: {error}") from error
        self._checksum = payload_checksum(data.payload, self._checksum)
        self._frames.append(StagedFrame(data.layout, data.rows, size, payload, self._checksum))
        if to_file:
            self.disk += size
        else:
            self.memory += size
        self.rows += data.rows

    def end(self, end: UploadEnd) -> None:
        """Note that this is all. Raises UploadRefused if it is not."""
        if self.is_complete:
            raise UploadRefused(f"{self} ended before")
        if (end.rows, end.checksum) != (self.rows, self._checksum):
            raise UploadRefused(
                f"expected {end.rows} rows with the checksum {end.checksum:08x}, got {self.rows} "
                f"with {self._checksum:08x}: {self}"
            )
        self.is_complete = True

    def checks(self) -> Iterator[int]:
        """Return the checksum up to each frame, in order."""
        return (frame.check for frame in self._frames)

    def frames(self) -> Iterator[tuple[Layout, int, bytes]]:
        """Return layout, count of rows, and bytes of each frame, in order.

        Raises OSError, also if a file no longer has its rows.
        """
        file, before = None, 0
        try:
            for frame in self._frames:
                payload = frame.payload
                if payload is None:
                    file = file or self._file.open("rb")
                    payload = file.read(frame.size)
                    if payload_checksum(payload, before) != frame.check:
                        raise OSError(f"{self._file} no longer has its rows")
                before = frame.check
                yield frame.layout, frame.rows, payload
        finally:
            if file is not None:
                file.close()

    def drop(self, why: RemoteError) -> None:
        """Drop the rows. Later rows are refused for the same reason."""
        self.trouble = why
        self._frames.clear()
        if self._has_file:
            try:
                self._file.unlink(missing_ok=True)
            except OSError as error:  # the next start removes it
                log.warning("staged rows could not be removed", part=str(self), error=error)
        self.memory = self.disk = 0

    def __str__(self) -> str:
        return f"attempt {self.attempt} at partition {self.partition} of {self.name}"


class JournalFrame(NamedTuple):
    """Committed rows: their partition, the number of the first, and the encoded rows."""

    partition: int
    row: int
    layout: Layout
    payload: bytes


class FreshFrames:
    """Committed frames that are not applied yet, if they were staged in memory and fit.

    Safe in every thread.
    """

    def __init__(self, most: int) -> None:
        """Keep at most this number of bytes."""
        self._most = most
        self._size = 0
        self._frames: dict[tuple[int, str], list[JournalFrame]] = {}  # by batch and entry
        self._lock = Lock()

    def keep(self, number: int, parts: Sequence[StagedPart]) -> None:
        """Keep the rows of a batch, or none of them."""
        size = sum(part.memory for part in parts)
        with self._lock:
            if any(part.disk for part in parts) or self._size + size > self._most:
                return
            self._size += size
            for part in parts:
                self._frames.setdefault((number, part.entry), []).extend(frames_of(part))

    def take(self, number: int, entry: str) -> list[JournalFrame] | None:
        """Remove and return the frames of a batch for an entry; None if there are none."""
        with self._lock:
            frames = self._frames.pop((number, entry), None)
            if frames is not None:
                self._size -= sum(len(frame.payload) for frame in frames)
        return frames


def frames_of(part: StagedPart) -> Iterator[JournalFrame]:
    """Return a part's frames, in order. Raises OSError."""
    row = 0
    for layout, rows, payload in part.frames():
        yield JournalFrame(part.partition, row, layout, payload)
        row += rows
