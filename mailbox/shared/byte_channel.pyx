"""One end of a channel between two processes, over rings of bytes in shared memory."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t


@cython.final
cdef class ByteChannel:
    """One end. One thread at a time sends, and one at a time receives and waits.

    The first end is that of the process that made the memory. `memory` is its descriptor, which may be closed
    afterwards; this end sleeps on the eventfd `own`, and wakes the other one by `other`. Raises OSError.
    A fork of the process cannot use it.
    """

    def __cinit__(self, int memory, uint64_t capacity, int own, int other, bint first):
        if capacity < 64 or capacity & (capacity - 1):
            raise ValueError(f"capacity must be a power of two of at least 64, got {capacity}")
        self.channel = ByteChannelEnd.open(memory, capacity, own, other, first)
        if self.channel == NULL:
            raise OSError(f"{memory_size(capacity)} bytes of shared memory cannot be mapped")

    def __dealloc__(self):
        del self.channel

    cdef int check_usable(self) except -1:
        if not self.channel.is_usable():
            raise RuntimeError("a channel cannot be used in a fork of its process")
        return 0

    @property
    def is_broken(self):
        """Whether the other process has written what cannot be. Then nothing more is sent or received."""
        return self.channel.is_broken()

    def mark_broken(self):
        """Note that a message that was received cannot be. In the thread that receives."""
        self.channel.mark_broken()

    cpdef uint64_t send(self, bytes message, uint64_t sent=0, bint hesitates=False) except? 0:
        """Send a message from the byte `sent` on, as far as there is room. Return how many bytes are sent by then.

        With `hesitates`, an end that sleeps is woken after two microseconds, unless a thread there begins to receive.
        """
        cdef const unsigned char* start = <const unsigned char*>PyBytes_AS_STRING(message)
        cdef uint64_t size = PyBytes_GET_SIZE(message)
        if sent > size or size == 0:
            raise ValueError(f"expected a message, and a place in it, got {size} bytes, and {sent}")
        self.check_usable()
        return self.channel.send(start, size, sent, hesitates)

    cpdef bytes receive(self):
        """Return the next message, or None if none has come as a whole."""
        cdef Message message
        self.check_usable()
        if not self.channel.receive(message):
            return None
        received = PyBytes_FromStringAndSize(<const char*>message.bytes, message.size)
        self.channel.finish()
        return received

    cpdef uint64_t look(self):
        """Return the state of what the other end has done, for `wait()`: before a look for messages or for room."""
        self.check_usable()
        return self.channel.look()

    def wait(self, uint64_t looked, int also=-1, int milliseconds=-1):
        """Wait until the other end has done something since that look, or `also` is readable, or for that long."""
        self.check_usable()
        with nogil:
            self.channel.wait(looked, also, milliseconds)

    def wake(self):
        """End a wait of this end. In any thread, and in a fork, where nothing waits."""
        if self.channel.is_usable():
            self.channel.wake_own()

    # --- for several threads that receive in turn -----------------------------------------------------

    cpdef begin_receiving(self):
        """Begin to receive in this thread. From now on the other end wakes nobody."""
        self.check_usable()
        self.channel.begin_receiving()

    cpdef end_receiving(self, uint64_t looked):
        """Leave it to the thread in `sleep()`, which wakes if the other end has done something since that look."""
        self.check_usable()
        self.channel.end_receiving(looked)

    cpdef bint spin(self, uint64_t looked):
        """Wait for some microseconds. Return whether the other end has done something since that look."""
        cdef bint has_come
        self.check_usable()
        with nogil:
            has_come = self.channel.spin(looked)
        return has_come

    def sleep(self, int also=-1, int milliseconds=-1):
        """Sleep until there is something to receive, or for room; or `also` is readable, or for that long."""
        self.check_usable()
        with nogil:
            self.channel.sleep(also, milliseconds)

    def rouse(self):
        """End a sleep of this end. In any thread, and in a fork, where nothing sleeps."""
        if self.channel.is_usable():
            self.channel.rouse()


def memory_size(uint64_t capacity):
    """Return the size of the memory of a channel whose rings have this capacity, in bytes."""
    return ByteChannelEnd.memory_of(capacity)
