"""The text of a worker's log, for Cython: see `log_text.hpp`."""

from libc.stdint cimport uint32_t
from libcpp.vector cimport vector

from callboard.core.records cimport DispatchRecord

cdef extern from "callboard/scheduling/log_text.hpp" namespace "callboard" nogil:
    cppclass string_view "std::string_view":
        string_view(const char* text, size_t size)

    cdef cppclass LogText:
        void add_dispatch(const DispatchRecord& record, const vector[DispatchRecord]& uses, string_view path)
        void add_wait(const DispatchRecord& record, uint32_t worker)
        void add_exit(const DispatchRecord& record, uint32_t worker)
        void clear()
        const char* data()
        size_t size()
