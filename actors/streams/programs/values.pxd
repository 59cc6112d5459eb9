from callboard.scheduling.flow.values cimport Values

cdef Values* lot_of(list rows, Py_ssize_t* at) except? NULL
cdef list rows_of(Values* lot)
