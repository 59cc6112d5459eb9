"""A native entry point for Spark's record batches."""

from libc.stdint cimport int64_t

from callboard.core.memory.buffer cimport Buffer
from callboard.native cimport Kind, Message, NativeActor


cdef class PassOn(NativeActor):
    """Answer each record batch with itself; an integer, with how many rows there were until then."""

    cdef int64_t rows

    cdef void receive(self, Message* message) noexcept nogil:
        cdef Buffer* buffer
        if message.kind == Kind.integer:
            self.answer_integer(self.rows)
            return
        buffer = <Buffer*>message.first
        if message.kind != Kind.buffer or buffer.array == NULL:
            self.fail(b"not a record batch")
            return
        self.rows += (<int64_t*>buffer.array)[0]  # an ArrowArray begins with its length
        self.answer_buffer(buffer)
