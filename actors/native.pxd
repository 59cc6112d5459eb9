"""The declarations that packages cimport to write native actors. See `docs/native.md`."""

from libc.stdint cimport int64_t, uint32_t

from callboard._inside.sending.native_ref cimport NativeRef
from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.values cimport NativeBuffer, buffer_of, from_buffer
from callboard.core.memory.buffer cimport Buffer
from callboard.core.memory.node cimport Kind, Node as Message
from callboard.scheduling.forward cimport Context


cdef class NativeActor:
    # Subclass this and override `receive`. Its methods below are for its own dispatch only.

    cdef NativeRef own_ref
    cdef Context* context      # of the thread that dispatches; valid within receive()
    cdef Message* asked        # the ask in work that is not answered yet, or null

    cdef NativeRef own(self)
    cdef void receive(self, Message* message) noexcept nogil

    # Sending, from within receive(). False: not delivered (a full mailbox that drops or fails).
    cdef bint send_integer(self, ActorRef to, int64_t value, uint32_t tag=*) noexcept nogil
    cdef bint send_real(self, ActorRef to, double value, uint32_t tag=*) noexcept nogil
    cdef bint send_record(self, ActorRef to, const void* bytes16, uint32_t tag=*) noexcept nogil
    cdef bint send_buffer(self, ActorRef to, Buffer* buffer, uint32_t tag=*) noexcept nogil
    cdef bint forward(self, ActorRef to, Message* message) noexcept nogil

    # Answering the ask in work; nothing happens if the message was told.
    cdef void answer_integer(self, int64_t value) noexcept nogil
    cdef void answer_real(self, double value) noexcept nogil
    cdef void answer_buffer(self, Buffer* buffer) noexcept nogil

    cdef void stop_self(self) noexcept nogil
    cdef void fail(self, const char* reason) noexcept nogil
