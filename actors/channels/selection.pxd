from callboard._inside.sending.ref cimport ActorRef
from callboard.channels.end cimport ChannelEnd
from callboard.channels.object_channel cimport ObjectWakeable, Selector, Wakeable, WatchedEnd
from callboard.channels.operation cimport Operation
from callboard.channels.pipe cimport Line, Watch


cdef class SelectionLine(Line):
    cdef void* selection
    cdef object waits          # one, if the selection is used by one user
    cdef ObjectWakeable waiter

    cdef void wake_all(self) noexcept


cdef class Membership(Watch):
    cdef Wakeable* waker       # to be woken when the end is ready; null if it is not announced
    cdef WatchedEnd member
    cdef Line line             # the queue that it is in then

    cdef bint withdraw_now(self) noexcept


cdef class Selection:
    cdef Selector selector
    cdef SelectionLine line
    cdef dict members          # end -> Membership
    cdef Py_ssize_t senders    # among them
    cdef object __weakref__

    cdef ChannelEnd take_next(self)


cdef class Ready(Operation):
    pass
