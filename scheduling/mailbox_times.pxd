"""The end of times in mailboxes, for Cython: see `mailbox_times.hpp`."""

from callboard.core.memory.node cimport Node
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context

cdef extern from "callboard/scheduling/mailbox_times.hpp" namespace "callboard" nogil:
    void note_taken(Node* node, Cell* cell, Context* context)
