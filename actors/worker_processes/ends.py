"""The two ends of a channel between a program and a worker process, in shared memory.

An end has rings for messages, and blocks for large parts of them. A value is encoded as parts: its
pickle, and the buffers that the pickle refers to. A message has a head, the number of places in its
table, the table, and parts. The table has the place of each part: a block, or the end of the
message, for parts without a block. Without a table there is one part, which follows.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callboard.mailbox.shared import blocks, byte_channel
from callboard.mailbox.shared.blocks import BlockReader, BlockWriter
from callboard.mailbox.shared.byte_channel import ByteChannel

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Parts = Sequence[Any]
"""An encoded value: its pickle, and the large buffers to which that refers."""

LARGE = 32 << 10
"""Bytes from which on a part has a block of its own.

A copy of this size takes as long as all else that a block needs.
"""

_CAPACITY = 1 << 20  # bytes of shared memory for messages in each direction
# Pages of 4 KiB for large parts in each direction. They take memory only where parts were written.
_PAGES = 1 << 14
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

    def message(self, head: bytes, parts: Parts) -> bytes:
        """Return a message. Large parts are in blocks, as far as there is room."""
        if len(parts) == 1 and memoryview(parts[0]).nbytes < LARGE:
            return b"".join((head, _NO_TABLE, parts[0]))
        table = bytearray(_COUNT.pack(len(parts)))
        inside = []
        for part in parts:
            size = memoryview(part).nbytes
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
            return [view[at:]]
        end = at + count * _PLACE.size
        if end > len(view):
            raise ValueError(f"expected {count} places in a message, got {len(view)} bytes")
        found: list[ReadableBuffer] = []
        for first, size in _PLACE.iter_unpack(view[at:end]):
            if first != _IN_MESSAGE:
                found.append(self._reader.read(first, size))
                continue
            if size > len(view) - end:
                raise ValueError(f"expected {size} bytes of a part, got {len(view) - end}")
            found.append(view[end : end + size].tobytes())  # at an address of its own
            end += size
        return found


def make_first(made: list[int]) -> tuple[ByteChannel, MessageBlocks, dict[str, int]]:
    """Make shared memory. Return the first end, and what the second one is opened with.

    Adds to `made` the descriptors that this process has to pass on and to close: `own` and `other`
    after the end of the channel. Raises OSError.
    """
    memory = _shared_memory(byte_channel.memory_size(_CAPACITY), made)
    there, back = (_shared_memory(blocks.memory_size(_PAGES), made) for _ in range(2))
    flags = os.EFD_CLOEXEC | os.EFD_NONBLOCK
    made.append(own := os.eventfd(0, flags))
    made.append(other := os.eventfd(0, flags))
    channel = ByteChannel(memory, _CAPACITY, own, other, True)
    sizes = {"capacity": _CAPACITY, "pages": _PAGES}
    spec = {"memory": memory, "own": other, "other": own, "written": back, "read": there, **sizes}
    return channel, MessageBlocks(there, back, _PAGES), spec


def open_second(spec: Mapping[str, int]) -> tuple[ByteChannel, MessageBlocks]:
    """Return the second end, in the other process."""
    memory, own, other = spec["memory"], spec["own"], spec["other"]
    channel = ByteChannel(memory, spec["capacity"], own, other, False)
    opened = MessageBlocks(spec["written"], spec["read"], spec["pages"])
    for descriptor in (memory, spec["written"], spec["read"]):
        os.close(descriptor)
    for descriptor in (own, other):
        os.set_inheritable(descriptor, False)
    return channel, opened


def _shared_memory(size: int, made: list[int]) -> int:
    made.append(memory := os.memfd_create("callboard", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
    os.ftruncate(memory, size)
    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)  # so that no process can take it away
    return memory
