cdef extern from "callboard/frequency/counting/guard.hpp" namespace "callboard" nogil:
    cdef cppclass SummaryGuard:
        bint try_enter()
        void enter()
        void leave()
        bint is_mine()
