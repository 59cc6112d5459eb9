from libc.stdint cimport int64_t

from callboard.scheduling.flow.stage cimport Work
from callboard.streams.programs.program cimport Batch, Program

cdef Work work_of(Program program) noexcept
cdef Work divider_of(Program program) noexcept
cdef int64_t rows_among(list rows) noexcept
cdef void* native_batch(Batch batch, str name) noexcept
