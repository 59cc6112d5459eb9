# Sampled messages: those of which a trace has an arrow, from the dispatch that sent it to the one that took it.
#
# A sampled message has a node of a kind of its own. So senders look at nothing more than at the flags of the receiver's
# cell, by which they take the slow way in any case, and receivers at nothing more than at the kind of each node.
from libc.stdint cimport uint64_t

from callboard.core.memory.node cimport Node
from callboard.scheduling.forward cimport Context

cdef void mark_sample(Node* node, uint64_t receiver, bint is_own, Context* context) noexcept nogil
cdef void note_end(Context* context, uint64_t sender, uint64_t arrow, bint is_lost) noexcept nogil
