"""The begins and ends of a trace's arrows."""

from libc.stdint cimport uint32_t

from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport Kind
from callboard.scheduling.context cimport Context

cdef extern from "callboard/core/monitoring/recorder.hpp" namespace "callboard" nogil:
    pass

cdef extern from "callboard/_inside/answers/sampling.hpp" namespace "callboard" nogil:
    cppclass ArrowNumbers:
        uint32_t next()

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


cdef void note_end(Context* context, uint64_t sender, uint64_t arrow, bint is_lost) noexcept nogil:
    """Note that a sampled message was taken out of its queue, or is to be a dead letter."""
    if context.recorder == NULL:
        return
    if is_lost:
        context.recorder.note_lost(sender, arrow, monotonic_ns())
    else:
        context.recorder.note_taken(sender, arrow, monotonic_ns())
