"""Frames, into which the bytes of a connection are divided.

A frame is a length of 32 bits in network order, and as many bytes: its kind in one byte, and the
body.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from struct import Struct
from typing import NamedTuple, TypeAlias, TypeVar

from callboard.remote.errors import RemoteError

LENGTH = Struct("!I")
HEAD = Struct("!IB")
HEAD_SIZE = HEAD.size
MOST = 2**32 - 1

# Bytes taken from a connection at a time. A frame that is larger is received where it stays.
_CHUNK = 64 * 1024
# Bytes read behind a large frame: if another large one follows, its first bytes are copied.
_READ_AHEAD = 1024
# A large frame begins with memory for this many bytes, which doubles whenever it is full.
_FIRST = 256 * 1024
# The memory of this many frames is kept, of frames up to this many bytes.
_PLACES, _KEPT = 4, 4 * 1024 * 1024


Buffer: TypeAlias = bytes | memoryview


class Frame(NamedTuple):
    """An encoded message: its kind, and its body, which is not written to any more."""

    kind: int
    body: Buffer


def head(kind: int, length: int) -> bytes:
    """Return what precedes a body of `length` bytes."""
    return HEAD.pack(length + 1, kind)


def frame(kind: int, *parts: bytes) -> bytes:
    """Return a frame whose body is `parts`, one after the other."""
    return b"".join([head(kind, sum(map(len, parts))), *parts])


class ProtocolError(RemoteError):
    """The other side sent a frame that the protocol does not allow at this point."""


class Misframed(ProtocolError):
    """A frame has an invalid length. `before` has the frames that came before it."""

    def __init__(self, text: str, before: list[Frame]) -> None:
        super().__init__(text)
        self.before = before


class Splitter:
    """Cuts a stream of bytes into frames, however the stream is chopped. Used by one thread.

    The bytes are received into `buffer()`, and `received()` says how many. A frame that fits into a
    chunk is copied once. A larger one is copied as far as it came in the same chunk as the one
    before, and when its memory grows. It grows as bytes come, whatever the length says, and nothing
    is allocated for a frame above `limit` bytes.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._chunk = memoryview(bytearray(_CHUNK))
        self._filled = 0
        self._most = _CHUNK  # to be received at a time
        self._large: bytearray | None = None  # of a frame that is larger than a chunk
        self._length = 0  # of that frame, without the bytes that say so
        self._got = 0  # of that
        self._places: list[bytearray] = []  # of large frames before, to be used again
        self._is_useless = False

    @property
    def is_empty(self) -> bool:
        """Whether the stream stands between two frames."""
        return self._filled == 0 and self._large is None

    def buffer(self) -> memoryview:
        """Return where the next bytes are to be received; it is never empty."""
        large = self._large
        if large is None:
            return self._chunk[self._filled : self._filled + self._most]
        if self._got == len(large):
            self._large = bytearray(min(self._length, 2 * self._got))
            self._large[: self._got] = large
            large = self._large
        return memoryview(large)[self._got : self._length]

    def received(self, count: int) -> list[Frame]:
        """Take `count` bytes that lie in `buffer()`, and return the frames that are complete.

        Raises Misframed for a frame that is too long, or empty, and ignores the bytes behind it.
        """
        if self._is_useless:
            return []
        if self._large is not None:
            self._got += count
            return self._complete(self._large) if self._got == self._length else []
        self._filled += count
        frames: list[Frame] = []
        chunk, start = self._chunk, 0
        filled = self._filled
        while filled - start >= LENGTH.size:
            (length,) = LENGTH.unpack_from(chunk, start)
            end = start + LENGTH.size + length
            if length == 0 or end - start > self.limit:
                self._refuse(length, frames)
            if end > filled:
                break
            frames.append(Frame(chunk[start + LENGTH.size], bytes(chunk[start + HEAD_SIZE : end])))
            start = end
        self._most = _CHUNK
        if start == filled:
            self._filled = 0
        else:
            self._keep(start)
        return frames

    def release(self) -> None:
        """Let all memory go: nothing more is received."""
        self._chunk = memoryview(b"")
        self._large = None
        self._places.clear()
        self._is_useless = True

    def feed(self, data: bytes | memoryview) -> list[Frame]:
        """Take bytes that lie elsewhere, and return the frames that are complete."""
        frames = []
        left = memoryview(data)
        while left:
            room = self.buffer()
            count = min(len(room), len(left))
            room[:count] = left[:count]
            frames += self.received(count)
            left = left[count:]
        return frames

    def _complete(self, large: bytearray) -> list[Frame]:
        """Return the large frame that is complete, and keep its memory in mind."""
        if len(large) <= _KEPT and not any(place is large for place in self._places):
            self._places = [large, *self._places[: _PLACES - 1]]
        self._large = None
        self._most = _READ_AHEAD
        return [Frame(large[0], memoryview(large)[1 : self._length].toreadonly())]

    def _place_for(self, length: int) -> bytearray:
        """Return memory for a large frame: that of one before, if nobody looks into it any more.

        New memory would cost as much as the bytes that go into it.
        """
        for place in self._places:
            if len(place) >= length:
                with suppress(BufferError):  # what somebody looks into cannot change its length
                    place.append(place.pop())
                    return place
        return bytearray(min(length, _FIRST))

    def _refuse(self, length: int, before: list[Frame]) -> None:
        self._is_useless = True
        self._filled, self._most = 0, _CHUNK
        if length == 0:
            raise Misframed("a frame of no bytes has no kind", before)
        raise Misframed(
            f"a frame of {length + LENGTH.size} bytes is longer than the limit of {self.limit}",
            before,
        )

    def _keep(self, start: int) -> None:
        """Keep what lies behind `start`: the beginning of a frame."""
        rest = self._filled - start
        if rest >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._chunk, start)
            if length + LENGTH.size > len(self._chunk):
                large = self._place_for(length)
                part = rest - LENGTH.size
                large[:part] = self._chunk[start + LENGTH.size : self._filled]
                self._large, self._length, self._got, self._filled = large, length, part, 0
                return
        if start and rest:
            self._chunk[:rest] = bytes(self._chunk[start : self._filled])
        self._filled = rest


T = TypeVar("T")


def finish(work: Generator[None, None, T]) -> T:
    """Do all of it at once, and return what comes of it."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
