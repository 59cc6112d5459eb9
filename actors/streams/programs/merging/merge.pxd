# Programs with several inputs.
from libc.stdint cimport int64_t

from callboard.streams.programs.program cimport Batch, Program, Watermark


cdef class Merge(Program):
    cdef list drops
    cdef object leaves
    cdef list marks      # the latest watermark of each input, or None
    cdef list idle       # for each input, whether nobody waits for it
    cdef object reached  # the instant of the watermark handed on last

    cdef bint hand_over(self, list batches, Batch out) except -1
    cdef list ordered(self, list batches)
    cdef tuple held_in(self, list queues, list come_to)
    cdef int add(self, list outputs, object lineage, list into) except -1
    cdef object left_of(self, object lineage)
    cdef int hand_on(self, object lineage, list into) except -1
    cdef int reach(self, Watermark mark, object lineage, list into) except -1
    cdef object held_back(self, object instant)

    # For programs: a row or a watermark of an input; the end of a batch; the end of the stream. Each appends to
    # `into` what it gives, of the lineage that is given to it.
    cdef int take(self, Py_ssize_t which, object row, int64_t serial, object lineage, list into) except -1
    cdef int mark(self, Py_ssize_t which, Watermark mark, object lineage, list into) except -1
    cdef int settle(self, object lineage, list into) except -1
    cdef int finish(self, object lineage, list into) except -1


cdef class IdleSources(Merge):
    cdef object idle_timeout  # seconds; None: nobody is ever idle
    cdef list heard           # for each input, when something came from it last, by the run's clock

    cdef bint find_idle(self, list batches) except -1
