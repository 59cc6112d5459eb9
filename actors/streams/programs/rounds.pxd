from libc.stdint cimport int64_t

from callboard.scheduling.flow.stage cimport RowTotals, Work
from callboard.scheduling.flow.values cimport Values
from callboard.streams.programs.program cimport Batch, Program

cdef Work work_of(Program program) noexcept
cdef Work divider_of(Program program) noexcept
cdef int64_t rows_among(list rows) noexcept
cdef void* native_batch(Batch batch, Program reader) noexcept

# Parts of a round's work.
cdef Batch take(Program program, size_t which, void** inputs)
cdef bint is_dropped(Program program, int64_t serial) noexcept
cdef list fresh(Program program, Batch batch)
cdef bint hand_on(Program program, list into) except -1
cdef object named(str name, object raised)
cdef void* output_of(
    Program program, int64_t serial, list into, bint final, object error, RowTotals& counts
) noexcept

# Chunks of native values, from and to rows.
cdef Values* chunk_of(list rows, Py_ssize_t* at) except? NULL
cdef list rows_of(Values* chunk)
