# The cell of a ref, with its inside: see actor_cell.hpp.
from libc.stdint cimport uint32_t

from callboard._inside.sending.envelope cimport ActorCell, Envelope
from callboard.core.memory.node cimport Node
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context
from callboard.scheduling.handle cimport Handle

cdef extern from "callboard/_inside/sending/actor_cell.hpp" namespace "callboard" nogil:
    const uint32_t limited
    const uint32_t closed_cell
    const uint32_t native_cell
    const uint32_t forked_cell
    const uint32_t carrying_cell
    const uint32_t task_cell
    const uint32_t adopting_cell
    const uint32_t sampled_cell
    const uint32_t counted_cell
    const uint32_t guarded_cell
    const uint32_t no_chain_cell
    const uint32_t slow_cell

    Node* await_node(Cell* to, Context* context)
    Node* filled(Node* node, Envelope envelope)
    bint push(Cell* to, Context* context, Envelope envelope) except +
    void stamp(Node* node, Cell* to, Context* context)
    void note_taken(Node* node, Cell* cell, Context* context)
    bint is_only_watched(const Cell* cell)


cdef inline ActorCell* cell_of(Handle ref) noexcept nogil:
    return <ActorCell*>ref.cell
