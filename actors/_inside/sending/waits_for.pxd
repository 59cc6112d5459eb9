from callboard._inside.sending.state cimport Extra, Phase

cdef object awaited_of(Extra extra)
cdef list held_of(Extra extra)
cdef tuple wait_in_words(bint is_idle, Phase phase, bint event_loop, Extra extra)
