"""Native operators: they run without the interpreter, on native values, and so on all workers at once.

A native operator is a Cython class that derives from NativeOperator; `native.pxd` has what it
overrides. `Stream.native()` and `KeyedStream.native()` put it into a graph. Rows become native
values on the way in, and Python objects on the way out, as messages to native actors do.
"""

from libc.stdint cimport uint64_t

from callboard.scheduling.flow.parts cimport Parts
from callboard.scheduling.flow.values cimport Output, Value, Values
from callboard.streams.programs.program cimport Batch, Program
from callboard.streams.programs.values cimport lot_of, rows_of

from callboard.native import NativeFailure
from callboard.streams.errors import StreamError

__all__ = ["NativeOperator", "NativeProgram"]


cdef class NativeOperator:
    """An operator whose work is done by C functions.

    The class attribute `kind` says how many workers may be in one object's `process` at once:
    "stateless", any number, or "stateful", one, in the order of the stream. Of a keyed operator
    there is one object for each partition, and one worker at a time in each. `__init__` is an
    ordinary method, called when a run begins.
    """

    kind = "stateless"

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        out.fail(b"this native operator does not override process()")

    cdef void finish(self, Output* out) noexcept nogil:
        pass

    cdef uint64_t key_of(self, const Value* value) noexcept nogil:
        return <uint64_t>value.integer


cdef class NativeProgram(Program):
    """A native operator in one run. Its rows are handed to it in lots, so they have no origins."""

    def __init__(self, str name, make, Py_ssize_t partitions=0, **options):
        self.objects = [make() for _ in range(partitions or 1)]
        self.partitions = partitions
        kind = "partitioned" if partitions else self.objects[0].kind
        super().__init__(name, kind=kind, **options)
        self.releases_gil = True

    cpdef process(self, Batch batch, list into):
        """The same by one thread, for sequential runs."""
        cdef Values* lot = lot_of(batch.rows)
        cdef Output out
        cdef const char* failure
        if lot == NULL and not batch.final:
            return
        if lot == NULL:
            lot = Values.make(0)
        lot.final = batch.final
        if self.partitions:
            failure = self.by_parts(lot, &out)
        else:
            failure = self.by_one(lot, &out)
        cdef Values* outputs = out.take()
        if outputs != NULL:
            if into:
                (<Batch?>into[0]).rows.extend(rows_of(outputs))
            outputs.free()
        if failure != NULL:
            raise StreamError(self.name, None, None) from NativeFailure(failure.decode("utf-8", "replace"))

    cdef const char* by_one(self, Values* lot, Output* out):
        cdef NativeOperator one = self.objects[0]
        if lot.count():
            one.process(lot.begin(), lot.count(), out)
        if lot.final and out.failure() == NULL:
            one.finish(out)
        lot.free()
        return out.failure()

    cdef const char* by_parts(self, Values* lot, Output* out):
        cdef NativeOperator one = self.objects[0]
        cdef const Value* value
        cdef uint64_t i
        for i in range(lot.count()):
            value = lot.begin() + i
            one = self.objects[Parts.partition_of((<NativeOperator>self.objects[0]).key_of(value), self.partitions)]
            one.process(value, 1, out)
            if out.failure() != NULL:
                break
        if lot.final and out.failure() == NULL:
            for one in self.objects:
                one.finish(out)
        lot.free()
        return out.failure()
