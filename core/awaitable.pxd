from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    ctypedef enum PySendResult:
        PYGEN_RETURN
        PYGEN_ERROR
        PYGEN_NEXT

    ctypedef PySendResult (*sendfunc)(PyObject* self, PyObject* value, PyObject** result) except? PYGEN_ERROR
    ctypedef PyObject* (*iternextfunc)(PyObject* self) except? NULL

    PySendResult PyIter_Send(PyObject* iterator, PyObject* value, PyObject** result) noexcept

cdef extern from "callboard/core/awaitable.hpp" namespace "callboard":
    cdef cppclass Awaited:
        bint try_begin()
        void reset()

    cdef cppclass Spare:
        object renew(PyTypeObject* kind)
        void keep(PyObject* object)

    void set_steps(PyTypeObject* type, sendfunc send, iternextfunc next)


cdef inline int reraise() except -1:
    """Raise the exception that a C call left."""
    return -1
