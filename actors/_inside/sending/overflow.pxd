from callboard._inside.sending.ref cimport ActorRef
from callboard.core.node cimport Node
from callboard.scheduling.cell cimport Context

cdef bint make_room(ActorRef ref, Context* context, object message, object sender) except -1
cdef int release_popping(ActorRef ref, Context* context) except -1
