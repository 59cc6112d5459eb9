cdef extern from "callboard/frequency/guard.hpp" namespace "callboard" nogil:
    cdef cppclass SummaryGuard:
        bint try_enter()
        void enter()
        void leave()
        bint is_mine()
