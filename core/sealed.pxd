cdef object maker_key()
cdef int only_by_runtime(object key, object made, str origin) except -1
