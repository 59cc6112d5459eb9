from callboard.core.node cimport Parker


cdef extern from * nogil:
    """
    #include "callboard/core/parker.hpp"
    namespace callboard {
    // What a thread that waits for a future spins on, then sleeps on.
    struct Flag {
        Atomic<bool> set_{false};
        bool is_set() const { return set_.load(acquire); }
        void set() { set_.store(true, release); }
    };
    }
    """
    cdef cppclass Flag "callboard::Flag":
        bint is_set()
        void set()


cdef class Future:
    cdef Flag flag
    cdef object value
    cdef object error
    cdef object callbacks      # None, one callable, or a list of them
    cdef readonly object target  # the ref that was asked, or None
    cdef readonly object asker   # the ref that asked, or None
    cdef public object _timer
    cdef object variables        # the context that an asked actor wants with it, or None

    cdef bint complete(self, object value, object error)
    cdef void call_back(self, object callback) noexcept
    cdef object take(self)
