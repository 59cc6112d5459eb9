from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef extern from "Python.h":
    ctypedef int (*visitproc)(PyObject* value, void* arg) noexcept nogil
    ctypedef int (*traverseproc)(PyObject* self, visitproc visit, void* arg) noexcept nogil
    ctypedef int (*inquiry)(PyObject* self) noexcept

    ctypedef struct PyTypeObject:
        traverseproc tp_traverse
        inquiry tp_clear

cdef extern from "callboard/channels/object_channel.hpp" namespace "callboard" nogil:
    enum class Transfer "callboard::Transfer":
        done
        not_yet
        ended

    cdef cppclass Wakeable:
        void (*wake)(Wakeable* self) noexcept

    cdef cppclass ObjectWakeable(Wakeable):
        void* object

    cdef cppclass SideWakeable(Wakeable):
        bint take_note()

    cdef cppclass Waitable:
        bint is_ready()
        bint announce(Wakeable* who)
        bint withdraw(Wakeable* who)

    cdef cppclass ObjectOrdering:
        @staticmethod
        void prepare()

    cdef cppclass ObjectChannel:
        SideWakeable waiting_senders
        SideWakeable waiting_receivers
        ObjectChannel(int64_t capacity) except +
        Transfer send_nowait(PyObject* value)
        Transfer offer(PyObject* value)
        bint taken()
        bint retract(PyObject*& value)
        bint send_ready()
        Transfer receive_nowait(PyObject*& value)
        bint peek(PyObject*& value)
        bint peek_slot(PyObject*& value)
        bint receive_ready()
        bint take_left(PyObject*& value)
        Waitable& sending()
        Waitable& receiving()
        bint close_sender()
        bint close_receiver()
        bint cancel()
        bint is_sender_closed()
        bint is_receiver_closed()
        bint is_cancelled()
        bint has_ended()
        int64_t size()
        int64_t capacity()
        int64_t written()
        int64_t read()
        void grow(int64_t capacity)

    int traverse(ObjectChannel& channel, visitproc visit, void* arg)

    cdef cppclass Member(Wakeable):
        void* user

    cdef cppclass Selector(Waitable):
        Selector()
        void add(Member& member)
        void remove(Member& member)
        Member* next()
        int64_t size()

    ctypedef bint (*IsReady)(void* watch) noexcept
    ctypedef bint (*Announce)(void* watch, Wakeable* who) noexcept

    cdef cppclass WatchedEndFunctions "callboard::WatchedEnd::Functions":
        IsReady is_ready
        Announce announce
        Announce withdraw

    cdef cppclass WatchedEnd(Member):
        pass

    WatchedEndFunctions watching "callboard::WatchedEnd::functions"
