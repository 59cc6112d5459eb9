from callboard.core.node cimport Parker
from callboard.scheduling.cell cimport Spinner


cdef extern from * nogil:
    """
    #include "callboard/core/parker.hpp"
    #include "callboard/core/spinner.hpp"
    namespace callboard {
    // What a thread that waits for a future spins on, then sleeps on.
    struct Flag {
        Atomic<bool> set_{false};
        bool is_set() const { return set_.load(acquire); }
        void set() { set_.store(true, release); }
        // True: it was set before it was time to sleep. Patient enough for a worker that has to be
        // woken on another core first, which takes 20 to 30 microseconds on virtual ones.
        bool spin(Spinner& spinner) {
            return spinner.wait_until([this] { return is_set(); }, 40'000);
        }
    };
    }
    """
    cdef cppclass Flag "callboard::Flag":
        bint is_set()
        void set()
        bint spin(Spinner& spinner)


cdef class Future:
    cdef Flag flag
    cdef object value
    cdef object error
    cdef object callbacks      # None, one callable, or a list of them
    cdef readonly object target  # the ref that was asked, or None
    cdef readonly object asker   # the ref that asked, or None
    cdef public object _timer

    cdef bint complete(self, object value, object error)
    cdef void call_back(self, object callback) noexcept
    cdef object take(self)
