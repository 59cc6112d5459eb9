# The conversation of a program with a process of a pool.
cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from callboard._inside.answers.future cimport Future
from callboard.mailbox.shared.byte_channel cimport ByteChannel
from callboard.scheduling.team cimport Team


cdef packed struct Header:  # as messages.HEADER
    uint8_t kind
    uint32_t messages
    uint64_t number

cdef bytes framed(int kind, Py_ssize_t messages, uint64_t number, bytes body)


cdef class ProcessSubmission:
    cdef readonly int kind
    cdef readonly bytes body
    cdef readonly Py_ssize_t messages
    cdef uint64_t number
    cdef readonly Future sent    # done when it is sent, or None; of an ask, the answer
    cdef bint is_lost            # it has been reported
    cdef set dead_letters        # places of messages that are dead letters already

    cdef bint mark_dead(self, object place)


cdef class ProcessAnswer(Future):
    cdef ProcessLink link
    cdef Py_ssize_t size


cdef class ProcessLink:
    cdef object __weakref__
    cdef readonly str path
    cdef object codec
    cdef Team team
    cdef object on_loss
    cdef object on_dead_letter
    cdef cython.pymutex mutex    # of all that follows, except where it says otherwise
    cdef ByteChannel channel     # None: there is no process
    cdef bint is_open            # the process takes messages
    cdef str refusal             # why nothing more is sent, or None
    cdef uint64_t numbers
    cdef dict answers            # the open asks by number
    cdef object told             # submissions that are not known to be handled
    cdef object waiting          # submissions that wait for the process, or for credit, by their outcomes
    cdef object unsent           # messages without room in the channel
    cdef uint64_t sent           # bytes of the first of them
    cdef Py_ssize_t messages     # on their way
    cdef Py_ssize_t size         # of these, in bytes
    cdef Py_ssize_t told_messages
    cdef bint is_busy            # the team knows that it is not idle
    cdef list rests
    cdef object receiving        # a lock, held by the one thread that receives
    cdef unsigned long receiver  # this thread, or 0
    cdef bytes message           # in work at the receiver, which may be interrupted
    cdef list outcomes           # that the receiver is to complete
    cdef readonly str trouble    # why the process cannot be used any more, or ""
    cdef readonly bint was_ready
    cdef str end_text            # as the process has told it
    cdef readonly uint64_t done  # messages that were handled
    cdef readonly uint64_t bytes_sent
    cdef readonly uint64_t bytes_received  # the receiver

    cdef int check(self) except -1
    cdef int enter(self) except -1
    cdef bint may_send(self, Py_ssize_t messages, Py_ssize_t size) noexcept
    cdef uint64_t send(self, int kind, Py_ssize_t messages, bytes body) except? 0
    cdef int send_submission(self, ProcessSubmission submission) except -1
    cdef int send_waiting(self) except -1
    cdef int flush(self) except -1
    cdef int drive(self, ProcessAnswer answer) except -1
    cdef int receive(self, ProcessAnswer answer) except -1
    cdef int take(self, bytes message) except -1
    cdef int handle(self, bytes message) except -1
    cdef int complete(self, uint64_t number, object value, object error) except -1
    cdef int note_handled(self, Py_ssize_t messages) except -1
    cdef int settle(self) except -1
