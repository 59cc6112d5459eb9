from callboard.scheduling.forward cimport TeamState


cdef class WorkerRegistry:
    cdef TeamState* state
    cdef readonly list workers
    cdef readonly int started  # the number of workers with threads
    cdef readonly list dedicated  # replaced as a whole
    cdef object lock
    cdef readonly str monitoring  # the level
    cdef readonly bint timed
    cdef public object hand_over_records  # called with a worker whose records are to be taken out; or None
    cdef public double time_slice  # of a dispatch, in seconds; 0: no limit
