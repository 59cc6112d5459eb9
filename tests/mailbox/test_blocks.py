"""Blocks of shared memory as Python sees them: buffers for reading, whose end returns them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from callboard.mailbox.shared.blocks import BlockReader, BlockWriter, SharedBlock, memory_size

PAGE = 4096
PAGES = 8


class Region:
    """Both ends of a region, and the descriptor of its memory."""

    def __init__(self) -> None:
        self.memory = os.memfd_create("test")
        os.ftruncate(self.memory, memory_size(PAGES))
        self.writer = BlockWriter(self.memory, PAGES)
        self.reader = BlockReader(self.memory, PAGES)

    def pass_on(self, value: bytes) -> memoryview:
        """Return a view of a value in a block."""
        first = self.writer.write(value)
        assert first is not None
        return memoryview(self.reader.read(first, len(value)))


@pytest.fixture
def region() -> Iterator[Region]:
    made = Region()
    yield made
    os.close(made.memory)


def test_a_block_is_a_buffer_for_reading_only(region: Region) -> None:
    value = os.urandom(3 * PAGE + 1)
    view = region.pass_on(value)
    assert isinstance(view.obj, SharedBlock)
    assert view.readonly
    assert view == value
    with pytest.raises(TypeError, match="read-only"):
        view[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        np.frombuffer(view, np.uint8)[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.frombuffer(view, np.uint8).flags.writeable = True


def test_a_block_is_returned_when_the_last_view_of_it_is_gone(region: Region) -> None:
    array = np.frombuffer(region.pass_on(b"a" * PAGE), np.uint8)
    part = array[10:20]
    other = region.pass_on(b"b" * PAGE)
    del array
    assert region.writer.write(bytes((PAGES - 1) * PAGE)) is None
    assert region.writer.lent == 2
    assert bytes(part) == b"a" * 10
    del part
    assert region.writer.write(bytes((PAGES - 1) * PAGE)) is None  # the other block is in its way
    assert region.writer.lent == 1
    del other
    assert region.writer.write(bytes(PAGES * PAGE)) == 0


def test_views_outlive_both_ends_and_end_in_any_thread(region: Region) -> None:
    views = [region.pass_on(bytes([at]) * 100) for at in range(4)]
    del region.writer, region.reader
    assert [bytes(view) for view in views] == [bytes([at]) * 100 for at in range(4)]
    threads = [threading.Thread(target=view.release) for view in views]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_full_region_takes_nothing_until_a_view_is_gone(region: Region) -> None:
    view = region.pass_on(bytes(PAGES // 2 * PAGE))
    first = region.writer.write(bytes(PAGES // 2 * PAGE))
    assert first is not None
    assert region.writer.write(b"a") is None
    view.release()
    assert region.writer.write(b"a") == 0


def test_blocks_beyond_half_of_the_region_are_copied(region: Region) -> None:
    kept = [region.pass_on(bytes([at]) * PAGE) for at in range(3 * PAGES)]
    assert sum(isinstance(view.obj, SharedBlock) for view in kept) == PAGES // 2
    assert [view[0] for view in kept] == [*range(3 * PAGES)]
    assert all(view.readonly for view in kept)


@pytest.mark.parametrize(
    ("first", "size"),
    [(0, 0), (0, PAGES * PAGE + 1), (PAGES, 1), (PAGES - 1, PAGE + 1), (2**64 - 1, 2**64 - 1)],
)
def test_a_place_outside_of_the_region_is_an_error(region: Region, first: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"expected the place of a block, got page {first} and"):
        region.reader.read(first, size)


def test_trim_returns_memory_to_the_system(region: Region) -> None:
    region.pass_on(bytes(PAGES // 2 * PAGE)).release()
    used = os.fstat(region.memory).st_blocks
    region.writer.trim()
    assert os.fstat(region.memory).st_blocks <= used - PAGES // 2 * PAGE // 512


def test_wrong_arguments_are_refused(region: Region) -> None:
    with pytest.raises(ValueError, match="got one of 0 bytes"):
        region.writer.write(b"")
    with pytest.raises(TypeError):
        region.writer.write(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bytes-like"):
        region.writer.write(1)  # type: ignore[arg-type]
    with pytest.raises(BufferError, match="an empty one"):
        memoryview(SharedBlock())
    for end in (BlockWriter, BlockReader):
        with pytest.raises(OSError, match="cannot be mapped"):
            end(region.memory, 10 * PAGES + 100)


def test_a_fork_cannot_write_blocks(region: Region) -> None:
    child = os.fork()
    if child == 0:
        try:
            region.writer.write(b"a")
        except RuntimeError:
            region.writer.trim()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert region.writer.write(b"a") == 0
