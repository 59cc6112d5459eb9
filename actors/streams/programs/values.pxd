from callboard.scheduling.flow.values cimport Values

cdef Values* lot_of(list rows) except? NULL
cdef list rows_of(Values* lot)
