from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from callboard.scheduling.cell cimport Cell, Context, Worker
from callboard.scheduling.priority cimport PriorityPolicy
from callboard.scheduling.roster cimport Roster


cdef extern from "Python.h" nogil:
    ctypedef struct PyThreadState:
        PyObject* context     # of the context variables; null until one is set
        uint64_t context_ver  # what ContextVar.get() remembers is of this version


cdef inline PyObject* set_variables(PyThreadState* thread, PyObject* variables) noexcept nogil:
    """Put a context, or null, in place as the thread's, and return the one before. A reference each."""
    cdef PyObject* before = thread.context
    if before != variables:
        thread.context = variables
        thread.context_ver += 1
    return before


cdef enum:
    LOOK_AHEAD = 64  # how many ready actors step_to() passes by


cdef class WorkerThread:
    cdef Worker* core
    cdef Context* context
    cdef readonly PriorityPolicy policy
    cdef uint32_t nested          # dispatches within dispatches
    cdef bint retiring            # its only actor has ended
    cdef bint runs                # on a thread, from now on its own
    cdef bint attends             # it reads a descriptor at its next rest:
    cdef object attended          # that of this object, with `lend` and `take_back`
    cdef bint keeps               # which wants it to, whatever else is attended to
    cdef int bell                 # that wakes it then; -1 until the first time
    cdef Roster team              # keeps what the worker shares alive
    cdef readonly object thread
    cdef readonly str name
    cdef bytes short_name
    cdef readonly object cpu  # the core that it is pinned to, or None

    cdef void loop_with(self, PyThreadState* state) noexcept nogil
    cdef bint sweep(self) noexcept
    cdef int adopt_thread(self) except -1
    cdef void rest(self) noexcept nogil
    cdef bint rest_reading(self) noexcept nogil
    cdef int borrow(self) noexcept with gil
    cdef void give_back(self, bint is_readable) noexcept with gil
    cdef void park(self) noexcept nogil
    cdef void tell_drainer(self) noexcept nogil
    cdef bint step(self) noexcept
    cdef bint step_to(self, Cell* wanted) noexcept
    cdef void dispatch_or_delegate(self, Cell* cell) noexcept
    cdef void dispatch_nested(self, Cell* cell) noexcept
