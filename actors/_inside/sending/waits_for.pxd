from callboard._inside.sending.state cimport Extra, Phase
from callboard.scheduling.cell cimport Cell

cdef object awaited_of(Extra extra)
cdef list held_of(Extra extra)
cdef tuple wait_in_words(Cell* cell, Phase phase, bint event_loop, Extra extra)
