from libc.stdint cimport uint32_t, uint64_t

from callboard.core.memory.node cimport Node
from callboard.scheduling.context cimport Context
from callboard.scheduling.forward cimport MpscTail

cdef extern from "callboard/_inside/answers/thread_locals.hpp" namespace "callboard" nogil:
    cdef cppclass Sampler:
        bint takes(uint32_t every)

    cdef cppclass ActorContext(Context):
        ActorContext()
        uint64_t woken
        uint32_t sent
        bint on_event_loop
        Sampler sampler
        uint32_t completing_at
        void* completing
        void* constructing
        void* awaited

    cdef cppclass ArrowNumbers:
        uint32_t next()


cdef ActorContext* actor_context() noexcept nogil


# Sampled messages: those of which a trace has an arrow, from the dispatch that sent it to the one that took it.
#
# A sampled message has a node of a kind of its own. So senders look at nothing more than at the flags of the receiver's
# cell, by which they take the slow way in any case, and receivers at nothing more than at the kind of each node.
cdef void mark_sample(Node* node, uint64_t receiver, bint is_own, Context* context) noexcept nogil
cdef void mark_samples(Node* node, Node* last, uint64_t receiver, uint32_t every, ActorContext* context) noexcept nogil
cdef void note_end(Context* context, uint64_t sender, uint64_t arrow, bint is_lost) noexcept nogil


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
