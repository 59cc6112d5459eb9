"""The inbox of a process: messages from other processes, over rings of bytes in memory that they share."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libcpp.vector cimport vector

MOST_PROCESSES = 64
"""How many processes a group may have."""


@cython.final
cdef class Inbox:
    """One process's part of a group. One thread at a time receives and waits, and one sends to each process.

    `memory` is the descriptor of the group's memory, which may be closed afterwards. `own` is the number of this
    process. `descriptors` are the eventfds on which the processes sleep, in the order of their numbers. A process whose
    number another one had before, which has ended, goes on in its place. Raises ValueError and OSError.
    A fork of the process cannot use it.
    """

    def __cinit__(self, int memory, uint32_t own, uint64_t capacity, descriptors):
        cdef vector[int] copied = descriptors
        check_sizes(copied.size(), capacity)
        if own >= copied.size():
            raise ValueError(f"expected the number of one of {copied.size()} processes, got {own}")
        self.inbox = ProcessInbox.open(memory, own, capacity, copied)
        if self.inbox == NULL:
            size = ProcessInbox.memory_of(copied.size(), capacity)
            raise OSError(f"{size} bytes of shared memory cannot be mapped")

    def __dealloc__(self):
        del self.inbox

    cdef int check_usable(self) except -1:
        if not self.inbox.is_usable():
            raise RuntimeError("an inbox cannot be used in a fork of its process")
        return 0

    cdef int check(self, uint32_t process) except -1:
        if not self.inbox.is_other(process):
            raise ValueError(f"expected the number of another of {self.inbox.processes()} processes, got {process}")
        return self.check_usable()

    cpdef uint64_t send(self, uint32_t process, bytes message, uint64_t sent=0) except? 0:
        """Send a message to a process from the byte `sent` on, as far as there is room.

        Returns how many bytes are sent by then. The rest is to be sent before any other message to that process.
        """
        cdef const unsigned char* start = <const unsigned char*>PyBytes_AS_STRING(message)
        cdef uint64_t size = PyBytes_GET_SIZE(message)
        if sent > size or size == 0:
            raise ValueError(f"expected a message, and a place in it, got {size} bytes, and {sent}")
        self.check(process)
        return self.inbox.send(process, start, size, sent)

    cpdef tuple receive(self):
        """Return the number of a process, and the next message from it; None if there is none.

        Each process is looked at after at most 64 messages from another one.
        """
        cdef uint32_t process = 0
        cdef Message message
        self.check_usable()
        if not self.inbox.receive(process, message):
            return None
        received = PyBytes_FromStringAndSize(<const char*>message.bytes, message.size)
        self.inbox.finish()
        return process, received

    cpdef uint64_t look(self) except? 0:
        """Return the state of what other processes have done, for `wait()`: before a look for messages or for room."""
        self.check_usable()
        return self.inbox.look()

    def wait(self, uint64_t looked, int also=-1, int milliseconds=-1):
        """Wait until another process has done something since that look, or `also` is readable, or for that long."""
        self.check_usable()
        with nogil:
            self.inbox.wait(looked, also, milliseconds)

    def wake(self, uint32_t process):
        """End a wait of a process, or its next one. In any thread, and in a fork, where nothing is done.

        When a process has ended, all others must be woken: it may have sent messages without waking them.
        """
        if process >= self.inbox.processes():
            raise ValueError(f"expected the number of one of {self.inbox.processes()} processes, got {process}")
        if self.inbox.is_usable():
            self.inbox.wake(process)

    def is_broken(self, uint32_t process):
        """Return whether a process has written what cannot be. Then nothing more is sent to it, or received from it."""
        self.check(process)
        return self.inbox.is_broken(process)

    def mark_broken(self, uint32_t process):
        """Note that a message from a process cannot be. In the thread that receives."""
        self.check(process)
        self.inbox.mark_broken(process)

    def take_back(self, uint32_t process):
        """Return the messages that a process has not received, after its end, and before its successor begins.

        An empty one comes first if the process had received only the beginning of a message. If it had broken its
        rings, they begin anew. In a thread that may receive, and send to that process.
        """
        self.check(process)
        return list(self.inbox.take_back(process))


cdef int check_sizes(uint64_t processes, uint64_t capacity) except -1:
    if not 2 <= processes <= MOST_PROCESSES:
        raise ValueError(f"expected 2 to {MOST_PROCESSES} processes, got {processes}")
    if capacity < 64 or capacity & (capacity - 1):
        raise ValueError(f"capacity must be a power of two of at least 64, got {capacity}")
    return 0


def memory_size(uint64_t processes, uint64_t capacity):
    """Return the size of the memory of a group, in bytes, with rings of this capacity between its processes."""
    check_sizes(processes, capacity)
    return ProcessInbox.memory_of(processes, capacity)
