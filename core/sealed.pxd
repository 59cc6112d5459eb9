cdef object maker_key()
cdef int only_by_runtime(object key, str reason) except -1
