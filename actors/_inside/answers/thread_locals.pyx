"""The actor layer's state of each thread: what it samples for traces, and when it lets the workers run."""

from libc.stdint cimport int64_t, uint32_t

from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport Kind, relax, relaxed
from callboard.scheduling.context cimport Context, current_context, make_contexts_by

cdef extern from "callboard/core/monitoring/recorder.hpp" namespace "callboard" nogil:
    pass

cdef extern from "callboard/mailbox/mpsc.hpp" nogil:
    pass  # what a MpscTail is

cdef extern from "sched.h" nogil:
    int sched_yield()


cdef Context* make_context() noexcept nogil:
    return new ActorContext()


make_contexts_by(make_context)


cdef ActorContext* actor_context() noexcept nogil:
    """Return the calling thread's context as the actor layer knows it: `<ActorContext*>` of any Context."""
    return <ActorContext*>current_context()


# --- the begins and ends of a trace's arrows -----------------------------------------------------------


cdef ArrowNumbers arrows


cdef void mark_sample(Node* node, uint64_t receiver, bint is_own, Context* context) noexcept nogil:
    """Make a sample of a Python message that is about to be pushed, and whose turn has come: see Sampler.

    It has an arrow if the thread is in the middle of a recorded dispatch of the sender, as `is_own` says.
    """
    cdef uint32_t arrow
    node.tag = 0
    if is_own and context.recorder != NULL:
        arrow = arrows.next()
        if context.recorder.note_sent(receiver, arrow, monotonic_ns()):
            node.tag = arrow
    node.kind = Kind.sampled_ask if node.kind == Kind.ask else Kind.sampled_tell


cdef void mark_samples(Node* node, Node* last, uint64_t receiver, uint32_t every, ActorContext* context) noexcept nogil:
    """Make samples of one in `every` messages of a chain, which the calling thread's actor is about to send."""
    while True:
        if context.sampler.takes(every):
            mark_sample(node, receiver, True, context)
        if node == last:
            return
        node = node.get_next(relaxed)


cdef void note_end(Context* context, uint64_t sender, uint64_t arrow, bint is_lost) noexcept nogil:
    """Note that a sampled message was taken out of its queue, or is to be a dead letter."""
    if context.recorder == NULL:
        return
    if is_lost:
        context.recorder.note_lost(sender, arrow, monotonic_ns())
    else:
        context.recorder.note_taken(sender, arrow, monotonic_ns())


# --- threads outside the workers, which let them run now and then -----------------------------------------


cdef int64_t LONGEST_YIELD_NS = 2_000_000
cdef int PAUSES = 64


cdef void let_workers_run(MpscTail* receiver) noexcept:
    """Release the interpreter until the receiver has nothing left to do, or the longest yield is over."""
    cdef int64_t end
    with nogil:
        end = monotonic_ns() + LONGEST_YIELD_NS
        while not receiver.is_idle() and monotonic_ns() < end:
            for _ in range(PAUSES):
                relax()
            sched_yield()
