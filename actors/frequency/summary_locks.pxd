from libc.stdint cimport uint64_t

cdef extern from "callboard/frequency/summary_locks.hpp" namespace "callboard" nogil:
    const unsigned no_stream "callboard::StreamSlots::none"

    cdef cppclass StreamSlots:
        StreamSlots(unsigned streams) except +
        unsigned try_take()
        unsigned take()
        void give_back(unsigned stream)
        void take_all()
        void give_back_all()
        bint admit(uint64_t elements)
        uint64_t admitted()
        void retract(uint64_t elements)
        void admit_first(uint64_t elements)

    cdef cppclass SummaryGuard:
        bint try_enter()
        void enter()
        void leave()
        bint is_mine()
