# Single plain values in the encoding of `codec`.
cdef object NOT_SCALAR  # what scalar_of() returns for other bytes

cdef bytes packed_scalar(object value)
cdef object scalar_of(const unsigned char* at, Py_ssize_t size)
