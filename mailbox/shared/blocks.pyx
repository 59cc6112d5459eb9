"""Blocks of shared memory: large values, which one process writes and another one reads in place."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint64_t
from libc.string cimport memcpy


@cython.final
cdef class BlockWriter:
    """The process that writes blocks of `pages` pages. One thread at a time.

    `memory` is the descriptor of their memory, which may be closed afterwards. Raises OSError.
    """

    def __cinit__(self, int memory, uint64_t pages):
        self.writer = RegionWriter.open(memory, pages)
        if self.writer == NULL:
            raise OSError(f"{memory_size(pages)} bytes of shared memory cannot be mapped")

    def __dealloc__(self):
        del self.writer

    @property
    def lent(self):
        """The number of blocks that the reader had not returned at the last look."""
        return self.writer.lent()

    def write(self, object value not None):
        """Write a buffer that is not empty to a block. Return its first page, or None if there is no room now."""
        cdef Py_buffer buffer
        cdef uint64_t first
        if not self.writer.is_usable():
            raise RuntimeError("blocks cannot be written in a fork of their process")
        PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE)
        try:
            if buffer.len == 0:
                raise ValueError("expected a buffer that is not empty, got one of 0 bytes")
            first = self.writer.allocate(buffer.len)
            if first == no_page:
                return None
            # With the interpreter's lock, as pickle copies: to get it back may take longer than the copy.
            memcpy(self.writer.bytes(first), buffer.buf, buffer.len)
            return first
        finally:
            PyBuffer_Release(&buffer)

    def trim(self):
        """Give all memory that is not lent back to the operating system."""
        if self.writer.is_usable():
            self.writer.trim()


@cython.final
cdef class BlockReader:
    """The process that reads blocks. Its blocks may outlive it, and end in any thread."""

    def __cinit__(self, int memory, uint64_t pages):
        self.reader = RegionReader.open(memory, pages)
        if not self.reader:
            raise OSError(f"{memory_size(pages)} bytes of shared memory cannot be mapped")

    def read(self, uint64_t first, uint64_t size):
        """Return a buffer of the block that begins at a page, for reading only.

        While more than half of the pages are used by blocks, it is a copy. Raises ValueError if there is no such block.
        """
        cdef SharedBlock block
        if not self.reader.get().has(first, size):
            raise ValueError(f"expected the place of a block, got page {first} and {size} bytes")
        block = SharedBlock.__new__(SharedBlock)
        is_crowded = self.reader.get().is_crowded(size)
        block.block = new ReadBlock(self.reader, first, size)
        if is_crowded:
            return PyBytes_FromStringAndSize(<const char*>block.block.bytes(), size)
        return block


@cython.final
cdef class SharedBlock:
    """The bytes of a block, which is returned when nothing refers to them any more."""

    def __dealloc__(self):
        del self.block

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if self.block == NULL:
            raise BufferError("expected a block of a reader, got an empty one")
        PyBuffer_FillInfo(buffer, self, <void*>self.block.bytes(), self.block.size(), True, flags)


def memory_size(uint64_t pages):
    """Return the size of the memory for blocks of so many pages, in bytes."""
    return BlockRegion.memory_of(pages)
