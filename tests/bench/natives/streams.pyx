"""Native operators of known cost, and a few that compute something, for benchmarks and tests."""

from libc.stdint cimport int64_t, uint64_t

from callboard.core.node cimport monotonic_ns
from callboard.core.values cimport Output, Value
from callboard.streams.native cimport NativeOperator


cdef void spin(int64_t ns) noexcept nogil:
    cdef int64_t end
    if ns > 0:
        end = monotonic_ns() + ns
        while monotonic_ns() < end:
            pass


cdef class Costly(NativeOperator):
    """Takes `ns` nanoseconds for each row, and gives it `copies` times."""

    cdef int64_t ns
    cdef int copies

    def __init__(self, int64_t ns=0, int copies=1):
        self.ns = ns
        self.copies = copies

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        cdef int copy
        for i in range(count):
            spin(self.ns)
            for copy in range(self.copies):
                out.push(values[i])


cdef class Twice(NativeOperator):
    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            out.push_integer(values[i].integer * 2, values[i].tag)


cdef class Even(NativeOperator):
    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            if values[i].integer % 2 == 0:
                out.push(values[i])


cdef class Total(NativeOperator):
    """The sum so far, and at the end the negative of it. Keyed by the value modulo 100."""

    cdef int64_t total
    cdef int64_t ns

    kind = "stateful"

    def __init__(self, int64_t ns=0):
        self.ns = ns

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            spin(self.ns)
            self.total += values[i].integer
            out.push_integer(self.total, 0)

    cdef void finish(self, Output* out) noexcept nogil:
        out.push_integer(-self.total, 0)

    cdef uint64_t key_of(self, const Value* value) noexcept nogil:
        return <uint64_t>(value.integer % 100)


cdef class FailsAt(NativeOperator):
    cdef int64_t at

    def __init__(self, int64_t at):
        self.at = at

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            if values[i].integer == self.at:
                out.fail(b"this is the one")
                return
            out.push(values[i])
