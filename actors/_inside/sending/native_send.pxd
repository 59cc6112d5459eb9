# Sends a native value; inlined at each call.
cimport cython

from callboard._inside.sending.actor_cell cimport closed_cell, guarded_cell
from callboard._inside.sending.native_ref cimport may_send, wake_closed
from callboard._inside.sending.ref cimport ActorRef
from callboard.core.memory.node cimport Node
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context
from callboard.scheduling.dispatching cimport make_ready


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
