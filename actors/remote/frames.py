"""Frames: how the bytes of a connection are cut into messages.

A frame is a length, of 32 bits in network order, and as many bytes: one that says its kind, and the
body.
"""

from __future__ import annotations

from contextlib import suppress
from struct import Struct
from typing import NamedTuple, TypeAlias

from callboard.remote.errors import ProtocolError

LENGTH = Struct("!I")
HEAD = Struct("!IB")
HEAD_SIZE = HEAD.size
MOST = 2**32 - 1

# Bytes taken from a connection at a time. A frame that is larger is received where it stays.
_CHUNK = 64 * 1024
# So many behind a large frame: if another large one follows, what comes with its length is copied.
_GLANCE = 1024
# So many frames' memory is kept, of frames up to so many bytes.
_PLACES, _KEPT = 4, 4 * 1024 * 1024


Buffer: TypeAlias = bytes | memoryview


class Frame(NamedTuple):
    """One message as it travels: its kind, and its body, which nobody writes to any more."""

    kind: int
    body: Buffer


def head(kind: int, length: int) -> bytes:
    """Return what precedes a body of `length` bytes."""
    return HEAD.pack(length + 1, kind)


def frame(kind: int, *parts: bytes) -> bytes:
    """Return a frame whose body is `parts`, one after the other."""
    return b"".join([head(kind, sum(map(len, parts))), *parts])


class Splitter:
    """Cuts a stream of bytes into frames, however the stream is chopped. Used by one thread.

    The bytes are received into `buffer()`, and `received()` says how many. A frame that fits into a
    chunk is copied once, a larger one only as far as it came in the same chunk as the one before.
    Nothing is allocated for a frame above `limit` bytes, whatever its length says.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._chunk = memoryview(bytearray(_CHUNK))
        self._filled = 0
        self._most = _CHUNK  # to be received at a time
        self._large: memoryview | None = None  # a frame without its length, larger than a chunk
        self._missing = 0  # of that one
        self._places: list[bytearray] = []  # of large frames before, to be used again

    @property
    def is_empty(self) -> bool:
        """Whether the stream stands between two frames."""
        return self._filled == 0 and self._large is None

    def buffer(self) -> memoryview:
        """Return where the next bytes are to be received; it is never empty."""
        if self._large is not None:
            return self._large[-self._missing :]
        return self._chunk[self._filled : self._filled + self._most]

    def received(self, count: int) -> list[Frame]:
        """Take `count` bytes that lie in `buffer()`, and return the frames that are complete.

        Raises ProtocolError for a frame that is too long, or empty. The stream is of no use then.
        """
        if self._large is not None:
            self._missing -= count
            if self._missing:
                return []
            complete, self._large = self._large, None
            self._most = _GLANCE
            return [Frame(complete[0], complete[1:].toreadonly())]
        self._filled += count
        frames = []
        chunk, start = self._chunk, 0
        filled = self._filled
        while filled - start >= LENGTH.size:
            (length,) = LENGTH.unpack_from(chunk, start)
            end = start + LENGTH.size + length
            if length == 0 or end - start > self.limit:
                self._refuse(length)
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

    def _place_for(self, length: int) -> memoryview:
        """Return memory for a large frame: that of one before, if nobody looks into it any more.

        New memory would cost as much as the bytes that go into it.
        """
        for place in self._places:
            if len(place) >= length:
                with suppress(BufferError):  # what somebody looks into cannot change its length
                    place.append(place.pop())
                    return memoryview(place)[:length]
        place = bytearray(length)
        if length <= _KEPT:
            self._places = [place, *self._places[: _PLACES - 1]]
        return memoryview(place)

    def _refuse(self, length: int) -> None:
        if length == 0:
            raise ProtocolError("a frame of no bytes has no kind")
        raise ProtocolError(
            f"a frame of {length + LENGTH.size} bytes is longer than the limit of {self.limit}"
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
                self._large, self._missing, self._filled = large, length - part, 0
                return
        if start and rest:
            self._chunk[:rest] = bytes(self._chunk[start : self._filled])
        self._filled = rest
