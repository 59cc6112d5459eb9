"""Messages between a program and a worker process, and the blocks for large parts of them.

Each direction of a channel has a region of blocks. A value is encoded as parts: its pickle, and the
buffers that the pickle refers to. A message has a head, the number of places in its table, the
table, and parts. The table has the place of each part: a block, or the end of the message, for
parts without a block. Without a table there is one part, which follows.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callboard.mailbox.shared import blocks
from callboard.mailbox.shared.blocks import BlockReader, BlockWriter
from callboard.mailbox.shared.process_channel import shared_memory

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Parts = Sequence[Any]
"""An encoded value: its pickle, and the large buffers to which that refers."""

LARGE = 32 << 10
"""Bytes from which on a part has a block of its own.

A copy of this size takes as long as all else that a block needs.
"""

_COUNT = struct.Struct("<I")
_PLACE = struct.Struct("<QQ")  # a block's first page, or _IN_MESSAGE; and the size in bytes
_IN_MESSAGE = 2**64 - 1
_NO_TABLE = _COUNT.pack(0)


class MessageBlocks:
    """The blocks that one end of a channel writes, and those that it reads.

    One thread at a time writes, and one at a time reads.
    """

    def __init__(self, written: int, read: int, pages: int) -> None:
        self._writer = BlockWriter(written, pages)
        self._reader = BlockReader(read, pages)
        self.trim = self._writer.trim
        self.sent = self.received = 0
        """The bytes of all parts in each direction."""

    def message(self, head: bytes, parts: Parts) -> bytes:
        """Return a message. Large parts are in blocks, as far as there is room."""
        if len(parts) == 1 and (size := memoryview(parts[0]).nbytes) < LARGE:
            self.sent += size
            return b"".join((head, _NO_TABLE, parts[0]))
        table = bytearray(_COUNT.pack(len(parts)))
        inside = []
        for part in parts:
            size = memoryview(part).nbytes
            self.sent += size
            first = self._writer.write(part) if size >= LARGE else None
            if first is None:
                inside.append(part)
                first = _IN_MESSAGE
            table += _PLACE.pack(first, size)
        return b"".join((head, table, *inside))

    def parts(self, message: bytes, at: int) -> Parts:
        """Return the parts of a message with a head of `at` bytes. Raises ValueError."""
        view = memoryview(message)
        if len(view) < at + _COUNT.size:
            raise ValueError(f"expected {at + _COUNT.size} bytes of a message, got {len(view)}")
        (count,) = _COUNT.unpack_from(view, at)
        at += _COUNT.size
        if count == 0:
            self.received += len(view) - at
            return [view[at:]]
        end = at + count * _PLACE.size
        if end > len(view):
            raise ValueError(f"expected {count} places in a message, got {len(view)} bytes")
        found: list[ReadableBuffer] = []
        for first, size in _PLACE.iter_unpack(view[at:end]):
            self.received += size
            if first != _IN_MESSAGE:
                found.append(self._reader.read(first, size))
                continue
            if size > len(view) - end:
                raise ValueError(f"expected {size} bytes of a part, got {len(view) - end}")
            found.append(view[end : end + size].tobytes())  # at an address of its own
            end += size
        return found


def make_blocks(pages: int, made: list[int]) -> tuple[MessageBlocks, dict[str, int]]:
    """Make the blocks of a program, and return what the process opens them with.

    In each direction they have so many pages of 4 KiB, which take memory only where parts were
    written. Adds the descriptors of their memory to `made`. Raises OSError.
    """
    there, back = (shared_memory(blocks.memory_size(pages), made) for _ in range(2))
    return MessageBlocks(there, back, pages), {"written": back, "read": there, "pages": pages}


def open_blocks(spec: Mapping[str, int]) -> MessageBlocks:
    """Return the blocks of the process."""
    opened = MessageBlocks(spec["written"], spec["read"], spec["pages"])
    os.close(spec["written"])
    os.close(spec["read"])
    return opened
