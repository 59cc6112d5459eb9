# System messages: see system_kind.hpp.
from libc.stdint cimport uint8_t

cdef extern from "callboard/_inside/sending/system_kind.hpp" namespace "callboard" nogil:
    enum class SystemKind "callboard::SystemKind"(uint8_t):
        stop
        watch
        unwatch
        resume
        failed
        restart
        ended
        wake
        ready
        cancel
        fence
