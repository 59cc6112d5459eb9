"""Records of dispatches, for Cython: see `records.hpp`."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from "callboard/core/monitoring/records.hpp" namespace "callboard" nogil:
    const char state_ended
    const char state_output
    const char state_any
    const char state_input
    const char record_wait
    const char record_exit
    const char record_suspension
    const char record_use
    const char record_stage
    const char record_sent
    const char record_taken
    const char record_lost

    cppclass DispatchRecord:
        DispatchRecord()
        int64_t time
        int64_t spent
        uint64_t dispatch
        uint64_t actor
        uint64_t messages
        int64_t queue
        int64_t created
        uint64_t uses
        char kind
        int64_t began

    cdef cppclass RecordRing:
        RecordRing(uint64_t capacity) except +
        void write(const DispatchRecord& record)
        uint64_t written()
        bint read(uint64_t number, DispatchRecord& record)
        uint64_t capacity()
