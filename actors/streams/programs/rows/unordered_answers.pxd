# Programs whose outputs are answers in the order in which they come.
from callboard.streams.programs.rows.answers cimport Answers


cdef class WatermarkInterval:
    # The rows between two watermarks.
    cdef Py_ssize_t missing  # answers
    cdef list answered       # rows that are done, and not put out
    cdef object watermark    # behind them; None: it has not come


cdef class UnorderedAnswers(Answers):
    cdef object intervals    # a deque, which is never empty: those that are not put out, the earliest first
    cdef WatermarkInterval latest     # of these
    cdef public object add_round  # None, or a function: have a round without rows come
    cdef bint has_asked      # for a round, and none has come since

    cdef bint put_answers(self, list into) except -1
