"""The begin of times in mailboxes, for Cython: see `stamps.hpp`."""

from callboard.core.memory.node cimport Node
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context

cdef extern from "callboard/scheduling/stamps.hpp" namespace "callboard" nogil:
    void stamp(Node* node, Cell* to, Context* context)
