"""Native operators of known cost, and a few that compute something, for benchmarks and tests."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.unordered_map cimport unordered_map

from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport Kind
from callboard.scheduling.flow.stage cimport Division
from callboard.streams.native cimport NativeOperator, NativePredicate, Output, Value

cdef extern from "operator.hpp" namespace "shapes" nogil:
    void multiply(double* values, uint32_t rows, int flops)


cdef extern from "<time.h>" nogil:
    struct timespec:
        int64_t tv_sec
        int64_t tv_nsec
    int nanosleep(const timespec* time, timespec* left)


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
        cdef int _
        for i in range(count):
            spin(self.ns)
            for _ in range(self.copies):
                out.push(values[i])


cdef class Twice(NativeOperator):
    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            out.push_integer(values[i].integer * 2, values[i].tag)


cdef class AddOne(NativeOperator):
    """What an operator of a long pipeline does (peers/adding.hpp)."""

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            out.push_integer(values[i].integer + 1, values[i].tag)


cdef class SerialAddOne(AddOne):
    """The same, by one worker at a time."""

    kind = "stateful"


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


cdef class SavedTotal(Total):
    """The same, for snapshots."""

    def snapshot(self):
        return (<object>self.total).to_bytes(8, "big", signed=True)

    def restore(self, state):
        self.total = int.from_bytes(state, "big", signed=True)


cdef class SavedSums(NativeOperator):
    """The sum so far of each key, the value modulo 100."""

    cdef unordered_map[uint64_t, int64_t] sums

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i, key
        for i in range(count):
            key = self.key_of(&values[i])
            self.sums[key] += values[i].integer
            out.push_integer(self.sums[key], 0)

    cdef uint64_t key_of(self, const Value* value) noexcept nogil:
        return <uint64_t>(value.integer % 100)

    def snapshot(self):
        return self.sums

    def restore(self, state):
        self.sums = state


cdef class OneWayTotal(Total):
    def snapshot(self):
        return self.total


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


# --- for measurements: rows are numbers, a serial number above 16 bits that say something else ----------

cdef enum:
    LOW_BITS = 16
    LOW = (1 << 16) - 1


cdef class Parametric(NativeOperator):
    """Takes `ns` nanoseconds for each row and gives `selectivity` rows for it, by and large.

    A row's children have its serial number, and low bits of their own.
    """

    cdef int64_t ns
    cdef double selectivity

    def __init__(self, int64_t ns, double selectivity=1.0):
        self.ns = ns
        self.selectivity = selectivity

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        cdef int64_t serial, low, child, children
        cdef uint32_t chance
        for i in range(count):
            spin(self.ns)
            serial = values[i].integer >> LOW_BITS
            low = values[i].integer & LOW
            chance = Division.partition_of(<uint64_t>values[i].integer, 1000)
            children = <int64_t>(self.selectivity + chance / 1000.0)
            for child in range(children):
                out.push_integer(serial << LOW_BITS | (low * 31 + child) & LOW, 0)

    cdef uint64_t key_of(self, const Value* value) noexcept nogil:
        return <uint64_t>(value.integer & LOW)


cdef class SerialParametric(Parametric):
    """The same, by one worker at a time."""

    kind = "stateful"


cdef class Asleep(NativeOperator):
    """Sleeps for `ns` nanoseconds for each row of a batch, then gives them: many such need no more than one core."""

    cdef int64_t ns

    def __init__(self, int64_t ns=0):
        self.ns = ns

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef int64_t all_of_them = self.ns * <int64_t>count
        cdef timespec time
        cdef uint64_t i
        time.tv_sec = all_of_them // 1_000_000_000
        time.tv_nsec = all_of_them % 1_000_000_000
        nanosleep(&time, NULL)
        for i in range(count):
            out.push(values[i])


cdef class FloatingPoint(NativeOperator):
    """Takes `flops` floating-point multiplications for each row, one after the other, and gives it.

    Keyed by the serial number of the row's batch of `batch`.
    """

    cdef int flops
    cdef int64_t batch

    def __init__(self, int flops=1, int64_t batch=1):
        self.flops = flops
        self.batch = batch

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef double[64] factors
        cdef uint64_t begin, i, some
        for begin in range(0, count, 64):
            some = min(<uint64_t>64, count - begin)
            for i in range(some):
                factors[i] = <double>values[begin + i].integer
            multiply(factors, <uint32_t>some, self.flops)
            for i in range(some):  # what comes out is above 0, which the compiler does not know
                out.push_integer(values[begin + i].integer + (factors[i] < 0), 0)

    cdef uint64_t key_of(self, const Value* value) noexcept nogil:
        return <uint64_t>((value.integer >> LOW_BITS) // self.batch)


cdef class InOrder(NativeOperator):
    """Gives at the end how many rows came, a sum of them, and whether in the order of their serials."""

    cdef int64_t count, last
    cdef uint64_t sum
    cdef bint in_order

    kind = "stateful"

    def __init__(self):
        self.in_order = True

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        cdef uint64_t i
        for i in range(count):
            self.in_order = self.in_order and values[i].integer >> LOW_BITS >= self.last
            self.last = values[i].integer >> LOW_BITS
            self.sum += <uint64_t>values[i].integer
        self.count += count

    cdef void finish(self, Output* out) noexcept nogil:
        out.push_integer(self.count, 0)
        out.push_integer(<int64_t>(self.sum >> 1), 0)
        out.push_integer(self.in_order, 0)


cdef class Near(NativePredicate):
    """Integers, or reals, that are at most `distance` apart; of buffers, their sizes in bytes."""

    cdef double distance

    def __init__(self, double distance):
        self.distance = distance

    cdef bint matches(self, const Value* left, const Value* right) noexcept nogil:
        cdef double apart
        if left.kind != right.kind:
            return False
        if left.kind == Kind.integer:
            apart = <double>(left.integer - right.integer)
        elif left.kind == Kind.real:
            apart = left.real - right.real
        else:
            apart = <double>(left.buffer.size - right.buffer.size)
        return -self.distance <= apart <= self.distance


cdef class NearLowBits(NativePredicate):
    """Integers whose lowest bits are at most `distance` apart."""

    cdef int64_t mask, distance

    def __init__(self, int bits, int64_t distance):
        self.mask, self.distance = (<int64_t>1 << bits) - 1, distance

    cdef bint matches(self, const Value* left, const Value* right) noexcept nogil:
        return -self.distance <= (left.integer & self.mask) - (right.integer & self.mask) <= self.distance
