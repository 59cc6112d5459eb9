"""Rows of the last commits, in memory: who applies them at once need not read the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple

from callboard.remote.protocol.staged_rows import Layout
from callboard.remote.storage.parts import StagedPart


class JournalFrame(NamedTuple):
    """Committed rows: which partition's, from which row on, and the bytes that hold them."""

    partition: int
    row: int
    layout: Layout
    payload: bytes


class FreshFrames:
    """The frames that were committed and not taken yet, if they were staged in memory and fit. In
    any thread.
    """

    def __init__(self, most: int) -> None:
        """Keep so many bytes of rows, at most."""
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
        """Return what is kept of a batch for an entry, once; None if nothing is."""
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
