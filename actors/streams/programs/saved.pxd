# The states of programs, as a snapshot takes them.


cdef class Late:
    # States that are encoded when the stream goes on, though they may change: each before its first change.
    cdef object lock
    cdef list keys
    cdef list states   # as they were; None behind those that were taken
    cdef dict early    # key -> a copy of the state, made before it changed
    cdef bint is_over

    # A state is about to change. False: nobody wants to know any more.
    cdef bint keep(self, object key, object state) except -1
    cdef list take(self, Py_ssize_t begin, Py_ssize_t end)
