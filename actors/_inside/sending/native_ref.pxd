cimport cython

from callboard._inside.sending.admission cimport ADMITTED, Fate, look_in
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef
from callboard.core.memory.node cimport Node
from callboard.scheduling.cell cimport Cell, Context, closed_cell, guarded_cell, make_ready


cdef class NativeRef(ActorRef):
    cdef void push_packed(self, Node* node, Envelope envelope, Context* context) noexcept


cdef void wake_closed(ActorRef to, Context* context) noexcept nogil
cdef bint may_send(ActorRef to, Node* node, Context* context) noexcept nogil


# Each send passes here, after blank(), which knows that it is not None.
@cython.nonecheck(False)
cdef inline bint send(ActorRef to, Node* node, Context* context) noexcept nogil:
    """Send a node with a native value, without the interpreter. False: it was not admitted."""
    cdef Cell* cell = to.cell
    if cell.has(guarded_cell) and not may_send(to, node, context):
        return False
    if cell.tail.push(node):
        if cell.has(closed_cell):
            wake_closed(to, context)
        else:
            make_ready(cell, context)
    return True
