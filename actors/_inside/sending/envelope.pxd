# A message with its sender and the future for its answer, while it is in work; and the cell's type.
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from callboard.scheduling.forward cimport Cell, Run


cdef extern from "callboard/_inside/sending/envelope.hpp" namespace "callboard" nogil:
    cdef cppclass Envelope:
        PyObject* message
        PyObject* sender
        PyObject* reply_to
        bint stashed

    Envelope to_tell(PyObject* message, PyObject* sender)
    Envelope to_ask(PyObject* message, PyObject* reply_to)
    Envelope copied(Envelope envelope)

    # To use its members, cimport it from actor_cell.pxd.
    cdef cppclass ActorCell(Cell):
        ActorCell(Run run, void* owner, uint32_t flags) except +
        void* object
        Envelope* in_work
        void* variables
        void* overflow
