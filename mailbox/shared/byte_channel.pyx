"""One end of a channel between two processes, over rings of bytes in shared memory."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t


@cython.final
cdef class ByteChannel:
    """One end. One thread at a time sends, and one at a time receives and waits.

    The first end is that of the process that made the memory. `memory` is its descriptor, which may be closed
    afterwards; this end sleeps on the eventfd `own`, and wakes the other one by `other`. Raises OSError.
    """

    def __cinit__(self, int memory, uint64_t capacity, int own, int other, bint first):
        if capacity < 64 or capacity & (capacity - 1):
            raise ValueError(f"capacity must be a power of two of at least 64, got {capacity}")
        self.channel = ByteChannelEnd.open(memory, capacity, own, other, first)
        if self.channel == NULL:
            raise OSError(f"{memory_size(capacity)} bytes of shared memory cannot be mapped")
        self.begun = bytearray()

    def __dealloc__(self):
        del self.channel

    @property
    def is_broken(self):
        """Whether the other process has written what cannot be. Then nothing more is sent or received."""
        return self.channel.is_broken()

    def send(self, bytes message not None, uint64_t sent=0):
        """Send a message from the byte `sent` on, as far as there is room. Return how many bytes are sent by then."""
        cdef const unsigned char* start = <const unsigned char*>PyBytes_AS_STRING(message)
        cdef uint64_t size = PyBytes_GET_SIZE(message)
        if not 0 <= sent <= size or size == 0:
            raise ValueError(f"expected a message, and a place in it, got {size} bytes, and {sent}")
        return self.channel.send(start, size, sent)

    def receive(self):
        """Return the next message, or None if none has come as a whole."""
        cdef Record piece
        while self.channel.receive_piece(piece):
            if not self.begun and ByteChannelEnd.is_last(piece):
                message = PyBytes_FromStringAndSize(<const char*>piece.bytes, piece.size)
                self.channel.finish_piece()
                return message
            self.begun += piece.bytes[:piece.size]
            self.channel.finish_piece()
            if ByteChannelEnd.is_last(piece):
                message = bytes(self.begun)
                self.begun = bytearray()
                return message
        return None

    def look(self):
        """Return the state of what the other end has done, for `wait()`: before a look for messages or for room."""
        return self.channel.look()

    def wait(self, uint64_t looked, int also=-1, int milliseconds=-1):
        """Wait until the other end has done something since that look, or `also` is readable, or for that long."""
        with nogil:
            self.channel.wait(looked, also, milliseconds)

    def wake(self):
        """End a wait of this end. In any thread."""
        self.channel.wake_own()


def memory_size(uint64_t capacity):
    """Return the size of the memory of a channel whose rings have this capacity, in bytes."""
    return ByteChannelEnd.memory_of(capacity)
