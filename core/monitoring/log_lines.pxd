from libc.stdint cimport uint32_t, uint64_t

from callboard.core.monitoring.records cimport RecordRing

cdef tuple lines_of(RecordRing& ring, uint32_t worker, uint64_t since, dict paths)
