"""The actors that feed a summary: one for each stream."""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from callboard._inside.sending.values cimport from_buffer, value_of
from callboard.core.asserting cimport holds
from callboard.core.memory.buffer cimport Buffer
from callboard.core.memory.node cimport Kind, Node as Message
from callboard.frequency.counting.key_column cimport KeyColumn
from callboard.frequency.counting.keys cimport ByteRun
from callboard.frequency.key_batch cimport KeyBatch, as_bytes, as_integers, as_objects, batch_of_list, key_of
from callboard.frequency.space_saving cimport SpaceSaving
from callboard.native cimport NativeActor

from callboard.core.checks import LARGEST
from callboard.core.text import safe_repr

# The format of a buffer that packed() made. No other buffer has both this format and its own memory.
cdef char PACKED = b"K"


cdef class StreamActor(NativeActor):
    """Counts the keys that it is told in a summary. An ask is answered when they are counted."""

    cdef SpaceSaving summary
    cdef KeyColumn column

    def __init__(self, SpaceSaving summary not None):
        self.summary = summary

    @cython.nonecheck(False)
    cdef void receive(self, Message* message) noexcept nogil:
        cdef int64_t keys
        if self.read(message) and self.count():
            keys = self.column.size()
        else:
            keys = self.count_with_interpreter(message)
        self.answer_integer(keys)

    cdef bint read(self, Message* message) noexcept nogil:
        """Read the keys of a message. False: that needs the interpreter."""
        cdef Buffer* buffer
        self.column.clear()
        if message.kind == Kind.integer:
            return self.column.take_integers(&message.integer, 1)
        if message.kind != Kind.buffer:
            return False
        buffer = <Buffer*>message.first
        if is_packed(buffer):
            return self.column.take_packed(buffer.data)
        if buffer.format == b"A":
            return self.column.take_arrow(buffer.schema, buffer.array)
        if (buffer.format == b"q" or buffer.format == b"l") and buffer.item_size == 8:
            return self.column.take_integers(<int64_t*>buffer.data, buffer.size // 8)
        return False

    @cython.nonecheck(False)
    cdef bint count(self) noexcept nogil:
        """Count the keys. False: the summary is in another mode, or it is full."""
        cdef KeyColumn* column = &self.column
        cdef uint64_t total = column.total()
        cdef unsigned stream
        cdef bint done = False
        cdef bint is_counted = True
        if not self.summary.slots.admit(total):
            return False
        stream = self.summary.slots.take()
        assert holds(column.size() > 0 or total == 0)
        if self.summary.store.mode == as_integers and not column.has_runs:
            done = True
            is_counted = self.summary.store.integers.try_add(
                stream, column.integers.data(), column.weights_or_null(), column.size())
        elif self.summary.store.mode == as_bytes and column.make_runs():
            done = True
            is_counted = self.summary.store.runs.try_add(
                stream, column.runs.data(), column.weights_or_null(), column.size())
        self.summary.slots.give_back(stream)
        if not done:
            self.summary.slots.retract(total)
        elif not is_counted:
            self.fail(b"out of memory: some of the keys were counted, and some were not")
        return done

    cdef int64_t count_with_interpreter(self, Message* message) noexcept with gil:
        """Count the keys of a message, and return their number."""
        cdef KeyColumn* column = &self.column
        cdef ByteRun run
        try:
            if message.kind == Kind.integer:
                self.summary.add(message.integer)
                return 1
            elif message.kind != Kind.buffer:
                wrong = safe_repr(value_of(message))
                raise TypeError(f"keys expect integers, strings, bytes or arrays of these, got {wrong}")
            elif not is_packed(<Buffer*>message.first):
                source = from_buffer(<Buffer*>message.first)
                self.summary.update(source)
                return len(source)
            elif not column.take_packed((<Buffer*>message.first).data):
                raise MemoryError
            else:
                keys = [key_of(run.kind, run.data, run.size) for run in column.runs] or list(column.integers)
                self.summary._update(keys, list(column.weights) or None)
                return len(keys)
        except BaseException as error:
            self.fail_with(error)
        return 0


cdef bint is_packed(Buffer* buffer) noexcept nogil:
    return buffer.format == PACKED and buffer.owner == NULL


def packed(list keys, weights):
    """Return a message for a StreamActor with these keys, or None if they need Python objects."""
    cdef KeyBatch batch = batch_of_list(keys, weights, as_integers)
    cdef Buffer* buffer
    if batch.mode == as_objects:
        return None
    if batch.total > <uint64_t>LARGEST:
        raise ValueError(f"counts are at most 2**63 - 1, got weights of {sum(weights)}")
    buffer = Buffer.allocate(batch.column.packed_size())
    try:
        batch.column.pack(buffer.data)
        buffer.format, buffer.readonly = PACKED, True
        return from_buffer(buffer)
    finally:
        buffer.drop()
