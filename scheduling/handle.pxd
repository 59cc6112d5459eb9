from callboard.scheduling.cell cimport Cell


cdef class Handle:
    cdef Cell* cell
