from libc.stdint cimport uint32_t

from callboard._inside.answers.actor_context cimport ActorContext
from callboard.scheduling.forward cimport MpscTail

# After this many messages a thread outside the workers lets them run. A worker that wants the interpreter gets it
# only after the switch interval, in which one thread can send 100,000 messages. Then their nodes leave the caches,
# and each costs three times as much. Waiting is bounded.
cdef enum:
    BURST = 4096

cdef void let_workers_run(MpscTail* receiver) noexcept


cdef inline bint ends_burst(ActorContext* context, uint32_t messages) noexcept:
    """Note that the thread has sent messages. True: it is time to let the workers run."""
    if context.worker != NULL:
        return False
    context.sent += messages
    if context.sent < BURST:
        return False
    context.sent = 0
    return True
