from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef
from callboard.core.memory.node cimport Node
from callboard.scheduling.forward cimport Context


cdef class NativeRef(ActorRef):
    cdef void push_packed(self, Node* node, Envelope envelope, Context* context) noexcept


cdef void wake_closed(ActorRef to, Context* context) noexcept nogil
cdef bint may_send(ActorRef to, Node* node, Context* context) noexcept nogil
