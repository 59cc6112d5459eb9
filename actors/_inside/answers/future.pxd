from libc.stdint cimport int64_t

from callboard.scheduling.cell cimport Spinner
from callboard.scheduling.handle cimport Handle


cdef extern from * nogil:
    """
    #include "callboard/core/threads/interpreter.hpp"
    #include "callboard/core/threads/parker.hpp"
    #include "callboard/core/threads/spinner.hpp"
    namespace callboard {
    // What a thread that waits for a future spins on, then sleeps on.
    struct Flag {
        Atomic<bool> set_{false};
        bool is_set() const { return set_.load(acquire); }
        void set() { set_.store(true, release); }
        // True: it was set before it was time to sleep. Patient enough for a worker that has to be
        // woken on another core first, which takes 20 to 30 microseconds on virtual ones.
        bool spin(Spinner& spinner) {
            if (!spinner.wait_until([this] { return is_set(); }, 40'000)) return false;
            await_interpreter(monotonic_ns());
            return true;
        }
    };
    }
    """
    cdef cppclass Flag "callboard::Flag":
        bint is_set()
        void set()
        bint spin(Spinner& spinner)


cdef class Waiter(Handle):
    cdef object awaited(self)
    cdef int wait_for(self, Future future, object timeout) except -1


cdef class Wake:
    # A callback that only wakes who waits: it takes no time, and completes no other future.
    cdef void wake(self, Future future) noexcept


cdef class Future:
    cdef Flag flag
    cdef object value          # the answer; of a failure, the traceback that the exception came with
    cdef object error
    # None, one, or a list of them: callables, and futures that this one's outcome is passed on to.
    cdef object callbacks
    cdef Future deferred_to    # the future whose outcome will be this one's, or None
    cdef int64_t length        # of the longest chain of futures that are deferred to this one
    cdef readonly object target  # the ref that was asked, or None
    cdef readonly object asker   # the ref that asked, or None
    cdef object _timer
    cdef object variables        # the context that an asked actor wants with it, or None

    cdef bint complete(self, object value, object error)
    cdef bint attach(self, object callback)
    cdef void detach(self, object callback) noexcept
    cdef void call_all(self, object callbacks) noexcept
    cdef void call_each(self, object callbacks) noexcept
    cdef void call_back(self, object callback) noexcept
    cdef int wait_until_done(self, object timeout) except -1
    cdef object take(self)
